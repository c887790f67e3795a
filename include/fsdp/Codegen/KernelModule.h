//===- KernelModule.h - where kernels live, and their launches --*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_KERNELMODULE_H
#define FSDP_CODEGEN_KERNELMODULE_H

#include "fsdp/Codegen/GpuChip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fsdp {

/// The kernels of one module: in its one `gpu.module`, or, emulated, functions
/// of the host.
class KernelModule {
public:
  /// `chip` is null where kernels are emulated; `features` name a version of
  /// PTX.
  KernelModule(ModuleOp module, SymbolTableCollection &symbolTables,
               const GpuChip *chip, StringRef features)
      : module(module), symbolTables(symbolTables), chip(chip),
        features(features) {}

  bool isEmulated() const { return !chip; }
  /// Whether a kernel has to wait for the one in front of it.
  bool waits() const { return chip && chip->hasProgrammaticLaunch(); }

  /// Addresses of one kernel, which an old version of PTX may limit further.
  int64_t maxAddresses();

  /// Where kernels and their tables are put; created when first asked for.
  Operation *getParent();
  /// A builder that adds to it.
  OpBuilder atEnd() {
    return OpBuilder::atBlockEnd(&getParent()->getRegion(0).front());
  }
  /// Gives `symbol`, which is in the parent, a name of its own.
  void insert(Operation *symbol) {
    symbolTables.getSymbolTable(getParent()).insert(symbol);
  }

  /// Runs `kernel` on columns x rows blocks, or rows x columns if it has been
  /// built as `rowsFirst`. Its first parameter is the
  /// array of words at `words`, its second one is the pointer `operand`.
  void run(ImplicitLocOpBuilder &b, LLVM::LLVMFuncOp kernel, Value words,
           Value operand, int64_t columns, int64_t rows,
           bool rowsFirst = false);

private:
  ModuleOp module;
  SymbolTableCollection &symbolTables;
  const GpuChip *chip;
  std::string features;
  gpu::GPUModuleOp gpuModule;
};

/// The chip of that name, and `features` written where none were given: the
/// oldest version of PTX that knows the chip and has room for `parameterBytes`
/// bytes of parameters. Emits an error at `module` and returns null where the
/// chip is not known, or the features are none of its.
const GpuChip *checkChip(ModuleOp module, StringRef name,
                         int64_t parameterBytes, std::string &features);

/// An array of 64-bit words in the frame of `function`, so that a loop around
/// the use does not grow the stack: the addresses of buffers, and other words
/// (i64) as they are.
Value createWordArray(ImplicitLocOpBuilder &b, FunctionOpInterface function,
                      ValueRange values);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_KERNELMODULE_H
