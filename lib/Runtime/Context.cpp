//===- Context.cpp - one rank: its buffers and its first failure ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "Support/Guard.h"
#include "World/Activity.h"
#include "World/Watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using namespace fsdprt;

static int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

fsdprtContext::fsdprtContext(std::unique_ptr<Device> device,
                             std::unique_ptr<Communicator> communicator,
                             const Grid &grid, int64_t rank,
                             const fsdprtOptions &options)
    : device(std::move(device)), communicator(std::move(communicator)),
      grid(grid), rank(rank), options(options) {}

fsdprtContext::~fsdprtContext() {
  // Work that is under way may still use what goes now: nobody orders the end
  // of a caller's stream, or of memory that came from the communication
  // library.
  (void)guarded([this] {
    return device->finish([this] { return communicator->worldStatus(); });
  });
  for (auto &[data, buffer] : buffers)
    device->free(data);
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtContext::fail(Status status) {
  failure = std::move(status);
  // Whoever waits for this rank would wait in vain. If the world has failed
  // already, it keeps its own, earlier reason.
  communicator->abort({FSDPRT_ABORTED, "rank " + std::to_string(rank) +
                                           " failed: " + failure.message});
  return failure.code;
}

fsdprtStatus fsdprtContext::failThrown() noexcept {
  Status status = describeException();
  running = false;
  if (!failure.failed())
    failure = std::move(status);
  try {
    communicator->abort({FSDPRT_ABORTED, "rank " + std::to_string(rank) +
                                             " failed: " + failure.message});
  } catch (...) {
    // This sentence needs no memory.
    (void)guarded([&] {
      communicator->abort({FSDPRT_ABORTED, "out of memory"});
      return Status();
    });
  }
  return failure.code;
}

void fsdprtContext::abort(const char *reason) {
  communicator->abort({FSDPRT_ABORTED, std::string(reason ? reason : "") +
                                           " (abort of rank " +
                                           std::to_string(rank) + ")"});
}

bool fsdprtContext::failedFirst() {
  Watch *watch = communicator->watch();
  return watch && watch->failedFirst();
}

//===----------------------------------------------------------------------===//
// Between processes
//===----------------------------------------------------------------------===//

Watch *fsdprtContext::watchFor(const char *what, int64_t bytes,
                               double timeoutSeconds) {
  if (failure.failed())
    return nullptr;
  Watch *watch = communicator->watch();
  if (!watch)
    (void)fail({FSDPRT_INVALID_ARGUMENT,
                "the ranks are threads of one process, expected processes"});
  else if (!what || bytes < 0) {
    watch = nullptr;
    (void)fail({FSDPRT_INVALID_ARGUMENT,
                what ? "an exchange of " + std::to_string(bytes) + " bytes"
                     : std::string("an exchange without a name")});
  } else if (Status status = checkTimeout(timeoutSeconds); status.failed()) {
    watch = nullptr;
    (void)fail(std::move(status));
  }
  return watch;
}

fsdprtStatus fsdprtContext::exchange(const char *what, const void *send,
                                     int64_t bytes, void *receive,
                                     double timeoutSeconds) {
  Watch *watch = watchFor(what, bytes, timeoutSeconds);
  if (!watch)
    return failure.code;
  std::vector<std::string> all;
  std::string mine;
  if (bytes != 0)
    mine.assign(static_cast<const char *>(send), bytes);
  if (Status status = watch->exchange(what, mine, all, timeoutSeconds);
      status.failed())
    return fail(std::move(status));
  for (size_t other = 0; other < all.size(); ++other) {
    if (static_cast<int64_t>(all[other].size()) != bytes)
      return fail({FSDPRT_RANKS_DISAGREE,
                   "ranks disagree: " + std::string(what) + " has " +
                       std::to_string(bytes) + " bytes on rank " +
                       std::to_string(rank) + " and " +
                       std::to_string(all[other].size()) + " on rank " +
                       std::to_string(other)});
    if (bytes != 0)
      std::memcpy(static_cast<char *>(receive) + other * bytes,
                  all[other].data(), bytes);
  }
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::collect(const char *what, int64_t from,
                                    const void *send, int64_t bytes,
                                    void *receive, double timeoutSeconds) {
  Watch *watch = watchFor(what, bytes, timeoutSeconds);
  if (!watch)
    return failure.code;
  if (from < 0 || from >= grid.ranks())
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "no rank has number " + std::to_string(from)});
  if (Status status =
          watch->collect(what, from, send, bytes, receive, timeoutSeconds);
      status.failed())
    return fail(std::move(status));
  return FSDPRT_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Start and run
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtContext::start(const char *planHash) {
  if (failure.failed())
    return failure.code;
  if (!planHash)
    return fail({FSDPRT_INVALID_ARGUMENT, "start: the plan hash is null"});
  if (started)
    return fail(
        {FSDPRT_INVALID_ARGUMENT, "start: the rank has started before"});
  started = true;
  if (Status status = communicator->start(planHash); status.failed())
    return fail(std::move(status));
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::run(fsdprtEntry entry, void *const *arguments,
                                void *const *results) {
  if (failure.failed())
    return failure.code;
  if (!entry)
    return fail({FSDPRT_INVALID_ARGUMENT, "run: the entry is null"});
  if (!started)
    return fail({FSDPRT_INVALID_ARGUMENT, "run: the rank has not started"});
  if (running)
    return fail({FSDPRT_INVALID_ARGUMENT, "run: an entry runs already"});
  if (Status status = communicator->worldStatus(); status.failed())
    return fail(std::move(status));

  running = true;
  communicator->enterRun();
  fsdprtStatus code = entry(this, arguments, results);
  // An entry gives work to the device; it has run when the work is done. Who
  // brings a stream waits for it.
  if (code == FSDPRT_SUCCESS && !failure.failed() && !options.stream)
    if (Status status =
            device->finish([this] { return communicator->worldStatus(); });
        status.failed())
      (void)fail(std::move(status));
  communicator->leaveRun();
  running = false;

  int64_t left = 0;
  Buffer sum = releaseRun(left);
  if (failure.failed())
    return failure.code;
  if (code != FSDPRT_SUCCESS)
    return fail({code, "the entry returned status " + std::to_string(code)});
  if (left != 0)
    return fail({FSDPRT_LEAK, "the entry left " + std::to_string(left) +
                                  (left == 1 ? " buffer" : " buffers") +
                                  " behind, " + std::to_string(sum.bytes) +
                                  " bytes"});
  return FSDPRT_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtContext::allocate(int64_t bytes, void **data) {
  if (failure.failed())
    return failure.code;
  if (!data || bytes < 0)
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "allocation of " + std::to_string(bytes) + " bytes" +
                     (data ? "" : " to a null address")});
  void *memory = nullptr;
  if (Status status = device->allocate(bytes, memory); status.failed()) {
    if (status.code == FSDPRT_OUT_OF_MEMORY)
      status.message = "out of memory: no " + std::to_string(bytes) +
                       " bytes beside " + std::to_string(liveBytes) +
                       " allocated bytes";
    return fail(std::move(status));
  }
  try {
    buffers.insert({memory, {bytes, running}});
  } catch (...) {
    device->free(memory);
    throw;
  }
  liveBytes += bytes;
  peakBytes = std::max(peakBytes, liveBytes);
  *data = memory;
  return FSDPRT_SUCCESS;
}

void fsdprtContext::release(
    std::unordered_map<void *, Buffer>::iterator buffer) {
  liveBytes -= buffer->second.bytes;
  device->free(buffer->first);
  buffers.erase(buffer);
}

fsdprtStatus fsdprtContext::free(void *data) {
  if (failure.failed())
    return failure.code;
  auto buffer = buffers.find(data);
  if (buffer == buffers.end())
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "free of an address that is no buffer of this rank"});
  release(buffer);
  return FSDPRT_SUCCESS;
}

