//===- MachineCode.h - from the LLVM dialect to bytes -----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TARGET_MACHINECODE_H
#define FSDP_TARGET_MACHINECODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::fsdp {

/// How much LLVM optimises. Which bits a program computes does not depend on
/// it.
enum class CodegenLevel { None, Full };

/// The object file of `module`, which is in the LLVM dialect, for `cpu`, an
/// x86-64 processor or level. Only the artefact's interface is visible outside.
llvm::Expected<SmallVector<char, 0>>
createObject(ModuleOp module, StringRef cpu, CodegenLevel level);

/// Links an object file and libfsdprt, which is in `libraryDir`, to a shared
/// library. `path` is what messages call it.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
linkArtefact(ArrayRef<char> object, StringRef libraryDir, StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_TARGET_MACHINECODE_H
