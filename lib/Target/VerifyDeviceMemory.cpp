//===- VerifyDeviceMemory.cpp - the host keeps off device memory ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Target/Passes.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYDEVICEMEMORYPASS
#include "fsdp/Target/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Whether a copy is one of bytes, by the runtime.
static bool isRuntimeCopy(Operation *op) {
  auto copy = dyn_cast<memref::CopyOp>(op);
  return copy && isContiguousBuffer(copy.getSource()) &&
         isContiguousBuffer(copy.getTarget());
}

/// True if `op` reads or writes the elements of a buffer.
static bool touchesBuffer(Operation *op) {
  if (isa<BucketUserOpInterface, gpu::LaunchFuncOp>(op) || isRuntimeCopy(op))
    return false;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return false;
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  return llvm::any_of(effects, [](MemoryEffects::EffectInstance &effect) {
    Value value = effect.getValue();
    return value && isa<BaseMemRefType>(value.getType()) &&
           isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect());
  });
}

/// True for memory that the runtime does not know: of the host.
static bool makesHostBuffer(Operation *op, SymbolTableCollection &symbols) {
  if (isa<memref::AllocaOp>(op))
    return true;
  auto get = dyn_cast<memref::GetGlobalOp>(op);
  if (!get)
    return false;
  auto global =
      symbols.lookupNearestSymbolFrom<memref::GlobalOp>(op, get.getNameAttr());
  return !global || !global.getConstant() ||
         !isContiguousBuffer(get.getResult());
}

namespace {
struct VerifyDeviceMemoryPass
    : fsdp::impl::VerifyDeviceMemoryPassBase<VerifyDeviceMemoryPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult result =
        getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
          if (isa<gpu::GPUModuleOp>(op))
            return WalkResult::skip();
          if (!touchesBuffer(op) && !makesHostBuffer(op, symbols))
            return WalkResult::advance();
          op->emitOpError("has no lowering to cuda: it runs on the host, but "
                          "the buffer is the device's");
          return WalkResult::interrupt();
        });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
