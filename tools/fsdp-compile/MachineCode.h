//===- MachineCode.h - from the LLVM dialect to a file ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_FSDP_COMPILE_MACHINECODE_H
#define FSDP_TOOLS_FSDP_COMPILE_MACHINECODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::fsdp {

/// How much LLVM optimises. Which bits a program computes does not depend on
/// it.
enum class CodegenLevel { None, Full };

/// Writes `module`, in the LLVM dialect, to the object file `path`, for `cpu`,
/// an x86-64 processor or level. Only the artefact's interface is visible
/// outside.
llvm::Error writeObject(ModuleOp module, StringRef cpu, CodegenLevel level,
                        StringRef path);

/// Links the object file `object` and libfsdprt, which stands in `libraryDir`,
/// into the shared library `path`.
llvm::Error linkArtefact(StringRef object, StringRef libraryDir,
                         StringRef path);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_FSDP_COMPILE_MACHINECODE_H
