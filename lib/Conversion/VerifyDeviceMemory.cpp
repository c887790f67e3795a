//===- VerifyDeviceMemory.cpp - the host keeps off device memory ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYDEVICEMEMORYPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if `op` reads or writes the elements of a buffer.
static bool touchesBuffer(Operation *op) {
  if (isa<BucketUserOpInterface, gpu::LaunchFuncOp>(op))
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

namespace {
struct VerifyDeviceMemoryPass
    : fsdp::impl::VerifyDeviceMemoryPassBase<VerifyDeviceMemoryPass> {
  void runOnOperation() override {
    bool refused = false;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::GPUModuleOp>(op))
        return WalkResult::skip();
      if (touchesBuffer(op)) {
        op->emitOpError("has no lowering to cuda: it runs on the host, but the "
                        "buffer is the device's");
        refused = true;
        return WalkResult::skip();
      }
      return WalkResult::advance();
    });
    if (refused)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
