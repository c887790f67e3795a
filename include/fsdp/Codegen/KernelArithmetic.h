//===- KernelArithmetic.h - casts and division in kernels -*- C++ -*- -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel's casts, divisions and additions: the ops for which NVPTX has
// instructions, and, where the kernel is emulated on the CPU and those ops
// would round otherwise or call a function there, the exact bodies of
// CastBodies.h. Both give the same bits, NaN as a class.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_KERNELARITHMETIC_H
#define FSDP_CODEGEN_KERNELARITHMETIC_H

#include "fsdp/Codegen/FloatArithmetic.h"

#include <map>

namespace mlir::fsdp {

class KernelArithmetic final : public FloatArithmetic {
public:
  explicit KernelArithmetic(bool emulate) : emulate(emulate) {}

  Value cast(OpBuilder &builder, Location loc, Value value,
             Type dtype) const override;
  Value divide(OpBuilder &builder, Location loc, Value value,
               double divisor) const override;
  /// True if `divide` takes f64, and their registers.
  bool dividesInF64(Type dtype, double divisor) const;
  Value add(OpBuilder &builder, Location loc, Value lhs,
            Value rhs) const override;

private:
  bool hasExactReciprocal(Type dtype, float divisor) const;
  /// `x`, f32, divided by `divisor`: by its reciprocal in the float type
  /// `wide`, and a correction.
  Value divideByReciprocal(OpBuilder &builder, Location loc, Value x,
                           float divisor, FloatType wide) const;

  bool emulate;
  /// Answers of isReciprocalExact, which takes milliseconds.
  mutable std::map<std::pair<const void *, float>, bool> exactReciprocals;
};

/// True if the reciprocal of `divisor`, corrected by two fused multiply-adds in
/// f32, gives the quotient of every finite value of the 16-bit `dtype`, once
/// that is rounded to the dtype: tried for all of them.
bool isReciprocalExact(Type dtype, float divisor);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_KERNELARITHMETIC_H
