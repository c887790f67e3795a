//===- VerifyLowered.cpp - refuse what has no lowering to LLVM ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes between here and LLVM leave what they do not know, or fail with words
// of their own trade ("unknown memory side effects"). So the input is looked
// through first for ops that none of them takes, and the output for what is
// left, at the op that caused it and not at a cast between two worlds.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

/// True for an op that the passes of fsdp-to-cpu take.
static bool isLowerable(Operation *op) {
  if (isa<shard::GridOp, shard::ProcessLinearIndexOp,
          shard::ProcessMultiIndexOp>(op))
    return true;
  static const StringRef dialects[] = {
      "affine", "arith",  "bufferization", "builtin", "cf",
      "fsdp",   "func",   "index",         "linalg",  "llvm",
      "math",   "memref", "scf",           "tensor",  "ub",
      "vector"};
  return op->isRegistered() &&
         llvm::is_contained(dialects, op->getName().getDialectNamespace());
}

/// Finds the op to blame, if any.
static Operation *findLeftOver(ModuleOp module) {
  Operation *cause = nullptr;
  module.walk([&](Operation *op) {
    if (isa<ModuleOp>(op) ||
        isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    cause = op;
    // A cast is what another op leaves behind.
    return isa<UnrealizedConversionCastOp>(op) ? WalkResult::advance()
                                               : WalkResult::interrupt();
  });
  return cause;
}

static Operation *findUnknown(ModuleOp module) {
  Operation *cause = nullptr;
  module.walk([&](Operation *op) {
    if (isLowerable(op) || isa<fsdp::DeviceGridOpInterface>(op))
      return WalkResult::advance();
    cause = op;
    return WalkResult::interrupt();
  });
  return cause;
}

namespace {
struct VerifyLoweredPass
    : fsdp::impl::VerifyLoweredPassBase<VerifyLoweredPass> {
  using Base::Base;
  void runOnOperation() override {
    Operation *cause =
        input ? findUnknown(getOperation()) : findLeftOver(getOperation());
    if (!cause)
      return markAllAnalysesPreserved();
    cause->emitOpError("has no lowering to the cpu");
    signalPassFailure();
  }
};
} // namespace
