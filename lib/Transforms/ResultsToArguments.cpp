//===- ResultsToArguments.cpp - results are written where they belong -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   func.func @f(%a: memref<4xf32>) -> memref<4xf32> {
//     %r = memref.alloc() : memref<4xf32>
//     "write"(%a, %r) : (memref<4xf32>, memref<4xf32>) -> ()
//     return %r : memref<4xf32>
//   }
// becomes
//   func.func @f(%a: memref<4xf32>, %r: memref<4xf32>) {
//     "write"(%a, %r) : (memref<4xf32>, memref<4xf32>) -> ()
//     return
//   }
//
// A buffer is the argument itself if it is allocated once and returned once;
// otherwise the return copies. Upstream's buffer-results-to-out-params does not
// see a buffer that is returned twice (it crashes), nor one that stands in a
// loop.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RESULTSTOARGUMENTSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The positions of a function's results that are buffers.
static BitVector findBuffers(TypeRange results) {
  BitVector buffers(results.size());
  for (auto [index, type] : llvm::enumerate(results))
    if (isa<BaseMemRefType>(type))
      buffers.set(index);
  return buffers;
}

static LogicalResult check(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getResultTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (isa<UnrankedMemRefType>(type) ||
        (memref &&
         (!memref.hasStaticShape() || !memref.getLayout().isIdentity())))
      return function.emitOpError("returns a buffer that its caller cannot "
                                  "allocate: expected a dense one of static "
                                  "shape as result #")
             << index << ", but it is " << type;
  }
  return success();
}

/// The allocation behind `buffer`, if it can become an argument: it runs once
/// per call, and no other return could see it.
static memref::AllocOp findAlloc(Value buffer, func::ReturnOp ret) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return {};
  bool runsOnce =
      alloc->getBlock()->isEntryBlock() || alloc->getBlock() == ret->getBlock();
  return runsOnce && alloc->getParentOp() == ret->getParentOp()
             ? alloc
             : memref::AllocOp();
}

/// Gives `function` an argument for each buffer that it returns.
static LogicalResult moveResults(func::FuncOp function,
                                 const BitVector &buffers) {
  // All at once: one at a time would copy the lists as often.
  unsigned first = function.getNumArguments();
  SmallVector<unsigned> positions(buffers.count(), first);
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locs(buffers.count(), function.getLoc());
  for (unsigned index : buffers.set_bits()) {
    types.push_back(function.getResultTypes()[index]);
    attributes.push_back(function.getResultAttrDict(index));
  }
  if (failed(function.insertArguments(positions, types, attributes, locs)) ||
      failed(function.eraseResults(buffers)))
    return failure();
  auto returns = llvm::to_vector(function.getBody().getOps<func::ReturnOp>());
  for (func::ReturnOp ret : returns) {
    ImplicitLocOpBuilder b(ret.getLoc(), ret);
    for (auto [number, index] : llvm::enumerate(buffers.set_bits())) {
      Value buffer = ret.getOperand(index);
      Value argument = function.getArgument(first + number);
      memref::AllocOp alloc;
      if (returns.size() == 1)
        alloc = findAlloc(buffer, ret);
      if (alloc) {
        buffer.replaceAllUsesWith(argument);
        alloc.erase();
      } else {
        memref::CopyOp::create(b, buffer, argument);
      }
    }
    ret->eraseOperands(buffers);
  }
  return success();
}

/// Allocates what a call used to return.
static void updateCall(func::CallOp call) {
  BitVector buffers = findBuffers(call.getResultTypes());
  ImplicitLocOpBuilder b(call.getLoc(), call);
  SmallVector<Value> operands(call.getOperands());
  SmallVector<Type> types;
  SmallVector<Value> replacements(call.getNumResults());
  for (OpResult result : call.getResults()) {
    if (buffers[result.getResultNumber()]) {
      replacements[result.getResultNumber()] =
          memref::AllocOp::create(b, cast<MemRefType>(result.getType()));
      operands.push_back(replacements[result.getResultNumber()]);
    } else {
      types.push_back(result.getType());
    }
  }
  auto created = func::CallOp::create(b, call.getCallee(), types, operands);
  unsigned next = 0;
  for (Value &replacement : replacements)
    if (!replacement)
      replacement = created.getResult(next++);
  call->replaceAllUsesWith(replacements);
  call->erase();
}

namespace {
struct ResultsToArgumentsPass
    : fsdp::impl::ResultsToArgumentsPassBase<ResultsToArgumentsPass> {
  void runOnOperation() override {
    SmallVector<std::pair<func::FuncOp, BitVector>> work;
    DenseSet<StringAttr> changed;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      BitVector buffers = findBuffers(function.getResultTypes());
      if (buffers.none())
        continue;
      if (failed(check(function)))
        return signalPassFailure();
      changed.insert(function.getSymNameAttr());
      work.push_back({function, buffers});
    }
    SmallVector<func::CallOp> calls;
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      auto call = dyn_cast<func::CallOp>(op);
      if (call && changed.contains(call.getCalleeAttr().getAttr()))
        calls.push_back(call);
      auto constant = dyn_cast<func::ConstantOp>(op);
      if (constant && changed.contains(constant.getValueAttr().getAttr()))
        return op->emitOpError("refers to '")
               << constant.getValue()
               << "', which returns a buffer: expected direct calls only";
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    // Calls first: what one of them allocates may be returned.
    for (func::CallOp call : calls)
      updateCall(call);
    for (auto &[function, buffers] : work)
      if (failed(moveResults(function, buffers)))
        return signalPassFailure();
  }
};
} // namespace
