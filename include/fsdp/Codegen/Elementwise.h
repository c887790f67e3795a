//===- Elementwise.h - elementwise ops as kernels see them ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_ELEMENTWISE_H
#define FSDP_CODEGEN_ELEMENTWISE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fsdp {

/// What `arith` has for single elements, casts and copies included: emits an
/// error at the first op of `op` for which no kernel can be made, or at `op`
/// itself. Takes a linalg op on tensors or buffers.
LogicalResult checkElementwise(linalg::LinalgOp op);

/// The same for an op on tensors that works on each element of them.
LogicalResult checkArithmetic(Operation *op);

/// A linalg op on buffers, as loops over elements.
struct Elementwise {
  /// A buffer that is read or written, or a number.
  struct Operand {
    Value value;
    Type dtype;
    /// How many elements two neighbours in each loop are apart, kDynamic where
    /// only the buffer knows; none for a number.
    SmallVector<int64_t> strides;
    /// Which dimension of the buffer each loop runs through, -1 for none.
    SmallVector<int64_t> dimensions;
    bool isRead = false, isWritten = false;

    bool isNumber() const { return strides.empty(); }
    /// One element for all iterations.
    bool isUniform() const {
      return !isNumber() &&
             llvm::all_of(strides, [](int64_t stride) { return stride == 0; });
    }
  };

  linalg::GenericOp op;
  /// Of each loop, the last one being the innermost; at least one. Loops whose
  /// elements follow each other in all buffers are one loop.
  SmallVector<int64_t> extents;
  /// The op's inputs and outputs, then what the body uses beside them.
  SmallVector<Operand> operands;

  int64_t numElements() const { return ShapedType::getNumElements(extents); }
  /// Whether all buffers are dense, or one element.
  bool isLinear() const;

  /// Emits an error where a buffer has no strides at all.
  static FailureOr<Elementwise> get(linalg::GenericOp op);
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_ELEMENTWISE_H
