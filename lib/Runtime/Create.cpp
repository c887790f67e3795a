//===- Create.cpp - contexts from options ---------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joins a device and a communicator:
//
//             host     cuda
//   local     yes      by way of the host, all ranks on one GPU
//   mpi       yes      by way of the host
//   nccl      no       yes
//
//===----------------------------------------------------------------------===//

#include "Create.h"

#include "Comm/CommLocal.h"
#include "Comm/CommMpi.h"
#include "Comm/CommNccl.h"
#include "Comm/CommStaged.h"
#include "World/Activity.h"
#include "World/Channels.h"
#include "World/RankDiscovery.h"
#include "World/TcpGreeting.h"
#include "World/Watch.h"

#include <algorithm>
#include <thread>
#include <unistd.h>

using namespace fsdprt;

static Status invalid(std::string why) {
  return {FSDPRT_INVALID_ARGUMENT, std::move(why)};
}

static std::string nameOr(const char *name, const char *otherwise) {
  return name ? name : otherwise;
}

/// Checks what every world needs, and reads the grid.
static Status readOptions(const fsdprtOptions *options, const void *contexts,
                          Grid &grid, SumOrder &order) {
  if (!options || !contexts || !options->gridShape)
    return invalid("options, contexts and gridShape must not be null");
  if (options->gridAxes < 1 || options->gridAxes > 15)
    return invalid("the grid has " + std::to_string(options->gridAxes) +
                   " axes, expected 1 to 15");
  int64_t ranks = 1;
  for (int32_t axis = 0; axis < options->gridAxes; ++axis) {
    int64_t extent = options->gridShape[axis];
    if (extent < 1 || extent > 65536 || (ranks *= extent) > 65536)
      return invalid("axis " + std::to_string(axis) + " of the grid has " +
                     std::to_string(extent) +
                     " ranks, expected a grid of 1 to 65536");
  }
  if (Status status = checkTimeout(options->timeoutSeconds); status.failed())
    return status;
  std::string device = nameOr(options->device, "host");
  if (device != "host" && device != "cuda")
    return invalid("there is no device '" + device +
                   "', expected host or cuda");
  if (options->stream && device != "cuda")
    return invalid("device '" + device +
                   "' has no streams, expected null or device 'cuda'");
  std::string sumOrder = nameOr(options->sumOrder, "rank");
  if (!parseSumOrder(sumOrder, order))
    return invalid("there is no sum order '" + sumOrder +
                   "', expected rank or ring");
  grid.shape.assign(options->gridShape, options->gridShape + options->gridAxes);
  return {};
}

