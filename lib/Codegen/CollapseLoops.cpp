//===- CollapseLoops.cpp - element-wise ops get one dimension -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linalg.generic #identity ins(%a : memref<8x3xf32>)
//                            outs(%b : memref<8x3xbf16>)
// becomes
//   %u = memref.collapse_shape %a [[0, 1]] : memref<8x3xf32> into
//   memref<24xf32> %v = memref.collapse_shape %b [[0, 1]] : ... linalg.generic
//   #identity ins(%u : memref<24xf32>) outs(%v : memref<24xbf16>)
//
// A cast of a large parameter is then one loop of full vectors, bound by
// memory, and not thousands of loops of one row.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_COLLAPSELOOPSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

static bool isDense(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && type.getLayout().isIdentity();
}

/// True if each operand is a dense buffer that is read or written at the
/// iteration's own place, or a scalar.
static bool isElementWise(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumLoops() < 2 ||
      op.getNumParallelLoops() != op.getNumLoops() || op.hasIndexSemantics())
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (op.isScalar(&operand))
      return map.getNumResults() == 0;
    return map.isIdentity() && isDense(operand.get());
  });
}

static void collapse(linalg::GenericOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  ReassociationIndices all =
      llvm::to_vector(llvm::seq<int64_t>(0, op.getNumLoops()));
  AffineMap identity = b.getMultiDimIdentityMap(1);
  AffineMap none = AffineMap::get(1, 0, b.getContext());
  SmallVector<Attribute> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isScalar = op.isScalar(&operand);
    maps.push_back(AffineMapAttr::get(isScalar ? none : identity));
    if (!isScalar)
      operand.set(memref::CollapseShapeOp::create(
          b, operand.get(), ArrayRef<ReassociationIndices>{all}));
  }
  op.setIndexingMapsAttr(b.getArrayAttr(maps));
  op.setIteratorTypesAttr(b.getArrayAttr(linalg::IteratorTypeAttr::get(
      b.getContext(), utils::IteratorType::parallel)));
}

namespace {
struct CollapseLoopsPass
    : fsdp::impl::CollapseLoopsPassBase<CollapseLoopsPass> {
  void runOnOperation() override {
    getOperation()->walk([](memref::CopyOp copy) {
      if (isDense(copy.getSource()) && isDense(copy.getTarget()))
        return;
      if (!isa<MemRefType>(copy.getSource().getType()) ||
          !isa<MemRefType>(copy.getTarget().getType()))
        return;
      OpBuilder builder(copy);
      linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
      copy.erase();
    });
    getOperation()->walk([](linalg::GenericOp op) {
      if (isElementWise(op))
        collapse(op);
    });
  }
};
} // namespace
