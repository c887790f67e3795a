//===- Header.h - the C header of an artefact -------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TARGET_HEADER_H
#define FSDP_TARGET_HEADER_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// The C header for the lowered `module`: prototypes of its entries, with what
/// each pointer points to. `fileName` gives the include guard.
std::string createHeader(ModuleOp module, StringRef fileName);

/// Gives each entry whose symbol is no name of C a second one, under which the
/// header declares it.
void addNamesForC(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_TARGET_HEADER_H
