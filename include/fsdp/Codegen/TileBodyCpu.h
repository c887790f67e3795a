//===- TileBodyCpu.h - a tile plan walked by the CPU -*- C++ -*- ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEBODYCPU_H
#define FSDP_CODEGEN_TILEBODYCPU_H

#include "fsdp/Codegen/TileFunction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::fsdp {

/// Creates `function` for the CPU at the insertion point:
///
///   name(members, old, bucket, tiles, numTiles, rows, rowBytes, granule,
///        rowsOutside)
///
/// `members` points to one pointer per member, `old` to one pointer per
/// existing shard (not read unless `adds`), `bucket` to the first row, `tiles`
/// to the records. `rowsOutside` (i1) says which loop is the outer one: the
/// rows, or the tiles.
LLVM::LLVMFuncOp buildTileFunction(const TileFunction &function,
                                   OpBuilder &builder, Location loc);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEBODYCPU_H
