//===- FsdpToRuntime.cpp - collectives and buffers become calls -----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   func.func @f(%a: memref<32xf32>, %g: memref<4x32xf32>)
//       attributes {fsdp.entry = 1 : i64} {
//     fsdp.all_gather %a of @b outs(%g : memref<4x32xf32>) : ...
//     return
//   }
// becomes
//   func.func @fsdprt_entry_f(%context: !llvm.ptr, %arguments: !llvm.ptr,
//                             %results: !llvm.ptr) -> (i32 {fsdp.status}) {
//     %a = ... ; loaded from %arguments
//     ... ; one constant record, what is sent, what is received
//     %s = call @fsdprtRunCollectives(%context, %records, %one, ...)
//     return %zero : i32
//   }
//
// A function that reaches the runtime gets the context as its first argument,
// its buffers in a table (BufferArguments.h), and a status as its last result;
// fsdp-propagate-status, which needs a flat control flow, checks the statuses.
// Buffers are the context's: it frees what a failed run leaves behind, so no
// path has to.
//
// What single ops become are patterns, with calls and returns among them. What
// a function takes is decided for all functions before, in
// RuntimeLowering.cpp:
// that is no rewrite of an op, since an argument becomes loads at each of its
// uses.
//
//===----------------------------------------------------------------------===//

#include "RuntimeLowering.h"
#include "fsdp/Runtime/Runtime.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FSDPTORUNTIMEPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// Lowers an op of a function that has a context.
template <typename OpTy>
struct RuntimePattern : OpRewritePattern<OpTy> {
  RuntimePattern(MLIRContext *context, RuntimeLowering &lowering,
                 RuntimeLowering::State &state)
      : OpRewritePattern<OpTy>(context), lowering(lowering), state(state) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const final {
    if (!state.hasContext(op))
      return rewriter.notifyMatchFailure(op, "no context reaches it");
    std::string why = whyNoLowering(op, state.deviceMemory, state.symbolTable);
    if (!why.empty())
      return rewriter.notifyMatchFailure(op, why);
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    return lower(op, b, rewriter);
  }

  virtual LogicalResult lower(OpTy op, ImplicitLocOpBuilder &b,
                              PatternRewriter &rewriter) const = 0;

  RuntimeLowering &lowering;
  RuntimeLowering::State &state;
};

struct AllocLowering : RuntimePattern<memref::AllocOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::AllocOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    Value bytes = i64(b, *getStaticBytes(op));
    for (Value size : op.getDynamicSizes())
      bytes = arith::MulIOp::create(
          b, bytes, arith::IndexCastOp::create(b, b.getI64Type(), size));
    Value slot = lowering.getSlot(op);
    state.calls.call(b, RuntimeFunction::fsdprtAlloc,
                     {lowering.getContext(op), bytes, slot});
    Value data = LLVM::LoadOp::create(b, state.pointer, slot);
    rewriter.replaceOp(op, state.createDescriptor(b, op.getType(), data,
                                                  op.getDynamicSizes()));
    return success();
  }
};

struct DeallocLowering : RuntimePattern<memref::DeallocOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::DeallocOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    // Of the whole buffer, wherever a view starts.
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, op.getMemref());
    Value word = arith::IndexCastOp::create(b, b.getI64Type(), address);
    Value data = LLVM::IntToPtrOp::create(b, state.pointer, word);
    state.calls.call(b, RuntimeFunction::fsdprtFree,
                     {lowering.getContext(op), data});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyLowering : RuntimePattern<memref::CopyOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::CopyOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    int64_t bytes = getDenseBytes(cast<MemRefType>(op.getSource().getType()));
    Value source = createPointer(b, op.getSource());
    Value target = createPointer(b, op.getTarget());
    state.calls.call(b, RuntimeFunction::fsdprtCopy,
                     {lowering.getContext(op), source, target, i64(b, bytes)});
    rewriter.eraseOp(op);
    return success();
  }
};

/// A constant stays where the artefact has it; what is read is the device's.
struct ConstantLowering : RuntimePattern<memref::GetGlobalOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::GetGlobalOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    if (!state.constants.insert(op).second)
      return rewriter.notifyMatchFailure(op, "the device has it");
    b.setInsertionPointAfter(op);
    MemRefType type = op.getType();
    Value slot = lowering.getSlot(op);
    Value host = createPointer(b, op);
    Operation *address = op->getNextNode();
    state.calls.call(
        b, RuntimeFunction::fsdprtConstant,
        {lowering.getContext(op), host, i64(b, getDenseBytes(type)), slot});
    Value data = LLVM::LoadOp::create(b, state.pointer, slot);
    rewriter.replaceAllUsesExcept(
        op.getResult(), state.createDescriptor(b, type, data, {}), address);
    return success();
  }
};

struct LinearIndexLowering : RuntimePattern<shard::ProcessLinearIndexOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(shard::ProcessLinearIndexOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    Value slot = lowering.getSlot(op);
    state.calls.call(b, RuntimeFunction::fsdprtRank,
                     {lowering.getContext(op), slot});
    Value rank = LLVM::LoadOp::create(b, b.getI64Type(), slot);
    rewriter.replaceOp(op,
                       arith::IndexCastOp::create(b, b.getIndexType(), rank));
    return success();
  }
};

struct MultiIndexLowering : RuntimePattern<shard::ProcessMultiIndexOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(shard::ProcessMultiIndexOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    SmallVector<int32_t> axes(op.getAxes().begin(), op.getAxes().end());
    if (axes.empty()) // means all of them
      axes = llvm::to_vector(llvm::seq<int32_t>(0, op.getNumResults()));
    Value slot = lowering.getSlot(op);
    SmallVector<Value> coordinates;
    for (int32_t axis : axes) {
      state.calls.call(b, RuntimeFunction::fsdprtCoordinate,
                       {lowering.getContext(op), i32(b, axis), slot});
      Value coordinate = LLVM::LoadOp::create(b, b.getI64Type(), slot);
      coordinates.push_back(
          arith::IndexCastOp::create(b, b.getIndexType(), coordinate));
    }
    rewriter.replaceOp(op, coordinates);
    return success();
  }
};

