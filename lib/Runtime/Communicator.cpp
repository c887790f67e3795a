//===- Communicator.cpp - calls, their sentences, and groups of ranks -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Communicator.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <numeric>

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

Reduction fsdprt::reductionOf(const Call &call, int64_t members) {
  Reduction reduction = {call.dtype, false, 1, call.accumulate};
  if (call.reduction == FSDPRT_PREMUL) {
    reduction.multiply = true;
    reduction.multiplier = roundTo(call.dtype, call.multiplier);
  } else if (call.reduction == FSDPRT_AVG && members > 1) {
    reduction.multiply = true;
    reduction.multiplier = roundTo(call.dtype, 1.0 / double(members));
  }
  return reduction;
}

bool fsdprt::parseSumOrder(const std::string &name, SumOrder &order) {
  order = name == "ring" ? SumOrder::Ring : SumOrder::Rank;
  return name == "rank" || name == "ring";
}

std::vector<OrderedPart> fsdprt::inRankOrder(int64_t count, int64_t members) {
  OrderedPart whole = {0, count, std::vector<int64_t>(members)};
  std::iota(whole.members.begin(), whole.members.end(), 0);
  return {whole};
}

/// Elements in a member's chunk of Gloo's ring, which runs over all rows as one
/// buffer. The chunk is made of equal segments: two at least, so that one is
/// sent while another one is added, and more where they would exceed 1 MiB. So
/// it is a row, or where segments do not divide the row a few elements more.
static int64_t ringChunk(int64_t count, int64_t members, int64_t element) {
  const int64_t megabyte = 1 << 20;
  const int64_t bytes = count * members * element;
  const int64_t segments = std::max<int64_t>(
      2, ((bytes + megabyte - 1) / megabyte + members - 1) / members);
  return (count + segments - 1) / segments * segments;
}

std::vector<OrderedPart> fsdprt::partsOfRow(SumOrder order, const Call &call,
                                            int64_t owner, int64_t members) {
  if (order == SumOrder::Rank)
    return inRankOrder(call.count, members);
  const int64_t chunk = ringChunk(call.count, members, sizeOf(call.dtype));
  const int64_t first = owner * call.count; // of the row, in the buffer
  std::vector<OrderedPart> parts;
  for (int64_t begin = 0, end; begin < call.count; begin = end) {
    // Chunk c starts at the member before c and goes down, around, to c.
    const int64_t last = (first + begin) / chunk;
    end = std::min(call.count, (last + 1) * chunk - first);
    parts.push_back({begin, end, {}});
    for (int64_t i = 0; i < members; ++i)
      parts.back().members.push_back((last + members - 1 - i) % members);
  }
  return parts;
}

int64_t Grid::ranks() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

std::vector<int64_t> Grid::coordinates(int64_t rank) const {
  std::vector<int64_t> result(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    result[axis] = rank % shape[axis];
    rank /= shape[axis];
  }
  return result;
}

std::vector<int64_t> Grid::group(const std::vector<int32_t> &axes,
                                 int64_t rank) const {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  // Start at coordinate 0 of every axis of the group, then unfold the axes from
  // the first, which varies slowest, to the last.
  std::vector<int64_t> own = coordinates(rank);
  int64_t first = rank;
  for (int32_t axis : axes)
    first -= own[axis] * strides[axis];
  std::vector<int64_t> members = {first};
  for (int32_t axis : axes) {
    std::vector<int64_t> unfolded;
    for (int64_t member : members)
      for (int64_t i = 0; i < shape[axis]; ++i)
        unfolded.push_back(member + i * strides[axis]);
    members = std::move(unfolded);
  }
  return members;
}
