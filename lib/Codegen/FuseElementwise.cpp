//===- FuseElementwise.cpp - splats as scalars, chains as one op ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %c = arith.constant dense<1.5> : tensor<1024xf32>
//   %w = linalg.generic ... ins(%g : tensor<1024xbf16>) { extf }
//   %r = linalg.generic ... ins(%w, %c : tensor<1024xf32>, tensor<1024xf32>)
//       { addf }
// becomes
//   %r = linalg.generic ... ins(%g, %s : tensor<1024xbf16>, f32) { extf, addf }
//
// and a constant of equal elements that is used in another way becomes a fill,
// in front of the op that needs it. Left as they are, such constants would be
// data of the artefact, every element of them.
//
// The arithmetic is that of before, op by op, so no bit changes. Upstream's
// pass of the same purpose works with a greedy driver, which also deletes and
// folds what it meets on the way; nothing but elementwise ops may change here,
// since the order of collectives has been proved.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Tensors that a fused op reads at the most: a kernel loads from all of them
/// before it computes.
static constexpr int64_t kMaxInputs = 8;

/// Whether `op` computes each element of its results from one element of each
/// operand.
static bool isElementwiseOnTensors(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && linalg::isElementwise(op);
}

//===----------------------------------------------------------------------===//
// Splats
//===----------------------------------------------------------------------===//

/// The element that `constant` consists of, null if there is none.
static TypedAttr getSplatElement(Attribute constant) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(constant);
  if (!splat || !splat.getElementType().isIntOrIndexOrFloat())
    return {};
  return splat.getSplatValue<TypedAttr>();
}

/// What every element of `tensor` is, where that is known; a constant is
/// created.
static Value getSplat(ImplicitLocOpBuilder &b, Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    TypedAttr element = getSplatElement(constant.getValue());
    return element ? arith::ConstantOp::create(b, element).getResult()
                   : Value();
  }
  if (auto splat = dyn_cast_or_null<tensor::SplatOp>(op))
    return splat.getInput();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return fill.value().getType() == getElementTypeOrSelf(tensor.getType())
               ? fill.value()
               : Value();
  return {};
}

/// Deletes `op` if nothing needs it: bufferization would keep it.
static void eraseIfUnused(Operation *op) {
  if (!op || !op->use_empty() || !isa<tensor::SplatOp, linalg::FillOp>(op))
    return;
  op->erase();
}

/// Hands splats to `op` as scalars.
static void foldSplats(linalg::GenericOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(input->get().getType()))
      continue;
    if (Value scalar = getSplat(b, input->get())) {
      Operation *producer = input->get().getDefiningOp();
      input->set(scalar);
      eraseIfUnused(producer);
      maps[input->getOperandNumber()] =
          AffineMap::get(op.getNumLoops(), 0, b.getContext());
    }
  }
  op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
}

/// Turns the splat `constant` into a fill for each op that uses it.
static void fillSplat(arith::ConstantOp constant) {
  TypedAttr element = getSplatElement(constant.getValue());
  auto type = dyn_cast<RankedTensorType>(constant.getType());
  if (!element || !type)
    return;
  // Not into a loop, which would fill it again and again.
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : constant->getUses()) {
    Operation *user =
        constant->getBlock()->findAncestorOpInBlock(*use.getOwner());
    uses[user ? user : constant->getNextNode()].push_back(&use);
  }
  for (auto &[before, operands] : uses) {
    ImplicitLocOpBuilder b(constant.getLoc(), before);
    Value scalar = arith::ConstantOp::create(b, element);
    Value empty =
        tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
    Value filled =
        linalg::FillOp::create(b, ValueRange(scalar), ValueRange(empty))
            .getResult(0);
    for (OpOperand *operand : operands)
      operand->set(filled);
  }
  constant.erase();
}

//===----------------------------------------------------------------------===//
// Destinations
//===----------------------------------------------------------------------===//

/// Operands whose elements are overwritten without having been read.
static SmallVector<OpOperand *> getUnreadInits(linalg::GenericOp op) {
  SmallVector<OpOperand *> inits;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.payloadUsesValueFromOperand(&init))
      inits.push_back(&init);
  return inits;
}

