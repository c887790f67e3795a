//===- PackStorage.h - elements of less than a byte, as bytes ---*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CONVERSION_PACKSTORAGE_H
#define FSDP_LIB_CONVERSION_PACKSTORAGE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Writes tensors and parameters of packed elements as such of bytes; refuses
/// an op that would compute with such elements.
LogicalResult packStorage(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CONVERSION_PACKSTORAGE_H
