//===- Runtime.cpp - the C functions of libfsdprt -------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer: numbers of the C interface become the enums of ours, exceptions
// become statuses, everything else is Context's. The declarations come from
// Runtime.h, so that a definition with other parameters does not compile.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Runtime/Runtime.h"

#include "Create.h"
#include "Support/Guard.h"

#include <cstdio>

using namespace fsdprt;

/// What every function on a context does: no exception leaves it.
template <typename Body>
static fsdprtStatus onContext(fsdprtContext *context, Body body) noexcept {
  if (!context)
    return FSDPRT_INVALID_ARGUMENT;
  try {
    return body();
  } catch (...) {
    return context->failThrown();
  }
}

//===----------------------------------------------------------------------===//
// Called by compiled code
//===----------------------------------------------------------------------===//

fsdprtStatus fsdprtAlloc(fsdprtContext *context, int64_t bytes, void **data) {
  return onContext(context, [&] { return context->allocate(bytes, data); });
}

fsdprtStatus fsdprtFree(fsdprtContext *context, void *data) {
  return onContext(context, [&] { return context->free(data); });
}

fsdprtStatus fsdprtCopy(fsdprtContext *context, const void *from, void *to,
                        int64_t bytes) {
  return context->copyOnDevice(from, to, bytes);
}

fsdprtStatus fsdprtConstant(fsdprtContext *context, const void *host,
                            int64_t bytes, void **data) {
  return context->constant(host, bytes, data);
}

fsdprtStatus fsdprtRank(fsdprtContext *context, int64_t *rank) {
  return onContext(context, [&] { return context->getRank(rank); });
}

fsdprtStatus fsdprtCoordinate(fsdprtContext *context, int32_t axis,
                              int64_t *coordinate) {
  return onContext(context,
                   [&] { return context->getCoordinate(axis, coordinate); });
}

fsdprtStatus fsdprtRunCollectives(fsdprtContext *context,
                                  const fsdprtCollective *const *collectives,
                                  int32_t count, const void *const *send,
                                  void *const *receive) {
  return onContext(context, [&] {
    return context->runCollectives(collectives, count, send, receive);
  });
}

fsdprtStatus fsdprtRequireDriver(fsdprtContext *context, int32_t version) {
  return context->requireDriver(version);
}

fsdprtStatus fsdprtLaunch(fsdprtContext *context, const void *image,
                          int64_t imageBytes, const char *kernel,
                          int64_t blocksX, int64_t blocksY, int64_t threads,
                          const void *addresses, int64_t addressBytes,
                          void *bucket) {
  return onContext(context, [&] {
    return context->launch({image, imageBytes, kernel ? kernel : "", blocksX,
                            blocksY, threads, addresses, addressBytes, bucket});
  });
}

//===----------------------------------------------------------------------===//
// Called by a launcher
//===----------------------------------------------------------------------===//

int32_t fsdprtAbiVersion(void) { return FSDPRT_ABI_VERSION; }

/// Writes the sentence of what `body` returns where the caller wants it.
template <typename Body>
static fsdprtStatus say(char *message, int64_t size, Body body) noexcept {
  Status status = guarded(body);
  if (message && size > 0)
    std::snprintf(message, size, "%s", status.message.c_str());
  return status.code;
}

fsdprtStatus fsdprtCreateLocal(const fsdprtOptions *options,
                               fsdprtContext **contexts, char *message,
                               int64_t messageSize) {
  return say(message, messageSize,
             [&] { return createLocal(options, contexts); });
}

fsdprtStatus fsdprtCreateRank(const fsdprtOptions *options,
                              fsdprtContext **context, char *message,
                              int64_t messageSize) {
  return say(message, messageSize,
             [&] { return createRank(options, context); });
}

fsdprtStatus fsdprtWorldStatus(fsdprtContext *context, char *message,
                               int64_t messageSize) {
  return say(message, messageSize, [&] { return context->worldStatus(); });
}

int32_t fsdprtFailedFirst(fsdprtContext *context) {
  return context->failedFirst();
}

fsdprtStatus fsdprtExchange(fsdprtContext *context, const char *what,
                            const void *send, int64_t bytes, void *receive,
                            double timeoutSeconds) {
  return onContext(context, [&] {
    return context->exchange(what, send, bytes, receive, timeoutSeconds);
  });
}

fsdprtStatus fsdprtCollect(fsdprtContext *context, const char *what,
                           int64_t from, const void *send, int64_t bytes,
                           void *receive, double timeoutSeconds) {
  return onContext(context, [&] {
    return context->collect(what, from, send, bytes, receive, timeoutSeconds);
  });
}

fsdprtStatus fsdprtStart(fsdprtContext *context, const char *planHash) {
  return onContext(context, [&] { return context->start(planHash); });
}

fsdprtStatus fsdprtRun(fsdprtContext *context, fsdprtEntry entry,
                       void *const *arguments, void *const *results) {
  return onContext(context,
                   [&] { return context->run(entry, arguments, results); });
}

fsdprtStatus fsdprtCopyIn(fsdprtContext *context, void *data, const void *host,
                          int64_t bytes) {
  return onContext(context,
                   [&] { return context->copy(data, host, bytes, true); });
}

fsdprtStatus fsdprtCopyOut(fsdprtContext *context, void *host, const void *data,
                           int64_t bytes) {
  return onContext(context, [&] {
    return context->copy(const_cast<void *>(data), host, bytes, false);
  });
}

const char *fsdprtMessage(const fsdprtContext *context) {
  return context->message().c_str();
}

void fsdprtGetStatistics(const fsdprtContext *context,
                         fsdprtStatistics *statistics) {
  *statistics = context->statistics();
}

void fsdprtAbort(fsdprtContext *context, const char *reason) {
  (void)guarded([&] {
    context->abort(reason);
    return Status();
  });
}

void fsdprtDestroy(fsdprtContext *context) { delete context; }
