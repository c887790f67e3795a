//===- Communicator.cpp - the order in which terms are added --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/Communicator.h"

#include <algorithm>
#include <numeric>

using namespace fsdprt;

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
