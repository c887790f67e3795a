//===- Storage.h - dtypes of less than a byte -------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of 4 and 6 bits share bytes: two have one, four have three. What a
// layout counts of them is bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIALECT_STORAGE_H
#define FSDP_DIALECT_STORAGE_H

#include "mlir/IR/Types.h"

#include <cstdint>
#include <optional>

namespace mlir::fsdp {

/// The dtypes that parameters may have, for messages.
StringRef listDtypes();

/// True for a storage type of which several elements share bytes.
bool isPackedDtype(Type type);

/// How many units of getDtypeBytes() a number of elements has: bytes if they
/// are packed, else as many. Empty if packed elements do not fill whole bytes.
std::optional<int64_t> getStorageUnits(Type type, int64_t elements);

} // namespace mlir::fsdp

#endif // FSDP_DIALECT_STORAGE_H
