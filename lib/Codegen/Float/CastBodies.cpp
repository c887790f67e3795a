//===- CastBodies.cpp - float arithmetic that is exact on the CPU ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CastBodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Builds ops on values of one shape, a scalar or a vector.
struct Body {
  ImplicitLocOpBuilder b;
  Type shape;

  Body(OpBuilder &builder, Location loc, Value value)
      : b(loc, builder), shape(value.getType()) {}

  /// The body's shape with another element type.
  Type of(Type element) const {
    if (auto vector = dyn_cast<VectorType>(shape))
      return vector.clone(element);
    return element;
  }
  Type i(unsigned width) { return of(b.getIntegerType(width)); }

  Value constant(Type type, TypedAttr attr) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, attr));
    return arith::ConstantOp::create(b, attr);
  }
  Value integer(unsigned width, uint64_t bits) {
    return constant(i(width), b.getIntegerAttr(b.getIntegerType(width),
                                               APInt(width, bits)));
  }
  Value bits(Value value, unsigned width) {
    return arith::BitcastOp::create(b, i(width), value);
  }
  Value floats(Value value, Type element) {
    return arith::BitcastOp::create(b, of(element), value);
  }

  Value extend(Value value, Type to);
  Value f32ToBf16(Value value);
  Value f64ToF32Odd(Value value);
  Value cast(Value value, Type to);
};
} // namespace

/// An exact cast to f32 or f64.
Value Body::extend(Value value, Type to) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == to)
    return value;
  if (from.isBF16()) {
    Value word = arith::ExtUIOp::create(b, i(32), bits(value, 16));
    Value shifted = arith::ShLIOp::create(b, word, integer(32, 16));
    return extend(floats(shifted, b.getF32Type()), to);
  }
  // By way of f32, for which there are instructions.
  if (from.isF16() && to.isF64())
    value = arith::ExtFOp::create(b, of(b.getF32Type()), value);
  return arith::ExtFOp::create(b, of(to), value);
}

/// To nearest even by integer arithmetic: adds just under half of the last
/// place kept, and one more where that place is odd. A NaN could overflow to
/// another sign or lose its payload, so the low 15 bits of all are set. By OR,
/// not by a select: LLVM would turn that into a select of bf16 values, which it
/// can lower to a call of __truncsfbf2 on processors without bf16.
Value Body::f32ToBf16(Value value) {
  Value word = bits(value, 32);
  Value upper = arith::ShRUIOp::create(b, word, integer(32, 16));
  Value odd = arith::AndIOp::create(b, upper, integer(32, 1));
  Value biased = arith::AddIOp::create(b, word, integer(32, 0x7fff));
  Value rounded = arith::AddIOp::create(b, biased, odd);
  Value kept = arith::ShRUIOp::create(b, rounded, integer(32, 16));
  Value magnitude = arith::AndIOp::create(b, word, integer(32, 0x7fffffff));
  Value isNan = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, magnitude,
                                      integer(32, 0x7f800000));
  Value quiet = arith::AndIOp::create(
      b, arith::ExtSIOp::create(b, i(32), isNan), integer(32, 0x7fff));
  Value result = arith::OrIOp::create(b, kept, quiet);
  Value half = arith::TruncIOp::create(b, i(16), result);
  return floats(half, b.getBF16Type());
}

/// To f32 by round-to-odd: towards zero, and the last bit set where anything
/// was lost. Another rounding to 16 bits then gives what one rounding of the
/// f64 gives, since f32 has two bits more than either of them everywhere.
Value Body::f64ToF32Odd(Value value) {
  Value nearest = arith::TruncFOp::create(b, of(b.getF32Type()), value);
  Value back = arith::ExtFOp::create(b, of(b.getF64Type()), nearest);
  // Ordered, so that a NaN counts as exact.
  Value inexact =
      arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, back, value);
  Value mask = integer(64, INT64_MAX);
  Value away =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ugt,
                            arith::AndIOp::create(b, bits(back, 64), mask),
                            arith::AndIOp::create(b, bits(value, 64), mask));
  Value isAway = arith::AndIOp::create(b, away, inexact);
  Value down = arith::SubIOp::create(b, bits(nearest, 32),
                                     arith::ExtUIOp::create(b, i(32), isAway));
  Value odd =
      arith::OrIOp::create(b, down, arith::ExtUIOp::create(b, i(32), inexact));
  return floats(odd, b.getF32Type());
}

Value Body::cast(Value value, Type to) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == to)
    return value;
  if (to.isF32() && from.isF64())
    return arith::TruncFOp::create(b, of(to), value);
  if (to.isF32() || to.isF64())
    return extend(value, to);
  Value single =
      from.isF64() ? f64ToF32Odd(value) : extend(value, b.getF32Type());
  if (to.isBF16())
    return f32ToBf16(single);
  return arith::TruncFOp::create(b, of(to), single);
}

Value mlir::fsdp::buildCast(OpBuilder &builder, Location loc, Value value,
                            Type to) {
  return Body(builder, loc, value).cast(value, to);
}

/// The dtype in which arithmetic on `dtype` is done: one operation on two
/// 16-bit values in f32, rounded once more, is rounded as if once.
static Type getComputeType(OpBuilder &builder, Type dtype) {
  return dtype.isF64() ? dtype : builder.getF32Type();
}

Value mlir::fsdp::buildDivide(OpBuilder &builder, Location loc, Value value,
                              double divisor) {
  Body body(builder, loc, value);
  Type dtype = getElementTypeOrSelf(value.getType());
  Type compute = getComputeType(builder, dtype);
  Value wide = body.extend(value, compute);
  // FloatAttr rounds the constant to the type that it is given.
  Value constant =
      body.constant(body.of(compute), builder.getFloatAttr(compute, divisor));
  Value quotient = arith::DivFOp::create(body.b, wide, constant);
  return body.cast(quotient, dtype);
}

Value mlir::fsdp::buildAdd(OpBuilder &builder, Location loc, Value lhs,
                           Value rhs) {
  Body body(builder, loc, lhs);
  Type dtype = getElementTypeOrSelf(lhs.getType());
  Type compute = getComputeType(builder, dtype);
  Value sum = arith::AddFOp::create(body.b, body.extend(lhs, compute),
                                    body.extend(rhs, compute));
  return body.cast(sum, dtype);
}
