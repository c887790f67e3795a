//===- new-opt.cpp - passes of ours on a collective that they do not know -===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built against the installed package alone: a dialect with a collective, and
// a tool with this dialect and passes of ours. Its lowering is one pattern,
// which convert-fsdp-to-runtime gets by the dialect's interface, and which a
// pass of its own adds to ours.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Conversion/FsdpToRuntime.h"
#include "fsdp/Conversion/FsdpToTiles.h"
#include "fsdp/Dialect/Fsdp.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/OutputFile.h"
#include "fsdp/Target/Header.h"
#include "fsdp/Target/MachineCode.h"
#include "fsdp/Transforms/BufferizableOpInterfaceImpl.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/DialectConversion.h"

#include "NewCollectiveDialect.h.inc"
#define GET_OP_CLASSES
#include "NewCollective.h.inc"

#include "NewCollectiveDialect.cpp.inc"
#define GET_OP_CLASSES
#include "NewCollective.cpp.inc"

using namespace mlir;

namespace {
/// Gathers the rows of all replicas, and keeps those of the first one. The
/// buffer in between is lowered by our patterns.
struct BroadcastRowsLowering : OpRewritePattern<test::BroadcastRowsOp> {
  BroadcastRowsLowering(MLIRContext *context, fsdp::RuntimeLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(test::BroadcastRowsOp op,
                                PatternRewriter &rewriter) const final {
    if (!lowering.getContext(op))
      return rewriter.notifyMatchFailure(op, "no context reaches it");
    SymbolTableCollection symbolTable;
    fsdp::BucketOp bucket = fsdp::lookupBucket(op, symbolTable);
    FailureOr<fsdp::ResolvedBucket> resolved =
        fsdp::ResolvedBucket::get(bucket, symbolTable);
    if (failed(resolved))
      return rewriter.notifyMatchFailure(op, "its bucket does not verify");
    auto type = cast<MemRefType>(op.getPacked().getType());
    fsdp::CollectiveRecord record;
    record.bucket = bucket;
    record.kind = FSDPRT_ALL_GATHER;
    record.axes = op.getGroupAxes(resolved->group);
    int64_t replicas = resolved->group.grid.groupSize(record.axes);
    record.count = type.getNumElements();

    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<int64_t> shape{replicas};
    llvm::append_range(shape, type.getShape());
    Value all = memref::AllocOp::create(
        b, MemRefType::get(shape, type.getElementType()));
    lowering.createCollective(b, op, record, op.getPacked(), all);
    SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), ArrayRef<int64_t>(shape));
    sizes[0] = b.getIndexAttr(1);
    auto firstType = memref::SubViewOp::inferRankReducedResultType(
        type.getShape(), cast<MemRefType>(all.getType()), offsets, sizes,
        strides);
    Value first =
        memref::SubViewOp::create(b, firstType, all, offsets, sizes, strides);
    memref::CopyOp::create(b, first, op.getOutput());
    memref::DeallocOp::create(b, all);
    rewriter.eraseOp(op);
    return success();
  }

  fsdp::RuntimeLowering &lowering;
};

/// For convert-fsdp-to-runtime, wherever it runs.
struct TestToRuntimeInterface : fsdp::ConvertFsdpToRuntimeDialectInterface {
  using ConvertFsdpToRuntimeDialectInterface::
      ConvertFsdpToRuntimeDialectInterface;
  void
  populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                fsdp::RuntimeLowering &lowering) const final {
    patterns.add<BroadcastRowsLowering>(patterns.getContext(), lowering);
  }
};

