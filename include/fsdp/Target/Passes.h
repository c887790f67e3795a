//===- Passes.h - passes that make an artefact -----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TARGET_PASSES_H
#define FSDP_TARGET_PASSES_H

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Pass/Pass.h"

namespace mlir::fsdp {

#define GEN_PASS_DECL
#include "fsdp/Target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fsdp/Target/Passes.h.inc"

} // namespace mlir::fsdp

#endif // FSDP_TARGET_PASSES_H
