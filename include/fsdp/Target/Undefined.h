//===- Undefined.h - what an artefact calls and nothing defines -*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TARGET_UNDEFINED_H
#define FSDP_TARGET_UNDEFINED_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Fails after an error at the first op of `module`, which is in the LLVM
/// dialect, that refers to a symbol which neither the module defines nor what
/// an artefact is linked with.
LogicalResult checkSymbolsAreDefined(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_TARGET_UNDEFINED_H
