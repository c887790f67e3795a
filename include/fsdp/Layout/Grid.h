//===- Grid.h - ranks, their coordinates, and groups of them ----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAYOUT_GRID_H
#define FSDP_LAYOUT_GRID_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlir::fsdp {

/// The device grid. Ranks are numbered row major over its axes. The group of a
/// rank along some axes, in the order in which they are listed, is numbered row
/// major over those.
struct Grid {
  std::vector<int64_t> shape;

  /// All ranks.
  int64_t ranks() const;
  /// Ranks in a group along `axes`. Their product must fit.
  template <typename Axes>
  int64_t groupSize(const Axes &axes) const {
    int64_t product = 1;
    for (int64_t axis : axes)
      product *= shape[axis];
    return product;
  }
  std::vector<int64_t> coordinates(int64_t rank) const;
  /// The number of `rank` in its group along `axes`.
  int64_t indexInGroup(const std::vector<int64_t> &axes, int64_t rank) const;
  /// The ranks of the group along `axes` that `rank` is in, in the group's
  /// order.
  std::vector<int64_t> group(const std::vector<int64_t> &axes,
                             int64_t rank) const;
};

} // namespace mlir::fsdp

#endif // FSDP_LAYOUT_GRID_H
