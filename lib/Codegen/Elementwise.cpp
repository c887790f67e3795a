//===- Elementwise.cpp - elementwise ops as kernels see them --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Elementwise.h"

#include "Float/FloatExpansion.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// What there are kernels for
//===----------------------------------------------------------------------===//

static InFlightDiagnostic refuse(Operation *op) {
  return op->emitOpError("has no lowering to cuda: expected ");
}

/// True for ops of `arith` whose results the language defines to the bit, or
/// which only move bits. Remainders of floats are not among them.
static bool isArithmetic(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp, arith::AndIOp, arith::BitcastOp,
             arith::CmpFOp, arith::CmpIOp, arith::ConstantOp, arith::DivFOp,
             arith::DivSIOp, arith::DivUIOp, arith::ExtFOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::FPToSIOp, arith::FPToUIOp, arith::MaxNumFOp,
             arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp,
             arith::MinNumFOp, arith::MinimumFOp, arith::MinSIOp,
             arith::MinUIOp, arith::MulFOp, arith::MulIOp, arith::NegFOp,
             arith::OrIOp, arith::RemSIOp, arith::RemUIOp, arith::SelectOp,
             arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, arith::SIToFPOp,
             arith::SubFOp, arith::SubIOp, arith::TruncFOp, arith::TruncIOp,
             arith::UIToFPOp, arith::XOrIOp>(op);
}

/// Whether a buffer may hold elements of `type`.
static bool isStored(Type type) {
  return isFloatDtype(type) || isOpaqueDtype(type) || type.isInteger(1);
}

/// Whether there is arithmetic on `type`.
static bool isComputed(Type type) {
  return isStored(type) && (isFloatDtype(type) || isa<IntegerType>(type));
}

static LogicalResult checkType(Operation *op, Type type,
                               bool (*isAllowed)(Type)) {
  Type element = getElementTypeOrSelf(type);
  if (isAllowed(element))
    return success();
  return refuse(op) << "elements of f16, bf16, f32, f64, i1, i8, i16, i32 or "
                       "i64, but they are of "
                    << element;
}

LogicalResult mlir::fsdp::checkArithmetic(Operation *op) {
  if (!isArithmetic(op))
    return refuse(op)
           << "an op of fsdp, a fill, a copy, or elementwise arithmetic";
  auto isAllowed =
      isa<arith::ConstantOp, arith::SelectOp>(op) ? isStored : isComputed;
  for (Value value :
       llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                           SmallVector<Value>(op->getResults()))) {
    if (failed(checkType(op, value.getType(), isAllowed)))
      return failure();
    auto shaped = dyn_cast<ShapedType>(value.getType());
    if (shaped && !shaped.hasStaticShape())
      return refuse(op) << "a static shape, but it is " << shaped;
  }
  return checkFloats(op, "cuda");
}

