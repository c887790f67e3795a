//===- FloatExpansion.cpp - narrow floats in terms of wide ones -----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatExpansion.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fsdp;

/// True for scalars and vectors, not for buffers of them.
static bool isHalf(Type type) {
  if (!isa<FloatType, VectorType>(type))
    return false;
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

/// `type` with another element type.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

/// True for what only moves bits, and for what is no arithmetic.
static bool isNoArithmetic(Operation *op) {
  return isa<arith::ConstantOp, arith::BitcastOp>(op) ||
         !isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
             op->getDialect());
}

static bool touchesHalf(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isHalf) ||
         llvm::any_of(op->getResultTypes(), isHalf);
}

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

//===----------------------------------------------------------------------===//
// What can be expanded
//===----------------------------------------------------------------------===//

static LogicalResult checkCast(Operation *cast, StringRef target,
                               std::optional<arith::RoundingMode> rounding) {
  Type from = elementOf(cast->getOperand(0));
  Type to = elementOf(cast->getResult(0));
  if (!isFloatDtype(from) || !isFloatDtype(to))
    return cast->emitOpError("has no lowering to ")
           << target
           << ": expected a cast between f16, bf16, f32 and f64, but it is "
              "from "
           << from << " to " << to;
  if (rounding && *rounding != arith::RoundingMode::to_nearest_even)
    return cast->emitOpError("has no lowering to ")
           << target << ": expected rounding to nearest even, but it is "
           << arith::stringifyRoundingMode(*rounding);
  return success();
}

LogicalResult mlir::fsdp::checkFloats(Operation *op, StringRef target) {
  if (auto extend = dyn_cast<arith::ExtFOp>(op))
    return checkCast(extend, target, std::nullopt);
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    return checkCast(truncate, target, truncate.getRoundingmode());
  // Wider ones would be rounded twice.
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && touchesHalf(op) &&
      elementOf(op->getOperand(0)).getIntOrFloatBitWidth() > 32)
    return op->emitOpError("has no lowering to ")
           << target << ": expected an integer of at most 32 bits, but it is "
           << elementOf(op->getOperand(0));
  return success();
}

//===----------------------------------------------------------------------===//
// Expansion
//===----------------------------------------------------------------------===//

static void replace(Operation *op, Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

/// Replaces a conversion of an integer to 16 bits: f64 holds the integer
/// exactly, so that there is one rounding.
static void expandIntegerCast(Operation *op, const FloatTarget &target) {
  OpBuilder builder(op);
  Type type = op->getResult(0).getType();
  Operation *exact = builder.create(op->getLoc(), op->getName().getIdentifier(),
                                    op->getOperands(),
                                    {withElement(type, builder.getF64Type())});
  replace(op, target.cast(builder, op->getLoc(), exact->getResult(0),
                          getElementTypeOrSelf(type)));
}

/// Replaces a choice between 16-bit floats by one between their bits. LLVM can
/// lower the first one to a call of __truncsfbf2 on processors without bf16.
static void expandSelect(arith::SelectOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type bits = withElement(op.getType(), b.getI16Type());
  auto toBits = [&](Value value) -> Value {
    return arith::BitcastOp::create(b, bits, value);
  };
  Value chosen =
      arith::SelectOp::create(b, op.getCondition(), toBits(op.getTrueValue()),
                              toBits(op.getFalseValue()));
  replace(op, arith::BitcastOp::create(b, op.getType(), chosen));
}

/// Replaces the larger or smaller one of two numbers, of which one that is NaN
/// does not count: which zero is chosen is left open by LLVM, and here it is
/// what maximumf and minimumf choose.
template <typename Orderly>
static void expandMaxNum(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value x = op->getOperand(0), y = op->getOperand(1);
  auto isNan = [&](Value value) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  };
  auto orderly = Orderly::create(b, x, y);
  Value xUnlessNan = arith::SelectOp::create(b, isNan(y), x, orderly);
  replace(op, arith::SelectOp::create(b, isNan(x), y, xUnlessNan));
}

/// Replaces an op on f16 or bf16 by the same op on f32, rounded.
static Operation *widen(Operation *op, const FloatTarget &target) {
  OpBuilder builder(op);
  Type single = builder.getF32Type();
  auto wide = [&](Type type) {
    return isHalf(type) ? withElement(type, single) : type;
  };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isHalf(operand.getType())
                           ? target.cast(builder, op->getLoc(), operand, single)
                           : operand);
  SmallVector<Type> types = llvm::map_to_vector(op->getResultTypes(), wide);
  Operation *created =
      builder.create(op->getLoc(), op->getName().getIdentifier(), operands,
                     types, op->getAttrs());
  for (auto [before, after] :
       llvm::zip(op->getResults(), created->getResults())) {
    Value value = after;
    if (isHalf(before.getType()))
      value = target.cast(builder, op->getLoc(), after,
                          getElementTypeOrSelf(before.getType()));
    before.replaceAllUsesWith(value);
  }
  op->erase();
  return created;
}

void mlir::fsdp::expandFloats(Operation *op, const FloatTarget &target) {
  if (isNoArithmetic(op))
    return;
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    Type to = elementOf(op->getResult(0));
    if (target.isNative(elementOf(op->getOperand(0)), to))
      return;
    OpBuilder builder(op);
    return replace(op,
                   target.cast(builder, op->getLoc(), op->getOperand(0), to));
  }
  if (touchesHalf(op)) {
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      return expandIntegerCast(op, target);
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return expandSelect(select);
    op = widen(op, target);
  }
  if (isa<arith::MaxNumFOp>(op))
    expandMaxNum<arith::MaximumFOp>(op);
  else if (isa<arith::MinNumFOp>(op))
    expandMaxNum<arith::MinimumFOp>(op);
}
