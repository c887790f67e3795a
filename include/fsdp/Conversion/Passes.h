//===- Passes.h - passes that leave the dialect ----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_PASSES_H
#define FSDP_CONVERSION_PASSES_H

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {

/// What `convert-fsdp-to-tiles` makes of the local ops.
enum class TileTarget { Cpu, Cuda, Emulate };

#define GEN_PASS_DECL
#include "fsdp/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fsdp/Conversion/Passes.h.inc"

} // namespace mlir::fsdp

#endif // FSDP_CONVERSION_PASSES_H