/// The same by hand: local ops by upstream's conversion driver, then ours.
struct TestLowerPass : PassWrapper<TestLowerPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestLowerPass)
  StringRef getArgument() const final { return "test-lower"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                    memref::MemRefDialect>();
  }
  void runOnOperation() final {
    RewritePatternSet tiles(&getContext());
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) { return !isa<fsdp::LocalOpInterface>(op); });
    if (failed(fsdp::populateFsdpToTilesPatterns(tiles, getOperation())) ||
        failed(
            applyPartialConversion(getOperation(), target, std::move(tiles))))
      return signalPassFailure();
    fsdp::RuntimeLowering lowering(getOperation());
    RewritePatternSet patterns(&getContext());
    fsdp::populateFsdpToRuntimePatterns(patterns, lowering);
    if (isOwn)
      patterns.add<BroadcastRowsLowering>(&getContext(), lowering);
    if (failed(lowering.run(std::move(patterns))))
      signalPassFailure();
  }
  TestLowerPass() = default;
  TestLowerPass(const TestLowerPass &other) : PassWrapper(other) {}
  Option<bool> isOwn{*this, "own", llvm::cl::init(true),
                     llvm::cl::desc("with the pattern of the collective")};
};

/// Writes the artefact that a lowered module is.
struct TestEmitPass : PassWrapper<TestEmitPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestEmitPass)
  StringRef getArgument() const final { return "test-emit"; }
  void runOnOperation() final {
    fsdp::addNamesForC(getOperation());
    auto object = fsdp::createObject(getOperation(), "x86-64-v3",
                                     fsdp::CodegenLevel::Full);
    if (!object)
      return fail(object.takeError());
    auto artefact = fsdp::linkArtefact(*object, libraries, path);
    if (!artefact)
      return fail(artefact.takeError());
    if (llvm::Error error = fsdp::writeFile(path, (*artefact)->getBuffer()))
      return fail(std::move(error));
  }
  void fail(llvm::Error error) {
    getOperation().emitError(llvm::toString(std::move(error)));
    signalPassFailure();
  }
  TestEmitPass() = default;
  TestEmitPass(const TestEmitPass &other) : PassWrapper(other) {}
  Option<std::string> libraries{*this, "libraries",
                                llvm::cl::desc("where libfsdprt is")};
  Option<std::string> path{*this, "path", llvm::cl::desc("of the artefact")};
};
} // namespace

void test::TestDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "NewCollective.cpp.inc"
      >();
  addInterfaces<TestToRuntimeInterface>();
}

fsdp::BucketValues test::BroadcastRowsOp::getBucketValues() {
  return {{getPacked(), fsdp::BucketForm::Packed},
          {isBufferForm() ? getOutput() : getRows(), fsdp::BucketForm::Packed}};
}
MutableOperandRange test::BroadcastRowsOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
fsdp::CollectiveKind test::BroadcastRowsOp::getCollectiveKind() {
  return fsdp::CollectiveKind::Other;
}
SmallVector<int64_t>
test::BroadcastRowsOp::getGroupAxes(const fsdp::UnitGroup &group) {
  return group.replicateAxes;
}

fsdp::BucketValues test::BareReduceOp::getBucketValues() {
  return {
      {getFlat(), fsdp::BucketForm::Flat},
      {isBufferForm() ? getOutput() : getReduced(), fsdp::BucketForm::Flat}};
}
MutableOperandRange test::BareReduceOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
fsdp::CollectiveKind test::BareReduceOp::getCollectiveKind() {
  return fsdp::CollectiveKind::AllReduce;
}
SmallVector<int64_t>
test::BareReduceOp::getGroupAxes(const fsdp::UnitGroup &group) {
  return group.replicateAxes;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  fsdp::registerFsdpPipelineDialects(registry);
  registry.insert<test::TestDialect>();
  registry.addExtension(+[](MLIRContext *context, test::TestDialect *) {
    test::BroadcastRowsOp::attachInterface<
        fsdp::BucketUserBufferizableModel<test::BroadcastRowsOp>>(*context);
  });
  fsdp::registerFsdpTransformsPasses();
  fsdp::registerFsdpConversionPasses();
  fsdp::registerFsdpPipelines();
  PassRegistration<TestLowerPass>();
  PassRegistration<TestEmitPass>();
  return asMainReturnCode(MlirOptMain(argc, argv, "new-opt\n", registry));
}
