//===- Grid.cpp - ranks, their coordinates, and groups of them ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Layout/Grid.h"

using namespace mlir::fsdp;

int64_t Grid::ranks() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

std::vector<int64_t> Grid::coordinates(int64_t rank) const {
  std::vector<int64_t> result(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    result[axis] = rank % shape[axis];
    rank /= shape[axis];
  }
  return result;
}

int64_t Grid::indexInGroup(const std::vector<int64_t> &axes,
                           int64_t rank) const {
  std::vector<int64_t> own = coordinates(rank);
  int64_t index = 0;
  for (int64_t axis : axes)
    index = index * shape[axis] + own[axis];
  return index;
}

std::vector<int64_t> Grid::group(const std::vector<int64_t> &axes,
                                 int64_t rank) const {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  // Start at coordinate 0 of every axis of the group, then unfold the axes from
  // the first, which varies slowest, to the last.
  std::vector<int64_t> own = coordinates(rank);
  int64_t first = rank;
  for (int64_t axis : axes)
    first -= own[axis] * strides[axis];
  std::vector<int64_t> members = {first};
  for (int64_t axis : axes) {
    std::vector<int64_t> unfolded;
    for (int64_t member : members)
      for (int64_t i = 0; i < shape[axis]; ++i)
        unfolded.push_back(member + i * strides[axis]);
    members = std::move(unfolded);
  }
  return members;
}
