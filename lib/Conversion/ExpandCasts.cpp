//===- ExpandCasts.cpp - casts without an instruction, written out --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %y = arith.truncf %x : f32 to bf16
// becomes the integer form of CastBodies.cpp; so does every other cast between
// f16, bf16, f32 and f64 that is not one instruction of x86-64-v3.
//
//===----------------------------------------------------------------------===//

#include "CastBodies.h"
#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDCASTSPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if the machine has an instruction: f16 with f32, f32 with f64.
static bool isNative(Type from, Type to) {
  auto isPair = [&](auto isFirst, auto isSecond) {
    return (isFirst(from) && isSecond(to)) || (isFirst(to) && isSecond(from));
  };
  auto isF16 = [](Type type) { return type.isF16(); };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isF64 = [](Type type) { return type.isF64(); };
  return isPair(isF16, isF32) || isPair(isF32, isF64);
}

/// Replaces `cast`, which rounds as `rounding` says (nothing: nearest even).
static LogicalResult expand(Operation *cast,
                            std::optional<arith::RoundingMode> rounding) {
  Value operand = cast->getOperand(0);
  Type type = cast->getResult(0).getType();
  Type from = getElementTypeOrSelf(operand.getType());
  Type to = getElementTypeOrSelf(type);
  if (isNative(from, to) || isa<TensorType>(type))
    return success();
  if (!isFloatDtype(from) || !isFloatDtype(to))
    return cast->emitOpError("has no lowering to the cpu: expected a cast "
                             "between f16, bf16, f32 and f64, but it is from ")
           << from << " to " << to;
  if (rounding && *rounding != arith::RoundingMode::to_nearest_even)
    return cast->emitOpError("has no lowering to the cpu: expected rounding to "
                             "nearest even, but it is ")
           << arith::stringifyRoundingMode(*rounding);
  OpBuilder builder(cast);
  cast->getResult(0).replaceAllUsesWith(
      buildCast(builder, cast->getLoc(), operand, to));
  cast->erase();
  return success();
}

namespace {
struct ExpandCastsPass : fsdp::impl::ExpandCastsPassBase<ExpandCastsPass> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (auto extend = dyn_cast<arith::ExtFOp>(op))
        return expand(extend, std::nullopt);
      if (auto truncate = dyn_cast<arith::TruncFOp>(op))
        return expand(truncate, truncate.getRoundingmode());
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
