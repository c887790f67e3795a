//===- Printable.h - names of others, for people ----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SUPPORT_PRINTABLE_H
#define FSDP_SUPPORT_PRINTABLE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::fsdp {

/// `text` with all that would move a terminal's cursor or hide itself as \XX: a
/// name out of a file must not pass for a line of ours. Line breaks of a whole
/// message stay if `isMessage`.
std::string printable(llvm::StringRef text, bool isMessage = false);

} // namespace mlir::fsdp

#endif // FSDP_SUPPORT_PRINTABLE_H
