//===- FsdpToTiles.h - lower local ops to loops over tiles ---*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_FSDPTOTILES_H
#define FSDP_CONVERSION_FSDPTOTILES_H

#include "fsdp/Conversion/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {

/// Adds the pattern that convert-fsdp-to-tiles applies: a local op on buffers
/// becomes code for a target. It is a plain rewrite pattern, which converts no
/// type and works with any driver. Functions, tables and kernels are made in
/// `module`, around all ops that it is applied to, and shared by them, so it is
/// for a pass on the module. Emits an error at `module` and fails where the
/// chip or the features of `options` are not known.
LogicalResult
populateFsdpToTilesPatterns(RewritePatternSet &patterns, ModuleOp module,
                            const FsdpToTilesPassOptions &options = {});

/// Emits an error at `op` and fails where the pattern does not match.
LogicalResult checkFsdpToTiles(LocalOpInterface op,
                               const FsdpToTilesPassOptions &options = {});

} // namespace mlir::fsdp

#endif // FSDP_CONVERSION_FSDPTOTILES_H
