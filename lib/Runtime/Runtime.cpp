//===- Runtime.cpp - the C functions of libfsdprt -------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer: numbers of the C interface become the enums of ours, everything
// else is Context's. The declarations come from Runtime.h, so that a definition
// with other parameters does not compile.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Runtime/Runtime.h"

#include "CommLocal.h"
#include "Context.h"

#include <cmath>
#include <cstdio>

using namespace fsdprt;

//===----------------------------------------------------------------------===//
// Called by compiled code
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtAlloc(fsdprtContext *context, int64_t bytes, void **data) {
  return context->allocate(bytes, data);
}

fsdprtStatus fsdprtFree(fsdprtContext *context, void *data) {
  return context->free(data);
}

fsdprtStatus fsdprtRank(fsdprtContext *context, int64_t *rank) {
  return context->getRank(rank);
}

fsdprtStatus fsdprtCoordinate(fsdprtContext *context, int32_t axis,
                              int64_t *coordinate) {
  return context->getCoordinate(axis, coordinate);
}

/// Checks the numbers that become enums, then hands the call on. `reduction` is
/// null for the kinds that do not reduce.
static fsdprtStatus collective(fsdprtContext *context, CollectiveKind kind,
                               const char *bucket, int64_t axes, int32_t dtype,
                               int64_t count, const int32_t *reduction,
                               double multiplier, int32_t accumulate,
                               const void *send, void *receive) {
  Call call;
  call.kind = kind;
  call.bucket = bucket ? bucket : "";
  call.count = count;
  if (dtype < FSDPRT_F16 || dtype > FSDPRT_BYTES)
    return context->refuse(call,
                           "no dtype has number " + std::to_string(dtype));
  call.dtype = static_cast<fsdprtDtype>(dtype);
  if (reduction) {
    if (*reduction < FSDPRT_SUM || *reduction > FSDPRT_PREMUL)
      return context->refuse(call, "no reduction has number " +
                                       std::to_string(*reduction));
    call.reduction = static_cast<fsdprtReduction>(*reduction);
    call.multiplier = multiplier;
    call.accumulate = accumulate != 0;
  }
  return context->collective(std::move(call), axes, send, receive);
}

fsdprtStatus fsdprtAllGather(fsdprtContext *context, const char *bucket,
                             int64_t axes, int32_t dtype, int64_t count,
                             const void *send, void *receive) {
  return collective(context, CollectiveKind::AllGather, bucket, axes, dtype,
                    count, nullptr, 0, 0, send, receive);
}

fsdprtStatus fsdprtReduceScatter(fsdprtContext *context, const char *bucket,
                                 int64_t axes, int32_t dtype, int64_t count,
                                 int32_t reduction, double multiplier,
                                 int32_t accumulate, const void *send,
                                 void *receive) {
  return collective(context, CollectiveKind::ReduceScatter, bucket, axes, dtype,
                    count, &reduction, multiplier, accumulate, send, receive);
}

fsdprtStatus fsdprtAllReduce(fsdprtContext *context, const char *bucket,
                             int64_t axes, int32_t dtype, int64_t count,
                             int32_t reduction, double multiplier,
                             int32_t accumulate, const void *send,
                             void *receive) {
  return collective(context, CollectiveKind::AllReduce, bucket, axes, dtype,
                    count, &reduction, multiplier, accumulate, send, receive);
}

fsdprtStatus fsdprtLaunch(fsdprtContext *context, const void *image,
                          int64_t imageBytes, const char *kernel,
                          int64_t blocksX, int64_t blocksY, int64_t threads,
                          const void *addresses, int64_t addressBytes,
                          void *bucket) {
  return context->launch({image, imageBytes, kernel ? kernel : "", blocksX,
                          blocksY, threads, addresses, addressBytes, bucket});
}

//===----------------------------------------------------------------------===//
// Called by a launcher
//===----------------------------------------------------------------------===//

int32_t fsdprtAbiVersion(void) { return FSDPRT_ABI_VERSION; }

/// Returns what is wrong with the options, or an empty string.
static std::string whyInvalid(const fsdprtOptions *options,
                              fsdprtContext **contexts) {
  if (!options || !contexts || !options->gridShape)
    return "options, contexts and gridShape must not be null";
  if (options->gridAxes < 1 || options->gridAxes > 15)
    return "the grid has " + std::to_string(options->gridAxes) +
           " axes, expected 1 to 15";
  int64_t ranks = 1;
  for (int32_t axis = 0; axis < options->gridAxes; ++axis) {
    int64_t extent = options->gridShape[axis];
    if (extent < 1 || extent > 65536 || (ranks *= extent) > 65536)
      return "axis " + std::to_string(axis) + " of the grid has " +
             std::to_string(extent) + " ranks, expected a grid of 1 to 65536";
  }
  if (!std::isfinite(options->timeoutSeconds) || options->timeoutSeconds < 0)
    return "the timeout is negative or not a number";
  return {};
}

fsdprtStatus fsdprtCreateLocal(const fsdprtOptions *options,
                               fsdprtContext **contexts, char *message,
                               int64_t messageSize) {
  if (std::string why = whyInvalid(options, contexts); !why.empty()) {
    if (message && messageSize > 0)
      std::snprintf(message, messageSize, "%s", why.c_str());
    return FSDPRT_INVALID_ARGUMENT;
  }
  Grid grid;
  grid.shape.assign(options->gridShape, options->gridShape + options->gridAxes);
  int64_t rank = 0;
  for (std::unique_ptr<Communicator> &communicator :
       createLocalCommunicators(grid, options->timeoutSeconds)) {
    contexts[rank] = new fsdprtContext(
        createHostDevice(), std::move(communicator), grid, rank, *options);
    ++rank;
  }
  return FSDPRT_SUCCESS;
}

fsdprtStatus fsdprtStart(fsdprtContext *context, const char *planHash) {
  return context->start(planHash);
}

fsdprtStatus fsdprtRun(fsdprtContext *context, fsdprtEntry entry,
                       void *const *arguments, void *const *results) {
  return context->run(entry, arguments, results);
}

const char *fsdprtMessage(const fsdprtContext *context) {
  return context->message().c_str();
}

void fsdprtGetStatistics(const fsdprtContext *context,
                         fsdprtStatistics *statistics) {
  *statistics = context->statistics();
}

void fsdprtAbort(fsdprtContext *context, const char *reason) {
  context->abort(reason);
}

void fsdprtDestroy(fsdprtContext *context) { delete context; }
