//===- ElementwiseKernel.h - kernels of elementwise ops ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_ELEMENTWISEKERNEL_H
#define FSDP_CODEGEN_ELEMENTWISEKERNEL_H

#include "fsdp/Codegen/Elementwise.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <string>

namespace mlir::fsdp {

/// A kernel for one elementwise op, and for all others of its key. The words
/// that it takes are those of getWords, then those of getStrideWords, then, if
/// it is linear, the number of elements; its second parameter is not read.
struct ElementwiseKernel {
  const Elementwise &loops;
  bool emulate;
  bool waits; ///< for the kernel in front of it

  /// Equal for ops that can share a kernel.
  std::string getKey() const;
  /// A symbol name that says what is computed.
  std::string getName() const;
  /// Blocks of the grid.
  int64_t numBlocks() const;
  /// Operands that are passed, as places in `loops.operands`: all but the
  /// constants, which are in the code.
  SmallVector<unsigned> getWords() const;
  /// Strides that are not known: places of operands and of loops.
  SmallVector<std::pair<unsigned, unsigned>> getStrideWords() const;

  /// Creates the kernel at the insertion point.
  LLVM::LLVMFuncOp build(OpBuilder &builder, Location loc) const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_ELEMENTWISEKERNEL_H
