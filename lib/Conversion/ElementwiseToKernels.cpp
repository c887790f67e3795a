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

#include "fsdp/Conversion/Passes.h"

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
class KernelLowering {
public:
  KernelLowering(ModuleOp module, const GpuChip *chip, StringRef features)
      : kernels(module, symbolTables, chip, features) {}

  LogicalResult lower(linalg::GenericOp op);

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

LogicalResult KernelLowering::lower(linalg::GenericOp op) {
  if (failed(checkElementwise(op)))
    return failure();
  FailureOr<Elementwise> loops = Elementwise::get(op);
  if (failed(loops))
    return failure();
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function)
    return op.emitOpError("cannot be lowered: it stands in no function");
  if (loops->numElements() == 0) {
    op.erase();
    return success();
  }
  ElementwiseKernel kernel = {*loops, kernels.isEmulated(), kernels.waits()};
  LLVM::LLVMFuncOp &callee = known[kernel.getKey()];
  if (!callee) {
    OpBuilder atEnd = kernels.atEnd();
    callee = kernel.build(atEnd, op.getLoc());
    kernels.insert(callee);
  }
  ImplicitLocOpBuilder b(op.getLoc(), op);
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
  op.erase();
  return success();
}

/// Gives `op` the form that kernels are made of. Null where it has none.
static linalg::GenericOp toGeneric(Operation *op) {
  IRRewriter rewriter(op);
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    if (isContiguousBuffer(copy.getSource()) &&
        isContiguousBuffer(copy.getTarget()))
      return {}; // the runtime's
    linalg::GenericOp made = linalg::makeMemRefCopyOp(
        rewriter, op->getLoc(), copy.getSource(), copy.getTarget());
    rewriter.eraseOp(copy);
    return made;
  }
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic;
  auto named = cast<linalg::LinalgOp>(op);
  FailureOr<linalg::GenericOp> made =
      linalg::generalizeNamedOp(rewriter, named);
  return succeeded(made) ? *made : linalg::GenericOp();
}

void ElementwiseToKernelsPass::runOnOperation() {
  std::string ptx = features;
  const GpuChip *gpuChip = nullptr;
  if (target == TileTarget::Cuda) {
    // A kernel has a few words at the most, which every version has room for.
    gpuChip = checkChip(getOperation(), chip, /*parameterBytes=*/0, ptx);
    if (!gpuChip)
      return signalPassFailure();
  }
  SmallVector<Operation *> ops;
  getOperation().walk([&](Operation *op) {
    if (isa<memref::CopyOp>(op)) {
      ops.push_back(op);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (linalgOp.hasPureBufferSemantics())
        ops.push_back(op);
    }
  });
  KernelLowering lowering(getOperation(), gpuChip, ptx);
  for (Operation *op : ops) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      if (failed(checkElementwise(linalgOp)))
        return signalPassFailure();
    linalg::GenericOp generic = toGeneric(op);
    if (generic && failed(lowering.lower(generic)))
      return signalPassFailure();
  }
}
