//===- Artefact.h - a shared library that fsdp-compile wrote ----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_ARTEFACT_H
#define FSDP_LAUNCHER_ARTEFACT_H

#include "fsdp/Runtime/Runtime.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fsdp::launch {

/// What can be read from the file without loading it: loading one of another
/// ABI version would fail with the dynamic linker's words instead of ours.
struct Artefact {
  std::string path;
  int32_t abi = 0;
  std::string manifest;

  static llvm::Expected<Artefact> read(llvm::StringRef path);

  /// Loads the file, for the rest of the process, and finds an entry.
  llvm::Expected<fsdprtEntry> load(llvm::StringRef entry) const;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_ARTEFACT_H
