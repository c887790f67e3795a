//===- CastBodies.h - float arithmetic that is exact on the CPU -*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Casts, divisions and additions between f16, bf16, f32 and f64, each with one
// rounding to nearest even, out of `arith` ops that LLVM turns into vector code
// on any x86-64-v3 machine, without a call. Left to LLVM, a cast to bf16 calls
// a function that libgcc 12 does not have, or, with AVX512-BF16, flushes
// subnormals; a cast from f64 to 16 bits calls one too.
//
// All functions take scalars and vectors of one of the four dtypes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_FLOAT_CASTBODIES_H
#define FSDP_LIB_CODEGEN_FLOAT_CASTBODIES_H

#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// `value` in the dtype `to`, rounded once. NaN stays NaN, overflow becomes
/// infinity, subnormals are kept.
Value buildCast(OpBuilder &builder, Location loc, Value value, Type to);

/// `value` divided by a positive constant: the constant and the quotient are
/// rounded to f32, the quotient then to the dtype; f64 stays in f64.
Value buildDivide(OpBuilder &builder, Location loc, Value value,
                  double divisor);

/// The sum of two values of one dtype, rounded once.
Value buildAdd(OpBuilder &builder, Location loc, Value lhs, Value rhs);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_FLOAT_CASTBODIES_H
