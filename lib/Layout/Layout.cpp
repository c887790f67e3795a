//===- Layout.cpp - where every element of a sharded parameter is ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Layout/Layout.h"

#include <algorithm>

using namespace mlir::fsdp;

/// Counts stay below this, so that a sum or a doubling of two never overflows.
static constexpr int64_t kLimit = int64_t(1) << 62;

/// a * b, or nothing if it reaches the limit.
static std::optional<int64_t> multiply(std::optional<int64_t> a,
                                       std::optional<int64_t> b) {
  int64_t product;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product) || product >= kLimit)
    return std::nullopt;
  return product;
}

bool mlir::fsdp::isValidAlign(int64_t align) {
  return align >= 1 && align <= kMaxAlign && (align & (align - 1)) == 0;
}

int64_t mlir::fsdp::roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::optional<ParamLayout> ParamLayout::get(const std::vector<int64_t> &shape,
                                            int64_t dim, int64_t ranks) {
  int64_t rank = static_cast<int64_t>(shape.size());
  if (dim < 0 || dim >= rank || ranks <= 0)
    return std::nullopt;
  std::optional<int64_t> outer = 1, rest = 1;
  for (int64_t i = 0; i < rank; ++i) {
    if (shape[i] < 0 || shape[i] >= kLimit)
      return std::nullopt;
    if (i < dim)
      outer = multiply(outer, shape[i]);
    if (i > dim)
      rest = multiply(rest, shape[i]);
  }
  int64_t size = shape[dim];
  int64_t chunk = size / ranks + (size % ranks != 0);
  std::optional<int64_t> inner = multiply(chunk, rest);
  std::optional<int64_t> line = multiply(size, rest);
  std::optional<int64_t> elements = multiply(outer, inner);
  // The padded whole must be countable too: fullIndex goes up to inner * ranks.
  if (!elements || !line || !multiply(outer, multiply(inner, ranks)))
    return std::nullopt;
  return ParamLayout{ranks, dim,    size,  chunk,    *outer,
                     *rest, *inner, *line, *elements};
}

int64_t ParamLayout::trueExtent(int64_t rank) const {
  return std::max<int64_t>(0, std::min(chunk, dimSize - rank * chunk));
}

int64_t ParamLayout::validInner(int64_t rank) const {
  return trueExtent(rank) * rest;
}

int64_t ParamLayout::fullIndex(int64_t rank, int64_t index) const {
  int64_t run = index / inner;
  int64_t column = rank * inner + index % inner;
  return column < line ? run * line + column : -1;
}

std::optional<BucketLayout>
BucketLayout::get(const std::vector<SegmentSize> &members, int64_t ranks,
                  int64_t wireBytes, int64_t align) {
  BucketLayout layout{ranks, align, wireBytes, {}, 0};
  layout.segments.reserve(members.size());
  for (const SegmentSize &member : members)
    if (!layout.append(member))
      return std::nullopt;
  return layout;
}

bool BucketLayout::append(const SegmentSize &member) {
  std::optional<int64_t> bytes = multiply(member.elements, member.elementBytes);
  // A row ends where the next segment would start.
  int64_t offset = rowBytes;
  if (!bytes || offset + *bytes >= kLimit)
    return false;
  int64_t end = roundUp(offset + *bytes, align);
  if (!multiply(end, ranks))
    return false;
  segments.push_back({offset, member.elements, member.elementBytes});
  rowBytes = end;
  return true;
}

int64_t BucketLayout::gapBytes() const {
  int64_t used = 0;
  for (const Segment &segment : segments)
    used += segment.bytes();
  return rowBytes - used;
}
