//===- FloatExpansion.h - narrow floats in terms of wide ones ---*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %y = arith.truncf %x : f32 to bf16
// becomes what the target does for a cast, and
//   %c = arith.addf %a, %b : bf16
// an addition in f32 between casts: one rounding of two 16-bit values in f32,
// rounded once more, is rounded as if once. Upstream's
// arith-emulate-unsupported-floats marks its casts as contractible: then the
// rounding between two additions may be folded away, which changes bits.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_FLOAT_FLOATEXPANSION_H
#define FSDP_LIB_CODEGEN_FLOAT_FLOATEXPANSION_H

#include "mlir/IR/Builders.h"

namespace mlir::fsdp {

/// What arithmetic is expanded for.
struct FloatTarget {
  /// Builds `value`, a scalar or vector, in the dtype of the last argument,
  /// rounded once.
  function_ref<Value(OpBuilder &, Location, Value, Type)> cast;
  /// Whether a cast is an instruction of the target already.
  function_ref<bool(Type from, Type to)> isNative;
};

/// Emits an error at the `arith` or `math` op `op` if it cannot be expanded for
/// the target of that name.
LogicalResult checkFloats(Operation *op, StringRef target);

/// Replaces `op`, on scalars or vectors, which checkFloats takes, by what
/// `target` can do, if it cannot do it as it is.
void expandFloats(Operation *op, const FloatTarget &target);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_FLOAT_FLOATEXPANSION_H
