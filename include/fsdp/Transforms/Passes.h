//===- Passes.h - passes on values -*- C++ -*- ----------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TRANSFORMS_PASSES_H
#define FSDP_TRANSFORMS_PASSES_H

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {

/// What is legal in a unit, and what an absent reduce dtype means.
enum class Profile { PerParam, Stable, GradDtype };
/// What becomes of trainable parameters without a gradient.
enum class Unused { Skip, Zero };
/// Dtype of the running sum of a 16-bit reduction.
enum class Accumulate { Wire, F32 };
/// Whether a reduction divides its terms or their sum.
enum class Average { Before, After };

#define GEN_PASS_DECL
#include "fsdp/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fsdp/Transforms/Passes.h.inc"

} // namespace mlir::fsdp

#endif // FSDP_TRANSFORMS_PASSES_H
