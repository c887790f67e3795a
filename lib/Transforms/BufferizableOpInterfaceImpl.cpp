//===- BufferizableOpInterfaceImpl.cpp - values to buffers ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %g = fsdp.all_gather %f of @b : (tensor<32xf32>) -> tensor<4x32xf32>
// becomes
//   %g = memref.alloc() : memref<4x32xf32>
//   fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>)
//       : (memref<32xf32>) -> ()
//
// Operands are read and never written, each result is a new buffer: where an
// operand's memory can be the result's too, a later pass sees it in the IR
// (GatherInPlace.cpp).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Transforms/BufferizableOpInterfaceImpl.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::bufferization;

/// The buffer of `value`, dense: pointers to it are all that the lowered op
/// sees, so a view with gaps is copied first.
static FailureOr<Value> getDenseBuffer(RewriterBase &rewriter, Value value,
                                       const BufferizationOptions &options,
                                       const BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
  if (failed(buffer))
    return failure();
  auto type = cast<MemRefType>(buffer->getType());
  if (memref::isStaticShapeAndContiguousRowMajor(type))
    return buffer;
  FailureOr<Value> copy = options.createAlloc(
      rewriter, value.getLoc(),
      MemRefType::get(type.getShape(), type.getElementType()), {});
  if (failed(copy) ||
      failed(options.createMemCpy(rewriter, value.getLoc(), *buffer, *copy)))
    return failure();
  return copy;
}

LogicalResult mlir::fsdp::bufferizeBucketUser(
    BucketUserOpInterface op, RewriterBase &rewriter,
    const BufferizationOptions &options, BufferizationState &state) {
  SmallVector<Value> inputs, outputs;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> buffer = getDenseBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    inputs.push_back(*buffer);
  }
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    FailureOr<Value> buffer = options.createAlloc(
        rewriter, op->getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()), {});
    if (failed(buffer))
      return failure();
    outputs.push_back(*buffer);
  }
  // The same op on buffers, then its outputs behind the inputs.
  OperationState bufferForm(op->getLoc(), op->getName(), inputs, TypeRange(),
                            op->getAttrs());
  auto created = cast<BucketUserOpInterface>(rewriter.create(bufferForm));
  rewriter.modifyOpInPlace(
      created, [&] { created.getOutputOperandsMutable().append(outputs); });
  replaceOpWithBufferizedValues(rewriter, op, outputs);
  return success();
}

void mlir::fsdp::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FsdpDialect *) {
    ConcatOp::attachInterface<BucketUserBufferizableModel<ConcatOp>>(*context);
    ChunkCatOp::attachInterface<BucketUserBufferizableModel<ChunkCatOp>>(
        *context);
    UnchunkOp::attachInterface<BucketUserBufferizableModel<UnchunkOp>>(
        *context);
    SplitOp::attachInterface<BucketUserBufferizableModel<SplitOp>>(*context);
    AllGatherOp::attachInterface<BucketUserBufferizableModel<AllGatherOp>>(
        *context);
    ReduceScatterOp::attachInterface<
        BucketUserBufferizableModel<ReduceScatterOp>>(*context);
    AllReduceOp::attachInterface<BucketUserBufferizableModel<AllReduceOp>>(
        *context);
    // Created while the ops of ours are rewritten.
    context->loadDialect<BufferizationDialect, memref::MemRefDialect>();
  });
}
