//===- TileBodyCpu.h - the code that walks a tile plan -*- C++ -*- --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEBODYCPU_H
#define FSDP_CODEGEN_TILEBODYCPU_H

#include "fsdp/Codegen/TilePlan.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

/// What the code of a tile function depends on; all else is an argument.
struct TileFunction {
  bool packs;
  SmallVector<DtypePair> pairs;
  std::optional<double> divide; ///< division in the wire dtype
  bool adds;                    ///< `split` that adds to existing shards

  /// A symbol name that says all of the above.
  std::string getName() const;

  /// Creates the function for the CPU at the insertion point:
  ///
  ///   name(members, old, bucket, tiles, numTiles, rows, rowBytes, granule,
  ///        rowsOutside)
  ///
  /// `members` points to one pointer per member, `old` to one pointer per
  /// existing shard (not read unless `adds`), `bucket` to the first row,
  /// `tiles` to the records. `rowsOutside` (i1) says which loop is the outer
  /// one: the rows, or the tiles.
  LLVM::LLVMFuncOp build(OpBuilder &builder, Location loc) const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEBODYCPU_H
