//===- Records.h - collectives as tests call them ---------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_RECORDS_H
#define FSDP_UNITTESTS_RUNTIME_RECORDS_H

#include "fsdp/Runtime/Runtime.h"

#include <vector>

namespace fsdprt::test {

/// The collectives of the tests below: a record each, as an artefact has it.
using Axes = std::vector<int32_t>;

inline fsdprtCollective record(fsdprtCollectiveKind kind, const char *bucket,
                               const Axes &axes, int32_t dtype, int64_t count,
                               int32_t reduction = FSDPRT_SUM,
                               double multiplier = 0, int32_t accumulate = 0) {
  return {sizeof(fsdprtCollective),
          kind,
          dtype,
          reduction,
          accumulate,
          static_cast<int32_t>(axes.size()),
          count,
          multiplier,
          bucket,
          axes.data()};
}

inline fsdprtStatus run(fsdprtContext *context, const fsdprtCollective &record,
                        const void *send, void *receive) {
  const fsdprtCollective *records[] = {&record};
  return fsdprtRunCollectives(context, records, 1, &send, &receive);
}

inline fsdprtStatus allGather(fsdprtContext *context, const char *bucket,
                              const Axes &axes, int32_t dtype, int64_t count,
                              const void *send, void *receive) {
  return run(context, record(FSDPRT_ALL_GATHER, bucket, axes, dtype, count),
             send, receive);
}

inline fsdprtStatus reduceScatter(fsdprtContext *context, const char *bucket,
                                  const Axes &axes, int32_t dtype,
                                  int64_t count, int32_t reduction,
                                  double multiplier, int32_t accumulate,
                                  const void *send, void *receive) {
  return run(context,
             record(FSDPRT_REDUCE_SCATTER, bucket, axes, dtype, count,
                    reduction, multiplier, accumulate),
             send, receive);
}

inline fsdprtStatus allReduce(fsdprtContext *context, const char *bucket,
                              const Axes &axes, int32_t dtype, int64_t count,
                              int32_t reduction, double multiplier,
                              int32_t accumulate, const void *send,
                              void *receive) {
  return run(context,
             record(FSDPRT_ALL_REDUCE, bucket, axes, dtype, count, reduction,
                    multiplier, accumulate),
             send, receive);
}

} // namespace fsdprt::test

#endif // FSDP_UNITTESTS_RUNTIME_RECORDS_H
