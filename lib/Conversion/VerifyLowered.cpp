//===- VerifyLowered.cpp - refuse what has no lowering to LLVM ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions to LLVM leave what they do not know. The translation behind them
// would say so too, but at an op that may be a cast between two worlds and not
// the one that caused it.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

namespace {
struct VerifyLoweredPass
    : fsdp::impl::VerifyLoweredPassBase<VerifyLoweredPass> {
  void runOnOperation() override {
    Operation *cause = nullptr;
    getOperation().walk([&](Operation *op) {
      if (isa<ModuleOp>(op) ||
          isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      cause = op;
      // A cast is what another op leaves behind.
      return isa<UnrealizedConversionCastOp>(op) ? WalkResult::advance()
                                                 : WalkResult::interrupt();
    });
    if (!cause)
      return markAllAnalysesPreserved();
    cause->emitOpError("has no lowering to the cpu");
    signalPassFailure();
  }
};
} // namespace
