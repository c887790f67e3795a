//===- ExpandFloats.cpp - arithmetic without an instruction, written out --===//
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
//   %c = arith.addf %a, %b : bf16
// becomes an addition in f32 between such casts. Upstream's
// arith-emulate-unsupported-floats marks its casts as contractible: then the
// rounding between two additions may be folded away, which changes bits.
//
//===----------------------------------------------------------------------===//

#include "CastBodies.h"
#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDFLOATSPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

/// True if the machine has an instruction: f16 with f32, f32 with f64.
static bool isNative(Type from, Type to) {
  if (to.isF32())
    return from.isF16() || from.isF64();
  return from.isF32() && (to.isF16() || to.isF64());
}

/// Replaces `cast`, which rounds as `rounding` says (nothing: nearest even).
static LogicalResult expandCast(Operation *cast,
                                std::optional<arith::RoundingMode> rounding) {
  Value operand = cast->getOperand(0);
  Type from = getElementTypeOrSelf(operand.getType());
  Type to = getElementTypeOrSelf(cast->getResult(0).getType());
  if (isNative(from, to))
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

/// Replaces a conversion of an integer to 16 bits: f64 holds the integer
/// exactly, so that there is one rounding.
static LogicalResult expandIntegerCast(Operation *cast) {
  Type type = cast->getResult(0).getType();
  Type from = getElementTypeOrSelf(cast->getOperand(0).getType());
  if (from.getIntOrFloatBitWidth() > 32)
    return cast->emitOpError("has no lowering to the cpu: expected an integer "
                             "of at most 32 bits, but it is ")
           << from;
  OpBuilder builder(cast);
  Operation *exact = builder.create(
      cast->getLoc(), cast->getName().getIdentifier(), cast->getOperands(),
      {withElement(type, builder.getF64Type())});
  cast->getResult(0).replaceAllUsesWith(buildCast(builder, cast->getLoc(),
                                                  exact->getResult(0),
                                                  getElementTypeOrSelf(type)));
  cast->erase();
  return success();
}

/// Replaces an op on f16 or bf16 by the same op on f32, rounded.
static void widen(Operation *op) {
  OpBuilder builder(op);
  Type single = builder.getF32Type();
  auto wide = [&](Type type) {
    return isHalf(type) ? withElement(type, single) : type;
  };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isHalf(operand.getType())
                           ? buildCast(builder, op->getLoc(), operand, single)
                           : operand);
  SmallVector<Type> types = llvm::map_to_vector(op->getResultTypes(), wide);
  Operation *created =
      builder.create(op->getLoc(), op->getName().getIdentifier(), operands,
                     types, op->getAttrs());
  for (auto [before, after] :
       llvm::zip(op->getResults(), created->getResults())) {
    Value value = after;
    if (isHalf(before.getType()))
      value = buildCast(builder, op->getLoc(), after,
                        getElementTypeOrSelf(before.getType()));
    before.replaceAllUsesWith(value);
  }
  op->erase();
}

static LogicalResult expand(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (llvm::any_of(op->getOperandTypes(), isTensor) ||
      llvm::any_of(op->getResultTypes(), isTensor))
    return success();
  if (auto extend = dyn_cast<arith::ExtFOp>(op))
    return expandCast(extend, std::nullopt);
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    return expandCast(truncate, truncate.getRoundingmode());
  // These only move bits.
  if (isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op) ||
      !isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op->getDialect()))
    return success();
  if (!llvm::any_of(op->getOperandTypes(), isHalf) &&
      !llvm::any_of(op->getResultTypes(), isHalf))
    return success();
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return expandIntegerCast(op);
  widen(op);
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
