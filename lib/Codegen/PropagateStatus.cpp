//===- PropagateStatus.cpp - return early on a failed call ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %s = call @fsdprtFree(%context, %data) : (!llvm.ptr, !llvm.ptr) -> i32
//   ...
// becomes
//   %s = call @fsdprtFree(%context, %data) : (!llvm.ptr, !llvm.ptr) -> i32
//   %failed = arith.cmpi ne, %s, %zero : i32
//   cf.cond_br %failed, ^failure(%s : i32), ^next
// ^next:
//   ...
// ^failure(%status: i32):
//   return %status : i32
//
// The other results of a failed function are poison: nobody may look at them,
// and nobody does, since every caller checks the status first.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PROPAGATESTATUSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if the last result of `function` is a status.
static bool hasStatus(func::FuncOp function) {
  unsigned results = function.getNumResults();
  return results != 0 &&
         function.getResultAttr(results - 1, FsdpDialect::getStatusAttrName());
}

/// The block that returns its argument as the status, poison for the rest.
static Block *createFailureBlock(func::FuncOp function) {
  Location loc = function.getLoc();
  Block *block = function.addBlock();
  ImplicitLocOpBuilder b(loc, function.getContext());
  b.setInsertionPointToStart(block);
  SmallVector<Value> results;
  for (Type type : function.getResultTypes().drop_back())
    results.push_back(ub::PoisonOp::create(b, type));
  results.push_back(block->addArgument(b.getI32Type(), loc));
  func::ReturnOp::create(b, results);
  return block;
}

static void checkCall(func::CallOp call, Block *failure) {
  Block *block = call->getBlock();
  // The end of the block is the end of the function: it is returned anyway.
  auto ret = dyn_cast<func::ReturnOp>(call->getNextNode());
  Value status = call.getResults().back();
  if (ret && ret.getOperands().back() == status)
    return;
  Block *next = block->splitBlock(call->getNextNode());
  ImplicitLocOpBuilder b(call.getLoc(), call.getContext());
  b.setInsertionPointToEnd(block);
  Value success = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value failed =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, status, success);
  cf::CondBranchOp::create(b, failed, failure, ValueRange(status), next,
                           ValueRange());
}

namespace {
struct PropagateStatusPass
    : fsdp::impl::PropagateStatusPassBase<PropagateStatusPass> {
  void runOnOperation() override;
};
} // namespace

void PropagateStatusPass::runOnOperation() {
  ModuleOp module = getOperation();
  DenseSet<StringAttr> withStatus;
  for (auto function : module.getOps<func::FuncOp>())
    if (hasStatus(function))
      withStatus.insert(function.getSymNameAttr());

  // Everything that can be refused comes before the first change.
  SmallVector<std::pair<func::FuncOp, SmallVector<func::CallOp>>> work;
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<func::CallOp> checked;
    WalkResult result = function.walk([&](func::CallOp call) -> WalkResult {
      if (!withStatus.contains(call.getCalleeAttr().getAttr()))
        return WalkResult::advance();
      if (call->getParentOp() != function)
        return call.emitOpError("returns a status inside of '")
               << call->getParentOp()->getName()
               << "': expected flat control flow, after convert-scf-to-cf";
      if (!hasStatus(function))
        return call.emitOpError("returns a status, but '")
               << function.getSymName() << "' does not";
      checked.push_back(call);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (!checked.empty())
      work.push_back({function, std::move(checked)});
  }

  for (auto &[function, checked] : work) {
    Block *failure = createFailureBlock(function);
    // The last one first: a split then moves the ops up to the next call, and
    // not all that follow.
    for (func::CallOp call : llvm::reverse(checked))
      checkCall(call, failure);
    if (failure->hasNoPredecessors())
      failure->erase();
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (hasStatus(function))
      function.removeResultAttr(
          function.getNumResults() - 1,
          StringAttr::get(&getContext(), FsdpDialect::getStatusAttrName()));
}
