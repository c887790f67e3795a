//===- ExpandFloats.cpp - arithmetic without an instruction, written out --===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the CPU, with the casts of CastBodies.cpp: see FloatExpansion.h.
//
//===----------------------------------------------------------------------===//

#include "CastBodies.h"
#include "FloatExpansion.h"
#include "fsdp/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDFLOATSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if the machine has an instruction: f16 with f32, f32 with f64.
static bool isNative(Type from, Type to) {
  if (to.isF32())
    return from.isF16() || from.isF64();
  return from.isF32() && (to.isF16() || to.isF64());
}

static LogicalResult expand(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isTensor) ||
      llvm::any_of(op->getResultTypes(), isTensor))
    return success();
  if (failed(checkFloats(op, "the cpu")))
    return failure();
  expandFloats(op, {buildCast, isNative});
  return success();
}

namespace {
struct ExpandFloatsPass : fsdp::impl::ExpandFloatsPassBase<ExpandFloatsPass> {
  void runOnOperation() override {
    // What is built is native, so that one visit is enough.
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (failed(expand(op)))
        return signalPassFailure();
  }
};
} // namespace