LogicalResult mlir::fsdp::checkElementwise(linalg::LinalgOp op) {
  if (op.getNumParallelLoops() != op.getNumLoops())
    return refuse(op)
           << "an op of fsdp, a fill, a copy, or elementwise arithmetic";
  for (OpOperand &operand : op->getOpOperands()) {
    if (failed(checkType(op, operand.get().getType(), isStored)))
      return failure();
    auto shaped = dyn_cast<ShapedType>(operand.get().getType());
    if (shaped && !shaped.hasStaticShape())
      return refuse(op) << "a static shape, but it is " << shaped;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    // Each element is written once.
    if (op.isDpsInit(&operand)
            ? !map.isPermutation()
            : !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return refuse(op) << "operands whose dimensions are loops, but operand #"
                        << operand.getOperandNumber() << " has the map "
                        << AffineMapAttr::get(map);
  }
  for (Operation &inner : op.getBlock()->without_terminator())
    if (!inner.use_empty() && failed(checkArithmetic(&inner)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Finds out how `operand`, a buffer, is indexed by `map` in `numLoops` loops.
static LogicalResult findStrides(Operation *op, Elementwise::Operand &operand,
                                 AffineMap map, unsigned numLoops) {
  auto type = cast<MemRefType>(operand.value.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return refuse(op) << "buffers with strides, but one is " << type;
  operand.strides.assign(numLoops, 0);
  operand.dimensions.assign(numLoops, -1);
  for (auto [index, result] : llvm::enumerate(map.getResults())) {
    auto dimension = dyn_cast<AffineDimExpr>(result);
    if (!dimension)
      continue; // always 0
    operand.strides[dimension.getPosition()] = strides[index];
    operand.dimensions[dimension.getPosition()] = index;
  }
  return success();
}

/// Drops loops of one iteration, and joins those that are one in all buffers.
static void simplifyLoops(Elementwise &loops) {
  auto dropLoop = [&](size_t loop) {
    loops.extents.erase(loops.extents.begin() + loop);
    for (Elementwise::Operand &operand : loops.operands) {
      if (operand.isNumber())
        continue;
      operand.strides.erase(operand.strides.begin() + loop);
      operand.dimensions.erase(operand.dimensions.begin() + loop);
    }
  };
  // A buffer has a stride per loop, so that one loop must stay.
  for (size_t loop = loops.extents.size(); loop-- > 0;)
    if (loops.extents[loop] == 1 && loops.extents.size() > 1)
      dropLoop(loop);
  for (size_t loop = loops.extents.size(); loop-- > 1;) {
    bool areOne =
        llvm::all_of(loops.operands, [&](const Elementwise::Operand &operand) {
          return operand.isNumber() ||
                 (!ShapedType::isDynamic(operand.strides[loop]) &&
                  operand.strides[loop - 1] ==
                      operand.strides[loop] * loops.extents[loop]);
        });
    if (!areOne)
      continue;
    for (Elementwise::Operand &operand : loops.operands) {
      if (operand.isNumber())
        continue;
      operand.strides[loop - 1] = operand.strides[loop];
      operand.dimensions[loop - 1] = operand.dimensions[loop];
    }
    loops.extents[loop - 1] *= loops.extents[loop];
    dropLoop(loop);
  }
  // What the stride of one element is makes no difference.
  if (loops.numElements() == 1)
    for (Elementwise::Operand &operand : loops.operands)
      llvm::fill(operand.strides, 1);
}

bool Elementwise::isLinear() const {
  return extents.size() == 1 &&
         llvm::all_of(operands, [](const Operand &operand) {
           return operand.isNumber() || operand.isUniform() ||
                  operand.strides.front() == 1;
         });
}

FailureOr<Elementwise> Elementwise::get(linalg::GenericOp op) {
  Elementwise loops;
  loops.op = op;
  loops.extents = op.getStaticLoopRanges();
  bool hasNoLoop = loops.extents.empty(); // on one element
  if (hasNoLoop)
    loops.extents.push_back(1);
  for (OpOperand &opOperand : op->getOpOperands()) {
    Operand operand;
    operand.value = opOperand.get();
    operand.dtype = getElementTypeOrSelf(operand.value.getType());
    operand.isWritten = op.isDpsInit(&opOperand);
    operand.isRead =
        !operand.isWritten || op.payloadUsesValueFromOperand(&opOperand);
    if (isa<MemRefType>(operand.value.getType()) &&
        failed(findStrides(op, operand, op.getMatchingIndexingMap(&opOperand),
                           loops.extents.size())))
      return failure();
    loops.operands.push_back(std::move(operand));
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  for (Value value : captured) {
    if (failed(checkType(op, value.getType(), isComputed)))
      return failure();
    Operand operand;
    operand.value = value;
    operand.dtype = value.getType();
    operand.isRead = true;
    loops.operands.push_back(std::move(operand));
  }
  simplifyLoops(loops);
  return loops;
}
