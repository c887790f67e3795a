//===- Collective.cpp - the sentences of collectives ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Collective.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace fsdprt;
using mlir::fsdp::Grid;

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
  return "call " + std::to_string(call.number) + ", " +
         describe(*call.collective);
}

std::string fsdprt::describe(const Collective &collective) {
  std::string text = std::string(nameOf(collective.kind)) + " of bucket '" +
                     collective.bucket + "', " +
                     std::to_string(collective.count);
  if (collective.dtype == FSDPRT_BYTES)
    text += " bytes";
  else
    text += std::string(" x ") + nameOf(collective.dtype);
  if (collective.kind == CollectiveKind::AllGather)
    return text;
  switch (collective.reduction) {
  case FSDPRT_SUM:
    text += ", sum";
    break;
  case FSDPRT_AVG:
    text += ", avg";
    break;
  case FSDPRT_PREMUL:
    char number[40];
    std::snprintf(number, sizeof(number), ", premul %.17g",
                  collective.multiplier);
    text += number;
    break;
  }
  if (collective.accumulate)
    text += ", accumulate f32";
  return text;
}

bool fsdprt::agree(const Collective &a, const Collective &b) {
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

Status fsdprt::checkRecord(const fsdprtCollective &record, const Grid &grid,
                           Collective &collective) {
  auto invalid = [](std::string why) {
    return Status{FSDPRT_INVALID_ARGUMENT, std::move(why)};
  };
  // Whatever else a later version may say, these come first in it.
  if (record.size != sizeof(record))
    return invalid("a record of " + std::to_string(record.size) +
                   " bytes, expected " + std::to_string(sizeof(record)));
  if (record.kind < FSDPRT_ALL_GATHER || record.kind > FSDPRT_ALL_REDUCE)
    return invalid("no collective has number " + std::to_string(record.kind));
  collective.kind = static_cast<CollectiveKind>(record.kind);
  collective.bucket = record.bucket ? record.bucket : "";
  const bool reduces = collective.kind != CollectiveKind::AllGather;
  auto of = [&](const std::string &why) {
    return invalid(std::string(nameOf(collective.kind)) + " of bucket '" +
                   collective.bucket + "': " + why);
  };
  if (record.dtype < FSDPRT_F16 || record.dtype > FSDPRT_BYTES)
    return of("no dtype has number " + std::to_string(record.dtype));
  if (record.reduction < FSDPRT_SUM || record.reduction > FSDPRT_PREMUL)
    return of("no reduction has number " + std::to_string(record.reduction));
  if (record.axisCount < 0 || (record.axisCount > 0 && !record.axes))
    return of("a list of " + std::to_string(record.axisCount) + " axes" +
              (record.axisCount < 0 ? "" : " at a null address"));
  for (int32_t i = 0; i < record.axisCount; ++i) {
    const int64_t axis = record.axes[i];
    const std::vector<int64_t> &axes = collective.axes;
    if (axis < 0 || axis >= int64_t(grid.shape.size()) ||
        std::find(axes.begin(), axes.end(), axis) != axes.end())
      return of("axis " + std::to_string(axis) + " at place " +
                std::to_string(i) + ", expected axes of a grid with " +
                std::to_string(grid.shape.size()) + " axes, each once");
    collective.axes.push_back(axis);
  }
  collective.dtype = static_cast<fsdprtDtype>(record.dtype);
  collective.count = record.count;
  if (record.count < 0 ||
      record.count > INT64_MAX / 16 / grid.groupSize(collective.axes))
    return of("the count is out of range");
  if (!reduces)
    return {};
  collective.reduction = static_cast<fsdprtReduction>(record.reduction);
  collective.multiplier = record.multiplier;
  collective.accumulate = record.accumulate != 0;
  if (collective.dtype == FSDPRT_BYTES)
    return invalid(describe(collective) + ": bytes cannot be reduced");
  if (collective.reduction == FSDPRT_PREMUL &&
      !(std::isfinite(record.multiplier) && record.multiplier > 0))
    return invalid(describe(collective) +
                   ": the multiplier is not positive and finite");
  return {};
}

bool fsdprt::isCopyOf(const Collective &collective,
                      const fsdprtCollective &record) {
  if (record.size != sizeof(record) ||
      record.kind != static_cast<int32_t>(collective.kind) ||
      record.dtype != collective.dtype || record.count != collective.count ||
      record.axisCount != static_cast<int32_t>(collective.axes.size()) ||
      (record.axisCount > 0 && !record.axes) ||
      collective.bucket.compare(record.bucket ? record.bucket : "") != 0 ||
      !std::equal(collective.axes.begin(), collective.axes.end(), record.axes))
    return false;
  if (collective.kind == CollectiveKind::AllGather)
    return true;
  return record.reduction == collective.reduction &&
         (record.accumulate != 0) == collective.accumulate &&
         std::memcmp(&record.multiplier, &collective.multiplier,
                     sizeof(double)) == 0;
}
