//===- CastFolding.h - may this cast be folded into a local op -*- C++ -*- ===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that decides whether a local op may do the work of the cast
// beside it. fsdp-fuse-casts acts on the answer; fsdp-verify-stage refuses a
// packed module for which it is still yes.
//
// A local op converts between a member's tensor and its wire dtype with one
// rounding. It may take over a neighbouring cast only where that leaves the
// number of roundings, and so every bit, as it was.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_CASTFOLDING_H
#define FSDP_ANALYSIS_CASTFOLDING_H

#include "fsdp/Dialect/Fsdp.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

/// True if every value of the dtype `from` is a value of `to`.
bool isExactCast(Type from, Type to);

/// The cast beside a member's operand or result of a local op.
struct AdjacentCast {
  /// On the operand's side the one cast that the op reads. On the result's
  /// side all casts that read the op.
  SmallVector<Operation *, 1> casts;
  /// Why they must stay, as the end of "the cast stays: ..."; empty if they
  /// may be folded.
  std::string whyKeep;
  /// What the op reads instead; only on the operand's side.
  Value source;
  /// The type that the result then has; only on the result's side.
  Type type;

  bool isFoldable() const { return whyKeep.empty(); }
};

/// The cast that `value`, the operand of a concat or chunk_cat `op` for
/// `member`, comes from, or that `value`, a result of split or unchunk, goes
/// to; empty if there is none or if `op` is in buffer form. Folding may bring
/// the next cast beside `op`, so ask again afterwards.
std::optional<AdjacentCast> getAdjacentCast(LocalOpInterface op, Value value,
                                            const BucketMember &member);

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_CASTFOLDING_H