fsdprtContext::Buffer fsdprtContext::releaseRun(int64_t &count) {
  Buffer sum = {0, true};
  for (auto buffer = buffers.begin(); buffer != buffers.end();) {
    auto next = std::next(buffer);
    if (buffer->second.ofRun) {
      ++count;
      sum.bytes += buffer->second.bytes;
      release(buffer);
    }
    buffer = next;
  }
  return sum;
}

fsdprtStatistics fsdprtContext::statistics() const {
  return {liveBytes, peakBytes, static_cast<int64_t>(buffers.size()), calls};
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtContext::requireDriver(int32_t version) {
  if (failure.failed())
    return failure.code;
  Status status = device->requireDriver(version);
  return status.failed() ? fail(std::move(status)) : FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::launch(const Launch &launch) {
  if (failure.failed())
    return failure.code;
  auto invalid = [&](const std::string &what) {
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "launch of kernel '" + launch.kernel + "': " + what});
  };
  if (launch.kernel.empty())
    return invalid("the name is empty");
  if (!launch.image || launch.imageBytes <= 0)
    return invalid("the image is empty");
  if (!launch.addresses || launch.addressBytes <= 0)
    return invalid("there are no addresses");
  // CUDA's limits, on every chip.
  if (launch.blocksX < 1 || launch.blocksX > INT32_MAX || launch.blocksY < 1 ||
      launch.blocksY > 65535 || launch.threads < 1 || launch.threads > 1024)
    return invalid("a grid of " + std::to_string(launch.blocksX) + " x " +
                   std::to_string(launch.blocksY) + " blocks of " +
                   std::to_string(launch.threads) + " threads");
  if (Status status = communicator->worldStatus(); status.failed())
    return fail(std::move(status));
  if (Status status = device->launch(launch); status.failed())
    return fail(std::move(status));
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::copyOnDevice(const void *from, void *to,
                                         int64_t bytes) {
  if (failure.failed())
    return failure.code;
  if (bytes < 0 || (bytes > 0 && (!from || !to)))
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "copy of " + std::to_string(bytes) + " bytes on the device" +
                     (bytes < 0 ? "" : " from or to a null address")});
  if (bytes == 0 || from == to)
    return FSDPRT_SUCCESS;
  if (Status status = device->copy(to, from, bytes); status.failed())
    return fail(std::move(status));
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::constant(const void *host, int64_t bytes,
                                     void **data) {
  if (failure.failed())
    return failure.code;
  if (!host || !data || bytes < 0)
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "constant of " + std::to_string(bytes) + " bytes" +
                     (bytes < 0 ? "" : " from or to a null address")});
  if (auto known = constants.find(host); known != constants.end()) {
    *data = known->second;
    return FSDPRT_SUCCESS;
  }
  void *memory = nullptr;
  if (Status status = device->upload(host, bytes, memory); status.failed()) {
    status.message =
        "constant of " + std::to_string(bytes) + " bytes: " + status.message;
    return fail(std::move(status));
  }
  // It stays when the run has ended. The host's own memory is nobody's buffer.
  if (memory != host) {
    buffers.insert({memory, {bytes, /*ofRun=*/false}});
    liveBytes += bytes;
    peakBytes = std::max(peakBytes, liveBytes);
  }
  constants.insert({host, memory});
  *data = memory;
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::copy(void *data, const void *host, int64_t bytes,
                                 bool in) {
  if (failure.failed())
    return failure.code;
  if (bytes < 0 || (bytes > 0 && (!data || !host)))
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "copy of " + std::to_string(bytes) + " bytes" +
                     (bytes < 0 ? "" : " from or to a null address")});
  if (bytes == 0)
    return FSDPRT_SUCCESS;
  Status status = in ? device->copyIn(data, host, bytes)
                     : device->copyOut(const_cast<void *>(host), data, bytes);
  // What an aborted collective has left is not worth copying.
  if (!status.failed())
    status = communicator->worldStatus();
  return status.failed() ? fail(std::move(status)) : FSDPRT_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtContext::getRank(int64_t *result) {
  if (failure.failed())
    return failure.code;
  if (!result)
    return fail({FSDPRT_INVALID_ARGUMENT, "rank: the address is null"});
  *result = rank;
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtContext::getCoordinate(int32_t axis, int64_t *result) {
  if (failure.failed())
    return failure.code;
  if (!result || axis < 0 || static_cast<size_t>(axis) >= grid.shape.size())
    return fail({FSDPRT_INVALID_ARGUMENT,
                 "coordinate on axis " + std::to_string(axis) +
                     " of a grid with " + std::to_string(grid.shape.size()) +
                     " axes"});
  *result = grid.coordinates(rank)[axis];
  return FSDPRT_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// The record as it was checked when it came first. Another artefact may have
/// been loaded where that one was, so every field is compared.
Status
fsdprtContext::findCollective(const fsdprtCollective *record,
                              std::shared_ptr<const Collective> &collective) {
  auto known = collectives.find(record);
  if (known != collectives.end() && isCopyOf(*known->second, *record)) {
    collective = known->second;
    return {};
  }
  auto made = std::make_shared<Collective>();
  if (Status status = checkRecord(*record, grid, *made); status.failed())
    return status;
  collective = collectives[record] = std::move(made);
  return {};
}

fsdprtStatus
fsdprtContext::runCollectives(const fsdprtCollective *const *records,
                              int32_t count, const void *const *send,
                              void *const *receive) {
  if (failure.failed())
    return failure.code;
  if (count < 0 || (count > 0 && (!records || !send || !receive)))
    return fail({FSDPRT_INVALID_ARGUMENT,
                 std::to_string(count) + " collectives" +
                     (count < 0 ? "" : ": the address of a list is null")});
  batch.clear();
  for (int32_t i = 0; i < count; ++i) {
    Call call = {++calls, nullptr};
    auto invalid = [&](const std::string &what) {
      return fail({FSDPRT_INVALID_ARGUMENT, what});
    };
    auto where = [&] { return "call " + std::to_string(call.number) + ", "; };
    if (!records[i])
      return invalid(where() + "the address of its record is null");
    if (Status status = findCollective(records[i], call.collective);
        status.failed()) {
      status.message = where() + status.message;
      return fail(std::move(status));
    }
    if (!started)
      return invalid(describe(call) + ": the rank has not started");
    if (call->count != 0 && (!send[i] || !receive[i]))
      return invalid(describe(call) + ": a buffer is null");
    while (options.stallCall == call.number && options.stallRank == rank)
      std::this_thread::sleep_for(std::chrono::hours(1));
    batch.push_back(std::move(call));
  }
  if (count == 0)
    return FSDPRT_SUCCESS;

  int64_t begin = options.trace ? nanoseconds() : 0;
  Status status =
      count == 1
          ? communicator->collective(batch[0], send[0], receive[0])
          : communicator->collectives(batch.data(), count, send, receive);
  if (status.failed())
    return fail(std::move(status));
  if (!options.trace)
    return FSDPRT_SUCCESS;
  const int64_t end = nanoseconds();
  for (const Call &call : batch) {
    fsdprtTraceEvent event = {rank,
                              call.number,
                              nameOf(call->kind),
                              call->bucket.c_str(),
                              call->count * sizeOf(call->dtype),
                              begin,
                              end};
    options.trace(options.traceUser, &event);
  }
  return FSDPRT_SUCCESS;
}