/// A destination that is not read keeps no value alive: not an operand that was
/// taken for want of another one, nor a splat. A program's own choice stays.
static void forgetInits(linalg::GenericOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  for (OpOperand *init : getUnreadInits(op)) {
    Value value = init->get();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isChosen =
        !llvm::is_contained(op.getInputs(), value) &&
        !isa_and_nonnull<arith::ConstantOp, tensor::SplatOp, linalg::FillOp>(
            value.getDefiningOp());
    if (type && type.hasStaticShape() && !isChosen)
      init->set(
          tensor::EmptyOp::create(b, type.getShape(), type.getElementType()));
  }
}

/// How good it is to write a result where `value` is, which `op` reads; 0 is
/// best. Bufferization decides whether it can be done.
static int rankDestination(linalg::GenericOp op, Value value) {
  // A loop wants its next value where it has the one before.
  auto argument = dyn_cast<BlockArgument>(value);
  bool isCarried =
      argument && !isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (value.hasOneUse() && isCarried)
    return 0;
  Operation *producer = value.getDefiningOp();
  if (value.hasOneUse() && producer && producer->getBlock() == op->getBlock())
    return 1;
  return isCarried ? 2 : 3;
}

/// Lets `op` write into an operand, the best one for that.
static void reuseInputs(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  DenseSet<Value> used;
  for (OpOperand *init : getUnreadInits(op)) {
    auto empty = init->get().getDefiningOp<tensor::EmptyOp>();
    if (!empty || !empty->hasOneUse())
      continue;
    Value best;
    for (OpOperand *input : op.getDpsInputOperands()) {
      Value value = input->get();
      if (value.getType() == empty.getType() && !used.contains(value) &&
          maps[input->getOperandNumber()] == maps[init->getOperandNumber()] &&
          (!best || rankDestination(op, value) < rankDestination(op, best)))
        best = value;
    }
    if (!best)
      continue;
    used.insert(best);
    init->set(best);
    empty.erase();
  }
}

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

static int64_t countTensors(linalg::GenericOp op) {
  return llvm::count_if(op.getInputs(), [](Value input) {
    return isa<RankedTensorType>(input.getType());
  });
}

/// The operand of `consumer` whose producer can move into it, if there is one.
static OpOperand *findFusable(linalg::GenericOp consumer) {
  for (OpOperand *operand : consumer.getDpsInputOperands()) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    if (producer && producer->getBlock() == consumer->getBlock() &&
        producer->getNumResults() == 1 && operand->get().hasOneUse() &&
        isElementwiseOnTensors(producer) &&
        countTensors(producer) + countTensors(consumer) - 1 <= kMaxInputs &&
        linalg::areElementwiseOpsFusable(operand))
      return operand;
  }
  return nullptr;
}

/// Moves into `op` what computes its operands.
static void fuseProducers(linalg::GenericOp op) {
  IRRewriter rewriter(op.getContext());
  while (OpOperand *operand = findFusable(op)) {
    Operation *producer = operand->get().getDefiningOp();
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::ElementwiseOpFusionResult> fused =
        linalg::fuseElementwiseOps(rewriter, operand);
    if (failed(fused))
      break;
    for (Value result : op.getResults())
      result.replaceAllUsesWith(fused->replacements.lookup(result));
    rewriter.eraseOp(op);
    rewriter.eraseOp(producer);
    op = cast<linalg::GenericOp>(fused->fusedOp);
  }
}

namespace {
struct FuseElementwisePass
    : fsdp::impl::FuseElementwisePassBase<FuseElementwisePass> {
  void runOnOperation() override;
};
} // namespace

void FuseElementwisePass::runOnOperation() {
  // Named ops too, but not those that say what is best kept.
  SmallVector<linalg::LinalgOp> found;
  getOperation()->walk([&](linalg::LinalgOp op) {
    if (isElementwiseOnTensors(op) && !isa<linalg::FillOp, linalg::CopyOp>(op))
      found.push_back(op);
  });
  SmallVector<linalg::GenericOp> ops;
  for (linalg::LinalgOp op : found) {
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    if (!generic) {
      IRRewriter rewriter(op);
      FailureOr<linalg::GenericOp> made =
          linalg::generalizeNamedOp(rewriter, op);
      if (failed(made))
        continue;
      generic = *made;
    }
    forgetInits(generic);
    foldSplats(generic);
    ops.push_back(generic);
  }
  // In their order, so that an operand's producer has all of its own in it.
  for (linalg::GenericOp op : ops)
    fuseProducers(op);
  SmallVector<arith::ConstantOp> constants;
  getOperation()->walk([&](Operation *op) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      reuseInputs(generic);
    else if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constants.push_back(constant);
  });
  for (arith::ConstantOp constant : constants)
    fillSplat(constant);
}
