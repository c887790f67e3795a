//===- KernelArithmetic.cpp - casts and division in kernels ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/KernelArithmetic.h"

#include "CastBodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// The type of `like` with another element type, as many elements.
static Type withElement(Value like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return vector.clone(element);
  return element;
}

static Value splat(OpBuilder &builder, Location loc, Value like,
                   TypedAttr value) {
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type.clone(value.getType()),
                               ArrayRef<Attribute>(value)));
  return arith::ConstantOp::create(builder, loc, value);
}

static unsigned bitsOf(Type dtype) { return dtype.getIntOrFloatBitWidth(); }

/// bf16 is the upper half of an f32. A vector is widened two elements at a time
/// out of the register that holds both: a shift, a mask, and no conversion.
static Value widenBf16(OpBuilder &b, Location loc, Value value) {
  Type i32 = b.getI32Type();
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector || vector.getNumElements() % 2 != 0) {
    Value bits = arith::BitcastOp::create(
        b, loc, withElement(value, b.getI16Type()), value);
    Value wide = arith::ExtUIOp::create(b, loc, withElement(value, i32), bits);
    Value sixteen = splat(b, loc, value, b.getI32IntegerAttr(16));
    Value high = arith::ShLIOp::create(b, loc, wide, sixteen);
    return arith::BitcastOp::create(b, loc, withElement(value, b.getF32Type()),
                                    high);
  }
  auto words = VectorType::get({vector.getNumElements() / 2}, i32);
  Value pairs = vector::BitCastOp::create(b, loc, words, value);
  Value low = arith::ShLIOp::create(
      b, loc, pairs, splat(b, loc, pairs, b.getI32IntegerAttr(16)));
  Value high = arith::AndIOp::create(
      b, loc, pairs, splat(b, loc, pairs, b.getI32IntegerAttr(-65536)));
  Value both = vector::InterleaveOp::create(b, loc, low, high);
  return arith::BitcastOp::create(b, loc, withElement(value, b.getF32Type()),
                                  both);
}

Value KernelArithmetic::cast(OpBuilder &b, Location loc, Value value,
                             Type dtype) const {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == dtype)
    return value;
  if (from.isBF16() && dtype.isF32())
    return widenBf16(b, loc, value);
  if (emulate)
    return buildCast(b, loc, value, dtype);
  // Through f32: f16 to bf16 and back, and bf16 to f64.
  if (bitsOf(from) == bitsOf(dtype) || (from.isBF16() && dtype.isF64()))
    return cast(b, loc, cast(b, loc, value, b.getF32Type()), dtype);
  if (bitsOf(from) > bitsOf(dtype))
    return arith::TruncFOp::create(b, loc, withElement(value, dtype), value);
  return arith::ExtFOp::create(b, loc, withElement(value, dtype), value);
}

Value KernelArithmetic::add(OpBuilder &b, Location loc, Value lhs,
                            Value rhs) const {
  Type dtype = getElementTypeOrSelf(lhs.getType());
  if (bitsOf(dtype) != 16)
    return arith::AddFOp::create(b, loc, lhs, rhs);
  Type f32 = b.getF32Type();
  Value sum = arith::AddFOp::create(b, loc, cast(b, loc, lhs, f32),
                                    cast(b, loc, rhs, f32));
  return cast(b, loc, sum, dtype);
}

//===----------------------------------------------------------------------===//
// Division by a constant
//===----------------------------------------------------------------------===//

static bool isPowerOfTwo(double divisor) {
  int exponent;
  return std::frexp(divisor, &exponent) == 0.5;
}

/// Dividing by a power of two is multiplying by its exact reciprocal. LLVM
/// would see that too, but not where the reciprocal is subnormal, or infinite:
/// then it is two factors, and the first product is exact or infinite itself.
static Value divideByPowerOfTwo(OpBuilder &b, Location loc, Value value,
                                double divisor) {
  auto type = cast<FloatType>(getElementTypeOrSelf(value.getType()));
  int largest = APFloat::semanticsMaxExponent(type.getFloatSemantics());
  int left = -std::ilogb(divisor);
  do {
    int power = std::min(left, largest);
    Value factor =
        splat(b, loc, value, b.getFloatAttr(type, std::ldexp(1.0, power)));
    value = arith::MulFOp::create(b, loc, value, factor);
    left -= power;
  } while (left > 0);
  return value;
}

