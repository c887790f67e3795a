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

Reduction fsdprt::reductionOf(const Collective &collective, int64_t members) {
  Reduction reduction = {collective.dtype, false, 1, collective.accumulate};
  if (collective.reduction == FSDPRT_PREMUL) {
    reduction.multiply = true;
    reduction.multiplier = roundTo(collective.dtype, collective.multiplier);
  } else if (collective.reduction == FSDPRT_AVG && members > 1) {
    reduction.multiply = true;
    reduction.multiplier = roundTo(collective.dtype, 1.0 / double(members));
  }
  return reduction;
}

Status Communicator::collectives(const Call *calls, int32_t count,
                                 const void *const *send,
                                 void *const *receive) {
  for (int32_t i = 0; i < count; ++i)
    if (Status status = collective(calls[i], send[i], receive[i]);
        status.failed())
      return status;
  return {};
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

std::vector<OrderedPart> fsdprt::partsOfRow(SumOrder order,
                                            const Collective &collective,
                                            int64_t owner, int64_t members) {
  if (order == SumOrder::Rank)
    return inRankOrder(collective.count, members);
  const int64_t chunk =
      ringChunk(collective.count, members, sizeOf(collective.dtype));
  const int64_t first = owner * collective.count; // of the row, in the buffer
  std::vector<OrderedPart> parts;
  for (int64_t begin = 0, end; begin < collective.count; begin = end) {
    // Chunk c starts at the member before c and goes down, around, to c.
    const int64_t last = (first + begin) / chunk;
    end = std::min(collective.count, (last + 1) * chunk - first);
    parts.push_back({begin, end, {}});
    for (int64_t i = 0; i < members; ++i)
      parts.back().members.push_back((last + members - 1 - i) % members);
  }
  return parts;
}
