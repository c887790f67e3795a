//===- OutOfMemory.h - what a tool says where there is no memory -*- C++ -*-==//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SUPPORT_OUTOFMEMORY_H
#define FSDP_SUPPORT_OUTOFMEMORY_H

#include "llvm/Support/ErrorHandling.h"

#include <cstring>
#include <initializer_list>
#include <unistd.h>

namespace mlir::fsdp {

/// Ends the tool `name` with a sentence, where LLVM would with a report of a
/// crash. Nothing here needs memory. After llvm::InitLLVM, which lets `new`
/// report to the same handler.
inline void installOutOfMemoryHandler(const char *name) {
  llvm::install_bad_alloc_error_handler(
      [](void *name, const char *, bool) {
        for (const char *part :
             {static_cast<const char *>(name), ": error: out of memory\n"})
          (void)!::write(STDERR_FILENO, part, std::strlen(part));
        _exit(1);
      },
      const_cast<char *>(name));
}

} // namespace mlir::fsdp

#endif // FSDP_SUPPORT_OUTOFMEMORY_H
