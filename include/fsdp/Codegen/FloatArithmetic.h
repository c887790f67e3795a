//===- FloatArithmetic.h - a target's float arithmetic -*- C++ -*- --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Casts, divisions and additions of floats, by whatever ops a target does them
// with. All targets give the same bits, NaN as a class.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_FLOATARITHMETIC_H
#define FSDP_CODEGEN_FLOATARITHMETIC_H

#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// All functions take scalars and vectors of f16, bf16, f32 and f64.
class FloatArithmetic {
public:
  virtual ~FloatArithmetic() = default;

  /// `value` in `dtype`, rounded once to nearest even.
  virtual Value cast(OpBuilder &builder, Location loc, Value value,
                     Type dtype) const = 0;
  /// `value` divided by a positive constant: the constant and the quotient are
  /// rounded to f32, the quotient then to the dtype; f64 remains in f64.
  virtual Value divide(OpBuilder &builder, Location loc, Value value,
                       double divisor) const = 0;
  /// The sum of two values of one dtype, rounded once.
  virtual Value add(OpBuilder &builder, Location loc, Value lhs,
                    Value rhs) const = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_FLOATARITHMETIC_H