/// A launch of one of our kernels: its first operand points to the addresses
/// that the kernel takes by value, the second is the bucket.
struct LaunchLowering : RuntimePattern<gpu::LaunchFuncOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(gpu::LaunchFuncOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    LLVM::LLVMFuncOp kernel = lookupKernel(op, state.symbolTable);
    int64_t words = *getKernelWords(op, kernel);
    auto size = [&](Value index) -> Value {
      return arith::IndexCastOp::create(b, b.getI64Type(), index);
    };
    auto [image, imageBytes] = state.calls.kernelImage(b);
    gpu::KernelDim3 blocks = op.getGridSizeOperandValues();
    gpu::KernelDim3 threads = op.getBlockSizeOperandValues();
    Value bucket =
        LLVM::AddrSpaceCastOp::create(b, state.pointer, op.getKernelOperand(1));
    state.calls.call(b, RuntimeFunction::fsdprtLaunch,
                     {lowering.getContext(op), image, imageBytes,
                      state.calls.name(b, kernel), size(blocks.x),
                      size(blocks.y), size(threads.x), op.getKernelOperand(0),
                      i64(b, 8 * words), bucket});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CallLowering : RuntimePattern<func::CallOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(func::CallOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    auto callee = state.symbolTable.lookupNearestSymbolFrom<func::FuncOp>(
        op, op.getCalleeAttr());
    if (!state.functions.contains(callee))
      return rewriter.notifyMatchFailure(op, "no context for what it calls");
    if (op.getNumResults() == callee.getNumResults())
      return rewriter.notifyMatchFailure(op, "it returns the status");
    auto withStatus = func::CallOp::create(
        b, callee,
        state.arguments.at(callee).createOperands(
            b, op->getParentOfType<func::FuncOp>(), op.getOperands()));
    rewriter.replaceOp(op, withStatus.getResults().drop_back());
    return success();
  }
};

struct ReturnLowering : RuntimePattern<func::ReturnOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(func::ReturnOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    if (op.getNumOperands() ==
        op->getParentOfType<func::FuncOp>().getNumResults())
      return rewriter.notifyMatchFailure(op, "it returns the status");
    Value status = i32(b, FSDPRT_SUCCESS);
    rewriter.modifyOpInPlace(
        op, [&] { op->insertOperands(op.getNumOperands(), status); });
    return success();
  }
};

/// Any collective of a kind that the runtime has.
struct CollectiveLowering : OpInterfaceRewritePattern<CollectiveOpInterface> {
  CollectiveLowering(MLIRContext *context, RuntimeLowering &lowering,
                     RuntimeLowering::State &state)
      : OpInterfaceRewritePattern(context), lowering(lowering), state(state) {}

  LogicalResult matchAndRewrite(CollectiveOpInterface op,
                                PatternRewriter &rewriter) const final {
    std::optional<int32_t> kind = getRuntimeKind(op.getCollectiveKind());
    if (!kind || !op.isBufferForm() || !state.hasContext(op))
      return rewriter.notifyMatchFailure(
          op, "the runtime has no such collective, it is on tensors, or no "
              "context reaches it");
    CollectiveRecord record;
    record.bucket = lookupBucket(op, state.symbolTable);
    FailureOr<ResolvedBucket> resolved =
        ResolvedBucket::get(record.bucket, state.symbolTable);
    if (failed(resolved))
      return rewriter.notifyMatchFailure(op, "its bucket does not verify");
    record.kind = *kind;
    record.axes = llvm::to_vector(op.getGroupAxes(resolved->group));
    record.count = resolved->layout.rowElements();
    if (std::optional<CollectiveReduction> reduction =
            op.getCollectiveReduction()) {
      record.reduction = getRuntimeReduction(reduction->op);
      if (reduction->multiplier)
        record.multiplier = reduction->multiplier.getValueAsDouble();
      record.accumulate = static_cast<bool>(reduction->accumulate);
    }
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    lowering.createCollective(b, op, record, op.getSent(), op.getReceived());
    rewriter.eraseOp(op);
    return success();
  }

  RuntimeLowering &lowering;
  RuntimeLowering::State &state;
};
} // namespace

void mlir::fsdp::populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                               RuntimeLowering &lowering) {
  RuntimeLowering::State &state = *lowering.state;
  patterns.add<AllocLowering, DeallocLowering, LinearIndexLowering,
               MultiIndexLowering, LaunchLowering, CallLowering, ReturnLowering,
               CollectiveLowering>(patterns.getContext(), lowering, state);
  if (state.deviceMemory)
    patterns.add<CopyLowering, ConstantLowering>(patterns.getContext(),
                                                 lowering, state);
}

namespace {
struct FsdpToRuntimePass
    : fsdp::impl::FsdpToRuntimePassBase<FsdpToRuntimePass> {
  using Base::Base;
  void runOnOperation() override {
    RuntimeLowering lowering(getOperation(), {deviceMemory});
    RewritePatternSet patterns(&getContext());
    populateFsdpToRuntimePatterns(patterns, lowering);
    // By name, so in one order.
    for (Dialect *dialect : getContext().getLoadedDialects())
      if (auto *other = dialect->getRegisteredInterface<
                        ConvertFsdpToRuntimeDialectInterface>())
        other->populateFsdpToRuntimePatterns(patterns, lowering);
    if (failed(lowering.run(std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