static Log logOf(const fsdprtOptions &options) {
  if (!options.log)
    return [](const std::string &) {};
  return [log = options.log, user = options.logUser](const std::string &line) {
    log(user, line.c_str());
  };
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

static bool wantsCuda(const fsdprtOptions &options) {
  return nameOr(options.device, "host") == "cuda";
}

static Status createCuda(const fsdprtOptions &options, int64_t ordinal,
                         std::unique_ptr<DeviceCuda> &device) {
  const cuda::Api *api = nullptr;
  if (std::string why = cuda::load(api); !why.empty())
    return invalid("device 'cuda' is not available: " + why);
  return DeviceCuda::create(*api, ordinal,
                            static_cast<cuda::Stream>(options.stream),
                            logOf(options), device);
}

/// The GPU of a rank that is a process. Where each process sees one GPU alone,
/// that is it.
static Status createCudaForRank(const fsdprtOptions &options, int64_t localRank,
                                std::unique_ptr<DeviceCuda> &device) {
  const cuda::Api *api = nullptr;
  if (std::string why = cuda::load(api); !why.empty())
    return invalid("device 'cuda' is not available: " + why);
  int count = 0;
  api->cuDeviceGetCount(&count);
  if (localRank < 0 && count != 1)
    return invalid("the local rank is not known, expected LOCAL_RANK or one "
                   "from the caller to choose among " +
                   std::to_string(count) + " cuda devices");
  return createCuda(options, count == 1 ? 0 : localRank, device);
}

/// A context on `device`, or on the host if that is null, with a communicator
/// that works on host memory.
static fsdprtContext *joinHost(std::unique_ptr<DeviceCuda> device,
                               std::unique_ptr<Communicator> communicator,
                               const Grid &grid, int64_t rank,
                               const fsdprtOptions &options) {
  if (!device)
    return new fsdprtContext(createHostDevice(), std::move(communicator), grid,
                             rank, options);
  communicator =
      createStagedCommunicator(std::move(communicator), *device, grid, rank);
  return new fsdprtContext(std::move(device), std::move(communicator), grid,
                           rank, options);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Status fsdprt::createLocal(const fsdprtOptions *options,
                           fsdprtContext **contexts) {
  Grid grid;
  SumOrder order;
  if (Status status = readOptions(options, contexts, grid, order);
      status.failed())
    return status;
  if (options->stream && grid.ranks() > 1)
    return invalid("a stream for " + std::to_string(grid.ranks()) +
                   " ranks of one process, expected one rank: they would wait "
                   "for each other in it");
  std::vector<std::unique_ptr<DeviceCuda>> devices(grid.ranks());
  if (wantsCuda(*options))
    for (std::unique_ptr<DeviceCuda> &device : devices)
      if (Status status = createCuda(
              *options, options->hasRank ? options->localRank : 0, device);
          status.failed())
        return status;
  std::vector<std::unique_ptr<fsdprtContext>> made;
  made.reserve(grid.ranks()); // no context is lost between its making and here
  for (std::unique_ptr<Communicator> &communicator :
       createLocalCommunicators(grid, options->timeoutSeconds, order)) {
    const int64_t rank = made.size();
    made.emplace_back(joinHost(std::move(devices[rank]),
                               std::move(communicator), grid, rank, *options));
  }
  // All of them, or none.
  for (size_t rank = 0; rank < made.size(); ++rank)
    contexts[rank] = made[rank].release();
  return {};
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

/// What may keep a user from mpirun, if MPI was not started by it.
static std::string adviceOnMpirun(const Grid &grid) {
  std::string advice;
  RankInfo info;
  if (!discoverRank({}, processEnvironment, info).failed() &&
      info.launcher == "torchrun")
    advice += "; torchrun has started this process, and starts no MPI";
  if (geteuid() == 0)
    advice += "; of root mpirun wants --allow-run-as-root";
  if (grid.ranks() > std::thread::hardware_concurrency())
    advice += "; for more ranks than processors it wants --oversubscribe";
  return advice;
}

static Status wrongNumber(const std::string &launcher, int64_t ranks,
                          const Grid &grid) {
  const bool isMpi = launcher == "MPI";
  return invalid(launcher + " started " + std::to_string(ranks) +
                 (ranks == 1 ? " process" : " processes") +
                 ", expected one for each of the " +
                 std::to_string(grid.ranks()) + " ranks of the grid (" +
                 (isMpi ? "mpirun -n " : "") + std::to_string(grid.ranks()) +
                 ")" + (isMpi && ranks == 1 ? adviceOnMpirun(grid) : ""));
}

static Status createMpi(const Grid &grid, SumOrder order,
                        const fsdprtOptions &options, fsdprtContext **context) {
  std::shared_ptr<Mpi> mpi;
  if (std::string why = openMpi(mpi, options.timeoutSeconds); !why.empty())
    return invalid("communicator 'mpi' is not available: " + why);
  if (mpi->ranks != grid.ranks())
    return wrongNumber("MPI", mpi->ranks, grid);
  std::unique_ptr<DeviceCuda> device;
  if (wantsCuda(options))
    if (Status status = createCudaForRank(
            options, options.hasRank ? options.localRank : mpi->localRank,
            device);
        status.failed())
      return status;
  const int64_t rank = mpi->rank;
  *context = joinHost(std::move(device),
                      createMpiCommunicator(grid, std::move(mpi),
                                            options.timeoutSeconds, order),
                      grid, rank, options);
  return {};
}

static Status connectByTcp(const std::string &host, int64_t port, int64_t rank,
                           const Grid &grid, const fsdprtOptions &options,
                           std::unique_ptr<Channel> &channel) {
  std::string secret;
  if (Status status = findSecret(secret); status.failed())
    return status;
  return createTcpChannel(host, port, rank, grid.ranks(),
                          options.timeoutSeconds, secret, logOf(options),
                          channel);
}

/// How the ranks of a world of NCCL talk to each other, and which one this is.
static Status findOthers(const Grid &grid, const fsdprtOptions &options,
                         RankInfo &info, std::unique_ptr<Channel> &channel) {
  RankInfo given;
  if (options.hasRank) {
    given.rank = options.rank;
    given.localRank = options.localRank;
    given.ranks = grid.ranks();
  } else if (grid.ranks() == 1 && !options.rendezvous) {
    given.rank = 0; // whoever started it
  }
  if (Status status = discoverRank(given, processEnvironment, info);
      status.failed())
    return status;
  if (grid.ranks() == 1 && info.localRank < 0)
    info.localRank = 0;
  if (info.ranks >= 0 && info.ranks != grid.ranks())
    return wrongNumber(info.launcher, info.ranks, grid);
  if (info.rank >= grid.ranks())
    return invalid("rank " + std::to_string(info.rank) + " of " +
                   info.launcher + ": the grid has " +
                   std::to_string(grid.ranks()) + " ranks");
  const double timeout = options.timeoutSeconds;

  std::string place = nameOr(options.rendezvous, "");
  if (place.rfind("file:", 0) == 0)
    return createFileChannel(place.substr(5), info.rank, grid.ranks(), channel);
  if (!place.empty()) {
    std::string host;
    int64_t port = 0;
    if (!parsePlace(place, host, port))
      return invalid("rendezvous '" + place +
                     "': expected HOST:PORT or file:PATH" +
                     (std::count(place.begin(), place.end(), ':') > 1
                          ? ", with an IPv6 address in brackets"
                          : ""));
    return connectByTcp(host, port, info.rank, grid, options, channel);
  }
  if (grid.ranks() == 1) {
    channel = createSelfChannel();
    return {};
  }
  std::string why;
  if (info.launcher == "Open MPI" || info.launcher == "PMIx" ||
      info.launcher == "PMI") {
    std::shared_ptr<Mpi> mpi;
    why = openMpi(mpi, timeout);
    if (mpi) {
      if (mpi->ranks != grid.ranks())
        return wrongNumber("MPI", mpi->ranks, grid);
      info.rank = mpi->rank;
      info.localRank = mpi->localRank;
      channel = createMpiChannel(std::move(mpi));
      return {};
    }
    why = "; " + why;
  }
  // The port itself is torchrun's.
  if (!info.masterAddress.empty() && info.masterPort != 0)
    return connectByTcp(info.masterAddress, info.masterPort + 1, info.rank,
                        grid, options, channel);
  return invalid("the ranks cannot find each other: expected a rendezvous from "
                 "the caller or MASTER_ADDR and MASTER_PORT, found neither" +
                 why);
}

static Status createNccl(const Grid &grid, const fsdprtOptions &options,
                         fsdprtContext **context) {
  if (!wantsCuda(options))
    return invalid("communicator 'nccl' moves memory of GPUs, expected device "
                   "'cuda'");
  const nccl::Api *api = nullptr;
  if (std::string why = nccl::load(api); !why.empty())
    return invalid("communicator 'nccl' is not available: " + why);
  RankInfo info;
  std::unique_ptr<Channel> channel;
  if (Status status = findOthers(grid, options, info, channel); status.failed())
    return status;
  std::unique_ptr<DeviceCuda> device;
  if (Status status = createCudaForRank(options, info.localRank, device);
      status.failed()) {
    // The others wait for this rank already.
    Watch(std::move(channel), options.timeoutSeconds)
        .abort({FSDPRT_ABORTED, "rank " + std::to_string(info.rank) +
                                    " failed: " + status.message});
    return status;
  }
  auto communicator =
      createNcclCommunicator(grid, *api, *device, std::move(channel),
                             options.timeoutSeconds, logOf(options));
  *context = new fsdprtContext(std::move(device), std::move(communicator), grid,
                               info.rank, options);
  return {};
}

Status fsdprt::createRank(const fsdprtOptions *options,
                          fsdprtContext **context) {
  Grid grid;
  SumOrder order;
  if (Status status = readOptions(options, context, grid, order);
      status.failed())
    return status;
  std::string name = nameOr(options->communicator, "mpi");
  if (name == "mpi")
    return createMpi(grid, order, *options, context);
  if (name == "nccl" && options->sumOrder)
    return invalid("communicator 'nccl' adds in an order of its own, expected "
                   "no sum order");
  if (name == "nccl")
    return createNccl(grid, *options, context);
  return invalid("there is no communicator '" + name +
                 "' between processes, expected mpi or nccl");
}
