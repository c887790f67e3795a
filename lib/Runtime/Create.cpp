//===- Create.cpp - contexts from options ---------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Joins a device and a communicator, and says which pairs make sense:
//
//             host    cuda
//   local     yes     -
//   mpi       yes     -
//
//===----------------------------------------------------------------------===//

#include "Create.h"

#include "CommLocal.h"
#include "CommMpi.h"

#include <cmath>

using namespace fsdprt;

/// Checks what every world needs, and reads the grid.
static Status readOptions(const fsdprtOptions *options, const void *contexts,
                          Grid &grid) {
  auto invalid = [](std::string why) {
    return Status{FSDPRT_INVALID_ARGUMENT, std::move(why)};
  };
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
  if (!std::isfinite(options->timeoutSeconds) || options->timeoutSeconds < 0)
    return invalid("the timeout is negative or not a number");
  grid.shape.assign(options->gridShape, options->gridShape + options->gridAxes);
  return {};
}

static std::string nameOr(const char *name, const char *otherwise) {
  return name ? name : otherwise;
}

static Status createDevice(const fsdprtOptions &options,
                           std::unique_ptr<Device> &device) {
  std::string name = nameOr(options.device, "host");
  if (name != "host")
    return {FSDPRT_INVALID_ARGUMENT,
            "there is no device '" + name + "', expected host"};
  device = createHostDevice();
  return {};
}

Status fsdprt::createLocal(const fsdprtOptions *options,
                           fsdprtContext **contexts) {
  Grid grid;
  if (Status status = readOptions(options, contexts, grid); status.failed())
    return status;
  std::vector<std::unique_ptr<Device>> devices(grid.ranks());
  for (std::unique_ptr<Device> &device : devices)
    if (Status status = createDevice(*options, device); status.failed())
      return status;
  int64_t rank = 0;
  for (std::unique_ptr<Communicator> &communicator :
       createLocalCommunicators(grid, options->timeoutSeconds)) {
    contexts[rank] =
        new fsdprtContext(std::move(devices[rank]), std::move(communicator),
                          grid, rank, *options);
    ++rank;
  }
  return {};
}

Status fsdprt::createRank(const fsdprtOptions *options,
                          fsdprtContext **context) {
  Grid grid;
  if (Status status = readOptions(options, context, grid); status.failed())
    return status;
  std::string name = nameOr(options->communicator, "mpi");
  if (name != "mpi")
    return {FSDPRT_INVALID_ARGUMENT, "there is no communicator '" + name +
                                         "' between processes, expected mpi"};
  std::unique_ptr<Device> device;
  if (Status status = createDevice(*options, device); status.failed())
    return status;
  std::shared_ptr<Mpi> mpi;
  if (Status status = openMpi(mpi); status.failed())
    return status;
  if (mpi->ranks != grid.ranks())
    return {FSDPRT_INVALID_ARGUMENT,
            "MPI started " + std::to_string(mpi->ranks) +
                (mpi->ranks == 1 ? " process" : " processes") +
                ", expected one for each of the " +
                std::to_string(grid.ranks()) +
                " ranks of the grid (mpirun -n " +
                std::to_string(grid.ranks()) + ")"};
  const int64_t rank = mpi->rank;
  *context = new fsdprtContext(
      std::move(device),
      createMpiCommunicator(grid, std::move(mpi), options->timeoutSeconds),
      grid, rank, *options);
  return {};
}