bool mlir::fsdp::isReciprocalExact(Type dtype, float divisor) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(dtype).getFloatSemantics();
  auto rounded = [&](float value) {
    APFloat result(value);
    bool losesInfo;
    result.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    return result.bitcastToAPInt();
  };
  float reciprocal = 1.0f / divisor;
  if (!std::isfinite(reciprocal))
    return false;
  for (unsigned bits = 0; bits < 1u << 16; ++bits) {
    APFloat value(semantics, APInt(16, bits));
    if (!value.isFinite())
      continue;
    bool losesInfo;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    float x = value.convertToFloat();
    float quotient = x * reciprocal;
    float excess = std::fma(divisor, quotient, -x);
    if (rounded(std::fma(excess, -reciprocal, quotient)) !=
        rounded(x / divisor))
      return false;
  }
  return true;
}

bool KernelArithmetic::hasExactReciprocal(Type dtype, float divisor) const {
  auto [known, isNew] = exactReciprocals.try_emplace(
      {dtype.getAsOpaquePointer(), divisor}, false);
  if (isNew)
    known->second = isReciprocalExact(dtype, divisor);
  return known->second;
}

bool KernelArithmetic::dividesInF64(Type dtype, double divisor) const {
  float divisorF32 = static_cast<float>(divisor);
  if (dtype.isF64() || isPowerOfTwo(divisorF32))
    return false;
  return bitsOf(dtype) != 16 || !hasExactReciprocal(dtype, divisorF32);
}

// The product with the reciprocal exceeds the quotient by a little, which is
// taken off. (The other way round, what is missing added, -0 would become +0.)
// Infinities and NaN come out of the correction as NaN, so they take the
// uncorrected product.
Value KernelArithmetic::divideByReciprocal(OpBuilder &b, Location loc, Value x,
                                           float divisor,
                                           FloatType wide) const {
  Value dividend = cast(b, loc, x, wide);
  auto constant = [&](double c) {
    return splat(b, loc, dividend, b.getFloatAttr(wide, c));
  };
  double reciprocal =
      wide.isF64() ? 1.0 / double(divisor) : double(1.0f / divisor);
  Value estimate =
      arith::MulFOp::create(b, loc, dividend, constant(reciprocal));
  Value negated = arith::NegFOp::create(b, loc, dividend);
  Value excess =
      LLVM::FMAOp::create(b, loc, constant(divisor), estimate, negated);
  Value corrected =
      LLVM::FMAOp::create(b, loc, excess, constant(-reciprocal), estimate);
  Value isNumber = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD,
                                         corrected, corrected);
  Value quotient =
      arith::SelectOp::create(b, loc, isNumber, corrected, estimate);
  return cast(b, loc, quotient, b.getF32Type());
}

Value KernelArithmetic::divide(OpBuilder &b, Location loc, Value value,
                               double divisor) const {
  Type dtype = getElementTypeOrSelf(value.getType());
  if (dtype.isF64()) {
    if (isPowerOfTwo(divisor))
      return divideByPowerOfTwo(b, loc, value, divisor);
    Value by = splat(b, loc, value, b.getF64FloatAttr(divisor));
    return arith::DivFOp::create(b, loc, value, by);
  }
  float divisorF32 = static_cast<float>(divisor);
  Value x = cast(b, loc, value, b.getF32Type());
  // A division would be an instruction sequence with a call for rare operands.
  // In f32 the reciprocal gives the quotient of 16-bit operands where all of
  // them were tried. In f64 it always does: the result is the f64 next to the
  // quotient, and the quotient of two f32 is either an f64 itself or further
  // than that from the middle between two f32.
  Value quotient =
      isPowerOfTwo(divisorF32)
          ? divideByPowerOfTwo(b, loc, x, divisorF32)
          : divideByReciprocal(b, loc, x, divisorF32,
                               dividesInF64(dtype, divisor) ? b.getF64Type()
                                                            : b.getF32Type());
  return cast(b, loc, quotient, dtype);
}
