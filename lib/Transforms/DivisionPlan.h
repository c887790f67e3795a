//===- DivisionPlan.h - where a reduction divides ---------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reduced gradient is the sum over all ranks divided by D, once. Where the
// division is carried out depends on the wire dtype and on how D was given:
//
//   wire      reduction         chunk_cat  reduce_scatter  all_reduce  split
//   any       D = 1             -          sum             sum         -
//   bf16 ...  avg               -          avg (W=1: sum)  avg         -
//   bf16 ...  avg, factor W     -          avg             sum         -
//   bf16 ...  avg, factor f     -          premul 1/f      sum         -
//   bf16 ...  sum, factor f     -          sum             sum         f
//   f16       D != 1            q          sum             sum         D/q
//
// f16 divides by about the square root of D before the sum, so that the sum
// does not overflow, and by the rest afterwards, so that small values survive.
//
// With `average=after` there is one row for every wire:
//
//   any       D != 1            -          sum             sum         D
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_TRANSFORMS_DIVISIONPLAN_H
#define FSDP_LIB_TRANSFORMS_DIVISIONPLAN_H

#include "fsdp/Transforms/Passes.h"

namespace mlir::fsdp {

/// How one bucket's division is carried out. What is absent is not done.
struct DivisionPlan {
  double divisor; ///< D
  std::optional<double> divide;
  ReduceOp reduceScatter = ReduceOp::sum;
  std::optional<double> premul; ///< rounded to the wire dtype
  std::optional<ReduceOp> allReduce;
  std::optional<double> splitDivide;

  /// The row of the table for gradients of `unit` reduced in `wire`. Fails if
  /// the unit's divide factor does not fit the dtype in which `wire` divides.
  static FailureOr<DivisionPlan> get(UnitOp unit, const UnitGroup &group,
                                     Type wire, Average average);

  /// What rounding does to a mean whose terms are multiplied by a reciprocal.
  struct Bias {
    double divisor; ///< whose reciprocal is not exact; the first one of two
    double share;   ///< of the mean: 0.002 is 0.2 % too much
  };

  /// The bias of a 16-bit `wire`; none if all multipliers are exact.
  std::optional<Bias> getBias(const UnitGroup &group, Type wire) const;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_TRANSFORMS_DIVISIONPLAN_H
