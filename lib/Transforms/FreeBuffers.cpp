//===- FreeBuffers.cpp - buffers live until their last use ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %b = memref.alloc() : memref<4xf32>
//   "write"(%b) : (memref<4xf32>) -> ()
//   "other"() : () -> ()
// becomes
//   %b = memref.alloc() : memref<4xf32>
//   "write"(%b) : (memref<4xf32>) -> ()
//   memref.dealloc %b : memref<4xf32>
//   "other"() : () -> ()
//
// A buffer whose uses, and those of its views, are all in its own block or
// below, and that no op carries elsewhere, is freed behind the last of them.
// That is every buffer of the straight-line code that FSDP makes, in one look
// at each use. The others, which loops carry and branches choose between, are
// left to upstream's buffer deallocation, which compares the buffers of a block
// with each other. That one must not see ours: they are allocas as long as it
// runs, memory that has an owner.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Transforms/Passes.h"

#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FREEBUFFERSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if no result or region of `user` can be the buffer `operand` later on.
static bool onlyUses(Operation *user) {
  if (user->hasTrait<OpTrait::IsTerminator>() ||
      isa<RegionBranchOpInterface, memref::DeallocOp>(user) ||
      llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>))
    return false;
  return isa<BucketUserOpInterface, MemoryEffectOpInterface, func::CallOp>(
      user);
}

/// The op of the buffer's block behind which nothing uses it; null if that is
/// not known.
static Operation *findLastUse(Operation *alloc) {
  Block *block = alloc->getBlock();
  Operation *last = alloc;
  SmallVector<Value> names{alloc->getResult(0)};
  while (!names.empty()) {
    for (OpOperand &use : names.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      Operation *place = block->findAncestorOpInBlock(*user);
      if (!place)
        return nullptr;
      if (last->isBeforeInBlock(place))
        last = place;
      auto view = dyn_cast<ViewLikeOpInterface>(user);
      if (view && view.getViewSource() == use.get() &&
          isa<BaseMemRefType>(user->getResult(0).getType()))
        names.push_back(user->getResult(0));
      else if (!onlyUses(user))
        return nullptr;
    }
  }
  return last;
}

namespace {
struct FreeBuffersPass : fsdp::impl::FreeBuffersPassBase<FreeBuffersPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    FreeBuffersPassBase::getDependentDialects(registry);
    OpPassManager manager(ModuleOp::getOperationName());
    addUpstream(manager);
    manager.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool hasOthers = false;
    SmallVector<memref::AllocOp> allocs;
    module.walk([&](memref::AllocOp alloc) {
      if (findLastUse(alloc))
        allocs.push_back(alloc);
      else
        hasOthers = true;
    });
    if (!hasOthers)
      return free(allocs);
    StringAttr mark = StringAttr::get(&getContext(), "freed_later");
    for (memref::AllocOp alloc : allocs) {
      OpBuilder b(alloc);
      auto alloca = memref::AllocaOp::create(
          b, alloc.getLoc(), alloc.getType(), alloc.getDynamicSizes(),
          alloc.getSymbolOperands(), alloc.getAlignmentAttr());
      alloca->setAttr(mark, b.getUnitAttr());
      alloc.replaceAllUsesWith(alloca.getResult());
      alloc.erase();
    }
    OpPassManager manager(ModuleOp::getOperationName());
    addUpstream(manager);
    if (failed(runPipeline(manager, module)))
      return signalPassFailure();
    allocs.clear();
    SmallVector<memref::AllocaOp> hidden;
    module.walk([&](memref::AllocaOp alloca) {
      if (alloca->hasAttr(mark))
        hidden.push_back(alloca);
    });
    for (memref::AllocaOp alloca : hidden) {
      OpBuilder b(alloca);
      allocs.push_back(memref::AllocOp::create(
          b, alloca.getLoc(), alloca.getType(), alloca.getDynamicSizes(),
          alloca.getSymbolOperands(), alloca.getAlignmentAttr()));
      alloca.replaceAllUsesWith(allocs.back().getResult());
      alloca.erase();
    }
    free(allocs);
  }

private:
  static void addUpstream(OpPassManager &manager) {
    // As buildBufferDeallocationPipeline does, with a step before the last one.
    manager.addPass(memref::createExpandReallocPass({/*emitDeallocs=*/false}));
    manager.addPass(createCanonicalizerPass());
    manager.addPass(
        bufferization::createOwnershipBasedBufferDeallocationPass());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(
        bufferization::createBufferDeallocationSimplificationPass());
    // Lowering an op on several buffers would write tables into memory.
    manager.addPass(createSplitDeallocationsPass());
    manager.addPass(bufferization::createLowerDeallocationsPass());
    // Copies where one buffer would have two owners.
    manager.addPass(createConvertBufferizationToMemRefPass());
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    // Deallocations stand at the ends of blocks; move them to the last uses.
    manager.addNestedPass<func::FuncOp>(
        bufferization::createOptimizeAllocationLivenessPass());
  }

  /// Frees all of `allocs`. Looks first, so that the order of the ops in a
  /// block is computed once.
  static void free(ArrayRef<memref::AllocOp> allocs) {
    SmallVector<Operation *> last;
    for (memref::AllocOp alloc : allocs)
      last.push_back(findLastUse(alloc));
    for (auto [found, place] : llvm::zip_equal(allocs, last)) {
      memref::AllocOp alloc = found;
      OpBuilder b(alloc->getBlock()->getTerminator());
      if (place)
        b.setInsertionPointAfter(place);
      memref::DeallocOp::create(b, alloc.getLoc(), alloc);
    }
  }
};
} // namespace
