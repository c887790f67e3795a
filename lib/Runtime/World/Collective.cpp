//===- Collective.cpp - the sentences of collectives ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Collective.h"

#include <cstdio>
#include <cstring>

using namespace fsdprt;

const char *fsdprt::nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllReduce:
    return "all_reduce";
  }
  return "";
}

static const char *nameOf(fsdprtDtype dtype) {
  switch (dtype) {
  case FSDPRT_F16:
    return "f16";
  case FSDPRT_BF16:
    return "bf16";
  case FSDPRT_F32:
    return "f32";
  case FSDPRT_F64:
    return "f64";
  case FSDPRT_BYTES:
    break;
  }
  return "bytes";
}

std::string fsdprt::describe(const Call &call) {
  std::string text = "call " + std::to_string(call.number) + ", " +
                     nameOf(call.kind) + " of bucket '" + call.bucket + "', " +
                     std::to_string(call.count);
  if (call.dtype == FSDPRT_BYTES)
    text += " bytes";
  else
    text += std::string(" x ") + nameOf(call.dtype);
  if (call.kind == CollectiveKind::AllGather)
    return text;
  switch (call.reduction) {
  case FSDPRT_SUM:
    text += ", sum";
    break;
  case FSDPRT_AVG:
    text += ", avg";
    break;
  case FSDPRT_PREMUL:
    char number[40];
    std::snprintf(number, sizeof(number), ", premul %.17g", call.multiplier);
    text += number;
    break;
  }
  if (call.accumulate)
    text += ", accumulate f32";
  return text;
}

bool fsdprt::agree(const Call &a, const Call &b) {
  if (a.kind != b.kind || a.bucket != b.bucket || a.dtype != b.dtype ||
      a.count != b.count)
    return false;
  if (a.kind == CollectiveKind::AllGather)
    return true;
  // Constants of one program: equal bits, so that a NaN agrees with itself.
  return a.reduction == b.reduction && a.accumulate == b.accumulate &&
         (a.reduction != FSDPRT_PREMUL ||
          std::memcmp(&a.multiplier, &b.multiplier, sizeof(double)) == 0);
}
