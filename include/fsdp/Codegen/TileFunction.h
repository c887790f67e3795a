//===- TileFunction.h - what walks a tile plan -*- C++ -*- ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the bodies for all targets agree on: which dtypes, in which direction,
// and the order in which an element is cast, divided and added.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEFUNCTION_H
#define FSDP_CODEGEN_TILEFUNCTION_H

#include "fsdp/Codegen/FloatArithmetic.h"
#include "fsdp/Codegen/TilePlan.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

/// What the code of a tile function depends on; all else is an argument.
struct TileFunction {
  bool packs;
  SmallVector<DtypePair> pairs;
  std::optional<double> divide; ///< division in the wire dtype
  bool adds;                    ///< `split` that adds to existing shards

  /// The dtype that an element of `pair` is copied from, and to.
  Type getSource(DtypePair pair) const {
    return packs ? pair.member : pair.wire;
  }
  Type getTarget(DtypePair pair) const {
    return packs ? pair.wire : pair.member;
  }

  /// A symbol name that says all of the above.
  std::string getName() const;

  /// `value`, a scalar or vector of the source of a pair, as one of its target
  /// `to`: the cast and the division, in the op's order (the division is in the
  /// wire dtype), then the addition to `old`, which is null unless it adds.
  Value convert(const FloatArithmetic &arithmetic, OpBuilder &builder,
                Location loc, Value value, Type to, Value old) const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEFUNCTION_H
