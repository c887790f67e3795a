//===- ElementwiseToKernels.h - arithmetic becomes kernels ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_ELEMENTWISETOKERNELS_H
#define FSDP_CONVERSION_ELEMENTWISETOKERNELS_H

#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {

/// Adds the patterns that convert-elementwise-to-kernels applies: `linalg` ops
/// on buffers, and copies of strided buffers, become kernels, in two steps.
/// They are plain rewrite patterns, which convert no type. Kernels are made in
/// `module` and shared by all ops in it, so they are for a pass on the module.
/// Emits an error at `module` and fails where the chip or the features of
/// `options` are not known.
LogicalResult populateElementwiseToKernelsPatterns(
    RewritePatternSet &patterns, ModuleOp module,
    const ElementwiseToKernelsPassOptions &options = {});

/// Emits an error at `op`, a `linalg` op on buffers, or at an op in it, and
/// fails where the patterns do not match.
LogicalResult checkElementwiseToKernels(linalg::LinalgOp op);

} // namespace mlir::fsdp

#endif // FSDP_CONVERSION_ELEMENTWISETOKERNELS_H
