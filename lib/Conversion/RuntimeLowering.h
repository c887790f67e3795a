//===- RuntimeLowering.h - what the patterns share --------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CONVERSION_RUNTIMELOWERING_H
#define FSDP_LIB_CONVERSION_RUNTIMELOWERING_H

#include "BufferArguments.h"
#include "fsdp/Conversion/FsdpToRuntime.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fsdp {

/// What `RuntimeLowering` knows of the functions that reach the runtime.
struct RuntimeLowering::State {
  State(ModuleOp module, const FsdpToRuntimePassOptions &options)
      : module(module), deviceMemory(options.deviceMemory), calls(module),
        typeConverter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  bool reachesRuntime(Operation *op) const;
  void findFunctions();
  LogicalResult checkNothingIsLeft(const FrozenRewritePatternSet &patterns);
  LogicalResult checkOps(const FrozenRewritePatternSet &patterns);
  LogicalResult addArguments(func::FuncOp function);
  void requireDriver(func::FuncOp function);
  void renameEntries();
  void eraseDeclarations();
  Value createDescriptor(ImplicitLocOpBuilder &b, MemRefType type, Value data,
                         ValueRange dynamicSizes);
  /// Whether the function around `op` has a context by now.
  bool hasContext(Operation *op) const {
    auto function = op->getParentOfType<func::FuncOp>();
    return isThreaded && function && functions.contains(function);
  }

  ModuleOp module;
  const bool deviceMemory;
  RuntimeCalls calls;
  LLVMTypeConverter typeConverter;
  Type pointer;
  SymbolTableCollection symbolTable;
  DenseSet<StringRef> runtimeOps; ///< of others, by name
  bool isThreaded = false;
  /// Functions that reach the runtime, in the module's order.
  llvm::SetVector<Operation *> functions;
  /// Per function, eight bytes in which the runtime returns a value.
  DenseMap<Operation *, Value> slots;
  /// Per function, three words for the lists of a call of collectives.
  DenseMap<Operation *, Value> collectiveLists;
  /// How each of `functions` takes its arguments.
  DenseMap<Operation *, BufferArguments> arguments;
  /// Constants that are used where the device has them.
  DenseSet<Operation *> constants;
};

inline Value i32(ImplicitLocOpBuilder &b, int32_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
}
inline Value i64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

/// The fsdprtCollectiveKind of a collective; none for what the runtime has not.
std::optional<int32_t> getRuntimeKind(CollectiveKind kind);

/// The bytes of a dense buffer of static shape.
int64_t getDenseBytes(MemRefType type);

/// The bytes of the static dimensions of `op`; none if they are too many.
std::optional<int64_t> getStaticBytes(memref::AllocOp op);

/// The number of addresses that the kernel of `op` takes by value; none if it
/// is no kernel of ours.
std::optional<int64_t> getKernelWords(gpu::LaunchFuncOp op,
                                      LLVM::LLVMFuncOp kernel);

/// The kernel that `op` launches, or null.
LLVM::LLVMFuncOp lookupKernel(gpu::LaunchFuncOp op,
                              SymbolTableCollection &symbolTables);

/// Why one of the ops that have patterns here cannot be lowered, as the end of
/// an error at the op; empty if it can be.
std::string whyNoLowering(Operation *op, bool deviceMemory,
                          SymbolTableCollection &symbolTables);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CONVERSION_RUNTIMELOWERING_H
