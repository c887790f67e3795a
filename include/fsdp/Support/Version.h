//===- Version.h - what every tool prints for --version ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three numbers: the project's, LLVM's, which decides what a compiled program
// looks like, and the runtime ABI's, which decides whether it can be started.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SUPPORT_VERSION_H
#define FSDP_SUPPORT_VERSION_H

#include "fsdp/Runtime/Runtime.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {

/// Makes `--version` of the tool `name` print ours. Before the command line is
/// parsed.
inline void setVersionPrinter(const char *name) {
  llvm::cl::SetVersionPrinter([name](llvm::raw_ostream &os) {
    os << name << ", fsdp-opt version " << FSDP_VERSION << "\nLLVM version "
       << LLVM_VERSION_STRING << "\nruntime ABI version " << FSDPRT_ABI_VERSION
       << "\n";
  });
}

} // namespace mlir::fsdp

#endif // FSDP_SUPPORT_VERSION_H
