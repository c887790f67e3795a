//===- ElementwiseToKernels.cpp - arithmetic around our ops, on a GPU -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linalg.generic ... ins(%a, %b : memref<8x3xf32>, memref<8x3xf32>)
//       outs(%c : memref<8x3xf32>) { addf }
// becomes
//   gpu.launch_func @fsdp_kernels::@elementwise_addf_f32 args(%words, %c)
//
// where the words are the three addresses and 24. Ops that compute the same on
// other buffers share the kernel.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/ElementwiseToKernels.h"

#include "ApplyInOrder.h"
#include "Quietly.h"
#include "fsdp/Codegen/ElementwiseKernel.h"
#include "fsdp/Codegen/KernelModule.h"
#include "fsdp/Codegen/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ELEMENTWISETOKERNELSPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// What the elementwise ops of one module share: the kernels.
class KernelLowering {
public:
  KernelLowering(ModuleOp module, const GpuChip *chip, StringRef features)
      : kernels(module, symbolTables, chip, features) {}

  LogicalResult lower(linalg::GenericOp op, PatternRewriter &rewriter);

private:
  SymbolTableCollection symbolTables;
  KernelModule kernels;
  llvm::StringMap<LLVM::LLVMFuncOp> known; ///< by key
};

struct ElementwiseToKernelsPass
    : fsdp::impl::ElementwiseToKernelsPassBase<ElementwiseToKernelsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The bits of a number as a 64-bit word.
static Value toWord(ImplicitLocOpBuilder &b, Value number) {
  Type type = number.getType();
  if (isa<FloatType>(type)) {
    type = b.getIntegerType(type.getIntOrFloatBitWidth());
    number = arith::BitcastOp::create(b, type, number);
  }
  return type.isInteger(64)
             ? number
             : arith::ExtUIOp::create(b, b.getI64Type(), number).getResult();
}

/// Emits an error at `op`, or at an op in it, where no kernel can be made.
static FailureOr<Elementwise> analyse(linalg::GenericOp op) {
  if (failed(checkElementwise(op)))
    return failure();
  FailureOr<Elementwise> loops = Elementwise::get(op);
  if (failed(loops))
    return failure();
  if (!op->getParentOfType<FunctionOpInterface>())
    return op.emitOpError("cannot be lowered: it is in no function");
  return loops;
}

LogicalResult mlir::fsdp::checkElementwiseToKernels(linalg::LinalgOp op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    return analyse(generic);
  return checkElementwise(op);
}

LogicalResult KernelLowering::lower(linalg::GenericOp op,
                                    PatternRewriter &rewriter) {
  FailureOr<Elementwise> loops =
      quietly(op->getContext(), [&] { return analyse(op); });
  if (failed(loops))
    return rewriter.notifyMatchFailure(op,
                                       "checkElementwiseToKernels() says why");
  if (loops->numElements() == 0) {
    rewriter.eraseOp(op);
    return success();
  }
  ElementwiseKernel kernel = {*loops, kernels.isEmulated(), kernels.waits()};
  LLVM::LLVMFuncOp &callee = known[kernel.getKey()];
  if (!callee) {
    OpBuilder atEnd = kernels.atEnd();
    callee = kernel.build(atEnd, op.getLoc());
    kernels.insert(callee);
  }
  auto function = op->getParentOfType<FunctionOpInterface>();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  SmallVector<Value> words;
  for (unsigned index : kernel.getWords()) {
    const Elementwise::Operand &operand = loops->operands[index];
    words.push_back(operand.isNumber() ? toWord(b, operand.value)
                                       : operand.value);
  }
  for (auto [index, loop] : kernel.getStrideWords()) {
    const Elementwise::Operand &operand = loops->operands[index];
    auto metadata = memref::ExtractStridedMetadataOp::create(b, operand.value);
    words.push_back(arith::IndexCastOp::create(
        b, b.getI64Type(), metadata.getStrides()[operand.dimensions[loop]]));
  }
  if (loops->isLinear())
    words.push_back(arith::ConstantOp::create(
        b, b.getI64IntegerAttr(loops->numElements())));
  Value array = createWordArray(b, function, words);
  kernels.run(b, callee, array, createPointer(b, op.getDpsInits().front()),
              kernel.numBlocks(), /*rows=*/1);
  rewriter.eraseOp(op);
  return success();
}

namespace {
struct GenericToKernel : OpRewritePattern<linalg::GenericOp> {
  GenericToKernel(MLIRContext *context,
                  std::shared_ptr<KernelLowering> lowering)
      : OpRewritePattern(context), lowering(std::move(lowering)) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const final {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "it is on tensors");
    return lowering->lower(op, rewriter);
  }

  std::shared_ptr<KernelLowering> lowering;
};

/// A copy of a strided buffer; the others are the runtime's.
struct CopyToGeneric : OpRewritePattern<memref::CopyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::CopyOp op,
                                PatternRewriter &rewriter) const final {
    if (isContiguousBuffer(op.getSource()) &&
        isContiguousBuffer(op.getTarget()))
      return rewriter.notifyMatchFailure(op, "both buffers are dense");
    linalg::makeMemRefCopyOp(rewriter, op->getLoc(), op.getSource(),
                             op.getTarget());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Named ops get the form that kernels are made of.
struct NamedToGeneric : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const final {
    if (isa<linalg::GenericOp>(op.getOperation()) ||
        !op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "it is generic or on tensors");
    if (failed(quietly(op->getContext(), [&] { return checkElementwise(op); })))
      return rewriter.notifyMatchFailure(
          op, "checkElementwiseToKernels() says why");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};
} // namespace

LogicalResult mlir::fsdp::populateElementwiseToKernelsPatterns(
    RewritePatternSet &patterns, ModuleOp module,
    const ElementwiseToKernelsPassOptions &options) {
  std::string ptx = options.features;
  const GpuChip *gpuChip = nullptr;
  if (options.target == TileTarget::Cuda) {
    // A kernel has a few words at the most, which every version has room for.
    gpuChip = checkChip(module, options.chip, /*parameterBytes=*/0, ptx);
    if (!gpuChip)
      return failure();
  }
  patterns.add<GenericToKernel>(
      patterns.getContext(),
      std::make_shared<KernelLowering>(module, gpuChip, ptx));
  patterns.add<CopyToGeneric, NamedToGeneric>(patterns.getContext());
  return success();
}

void ElementwiseToKernelsPass::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  if (failed(populateElementwiseToKernelsPatterns(patterns, getOperation(),
                                                  {target, chip, features})))
    return signalPassFailure();
  applyInOrder(getOperation(), std::move(patterns));
  WalkResult left = getOperation().walk([](linalg::LinalgOp op) {
    return op.hasPureBufferSemantics()
               ? WalkResult(checkElementwiseToKernels(op))
               : WalkResult::advance();
  });
  if (left.wasInterrupted())
    signalPassFailure();
}
