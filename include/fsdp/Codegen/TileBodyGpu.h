//===- TileBodyGpu.h - the kernel that walks a tile plan -*- C++ -*- ------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEBODYGPU_H
#define FSDP_CODEGEN_TILEBODYGPU_H

#include "fsdp/Codegen/GpuBuilder.h"
#include "fsdp/Codegen/TileFunction.h"

namespace mlir::fsdp {

/// A kernel for one local op. Its parameters are
///
///   addresses   one per member, then, if it adds, one per existing shard:
///               by value, an array in the kernel's parameter space
///   bucket      the first row
struct TileKernel {
  std::string name;
  TileFunction function;
  const TilePlan &plan;
  bool emulate;
  bool waits; ///< for the kernel before it, on chips that do not by nature

  /// True if the grid is (rows, tiles) and not (tiles, rows): then blocks of
  /// all rows of a tile run together, and share what they read of it.
  bool rowsFirst() const {
    return plan.hasSharedSectors() &&
           static_cast<int64_t>(plan.tiles.size()) <= kMaxRows;
  }

  /// Addresses in the parameter.
  int64_t numAddresses(int64_t numMembers) const {
    return function.adds ? 2 * numMembers : numMembers;
  }

  /// Creates the kernel at the insertion point, where the plan's records are in
  /// the global `table`. Emulated, it is a function of the host with the same
  /// parameters, the array by address, that runs all blocks and threads.
  LLVM::LLVMFuncOp build(OpBuilder &builder, Location loc, LLVM::GlobalOp table,
                         int64_t numMembers) const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEBODYGPU_H
