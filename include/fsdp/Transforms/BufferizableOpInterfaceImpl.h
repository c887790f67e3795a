//===- BufferizableOpInterfaceImpl.h - values to buffers --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fsdp {

/// Lets upstream's one-shot bufferization take the local ops and collectives.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

/// Replaces the value form of `op` by its buffer form, with a new dense buffer
/// per result.
LogicalResult
bufferizeBucketUser(BucketUserOpInterface op, RewriterBase &rewriter,
                    const bufferization::BufferizationOptions &options,
                    bufferization::BufferizationState &state);

/// The model for any op on a bucket, of another dialect too: it reads its
/// operands, and its results are new dense buffers.
template <typename OpTy>
struct BucketUserBufferizableModel
    : bufferization::BufferizableOpInterface::ExternalModel<
          BucketUserBufferizableModel<OpTy>, OpTy> {
  bool bufferizesToAllocation(Operation *, Value) const { return true; }
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const bufferization::AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const bufferization::AnalysisState &) const {
    return false;
  }
  bufferization::AliasingValueList
  getAliasingValues(Operation *, OpOperand &,
                    const bufferization::AnalysisState &) const {
    return {};
  }

  /// What bufferize allocates, so that a branch or a loop around the op knows
  /// that it is dense.
  FailureOr<bufferization::BufferLikeType> getBufferType(
      Operation *, Value value, const bufferization::BufferizationOptions &,
      const bufferization::BufferizationState &, SmallVector<Value> &) const {
    auto type = cast<RankedTensorType>(value.getType());
    return cast<bufferization::BufferLikeType>(
        MemRefType::get(type.getShape(), type.getElementType()));
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    return bufferizeBucketUser(cast<BucketUserOpInterface>(op), rewriter,
                               options, state);
  }
};

} // namespace mlir::fsdp

#endif // FSDP_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
