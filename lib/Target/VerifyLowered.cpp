//===- VerifyLowered.cpp - refuse what has no lowering to LLVM ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes between here and LLVM leave what they do not know, or fail with words
// of their own trade ("unknown memory side effects"). So the input is looked
// through first for ops that none of them takes, and the output for what is
// left, at the op that caused it and not at a cast between two worlds.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Elementwise.h"
#include "fsdp/Conversion/FsdpToRuntime.h"
#include "fsdp/Target/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#include "fsdp/Target/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True for an op that the passes of fsdp-to-cpu take.
static bool isLowerable(Operation *op) {
  if (isa<shard::GridOp, shard::ProcessLinearIndexOp,
          shard::ProcessMultiIndexOp>(op))
    return true;
  // Its patterns are to take them; what is left is found at the end.
  if (op->isRegistered() &&
      op->getDialect()
          ->getRegisteredInterface<ConvertFsdpToRuntimeDialectInterface>())
    return true;
  static const StringRef dialects[] = {
      "affine", "arith",  "bufferization", "builtin", "cf",
      "fsdp",   "func",   "index",         "linalg",  "llvm",
      "math",   "memref", "scf",           "tensor",  "ub",
      "vector"};
  // Neither a function of the C library nor anything made of such. (Upstream
  // would expand clampf, with its bounds in each other's place.)
  if (isa<math::AbsIOp, math::ClampFOp, math::CopySignOp,
          math::CountTrailingZerosOp, math::CtPopOp, math::IPowIOp,
          math::SincosOp>(op))
    return false;
  return op->isRegistered() &&
         llvm::is_contained(dialects, op->getName().getDialectNamespace());
}

/// Looks for what is left over; fails after an error.
static LogicalResult verifyOutput(ModuleOp module) {
  Operation *cause = nullptr;
  module.walk([&](Operation *op) {
    if (isa<ModuleOp>(op) ||
        isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    cause = op;
    // A cast is what another op leaves behind.
    return isa<UnrealizedConversionCastOp>(op) ? WalkResult::advance()
                                               : WalkResult::interrupt();
  });
  return cause ? cause->emitOpError("has no lowering to the cpu") : success();
}

namespace {
/// Looks for types whose bytes, or the strides inside of them, cannot be
/// counted.
class SizeCheck {
public:
  /// Fails after an error at `op`, which makes or takes a value of `type`.
  LogicalResult check(Operation *op, Type type);
  LogicalResult check(Operation *op);

private:
  DenseSet<Type> known; ///< the types that are small enough
};
} // namespace

/// True if `type` has 2^62 bytes or more. A size of zero counts as one: it does
/// not make the strides any smaller.
static bool isTooLarge(ShapedType type) {
  Type element = type.getElementType();
  int64_t bytes = element.isIntOrFloat()
                      ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
                      : 16; // what is none of our dtypes is not larger
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) &&
        (llvm::MulOverflow(bytes, std::max<int64_t>(size, 1), bytes) ||
         bytes >= int64_t(1) << 62))
      return true;
  return false;
}

LogicalResult SizeCheck::check(Operation *op, Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || !known.insert(type).second ||
      !isTooLarge(shaped))
    return success();
  return op->emitOpError("has no lowering to the cpu: ")
         << type << " is too large, expected fewer than 2^62 bytes";
}

LogicalResult SizeCheck::check(Operation *op) {
  // A function's arguments are those of its body, unless it has none.
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                              function.getResultTypes()))
      if (failed(check(op, type)))
        return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(op, type)))
      return failure();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (failed(check(op, type)))
          return failure();
  return success();
}

/// Looks through the input; fails after an error.
static LogicalResult verifyInput(ModuleOp module) {
  SizeCheck sizes;
  WalkResult result =
      module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        if (!isLowerable(op) && !isa<fsdp::DeviceGridOpInterface>(op))
          return op->emitOpError("has no lowering to the cpu");
        return WalkResult(sizes.check(op));
      });
  return failure(result.wasInterrupted());
}

/// True for ops on tensors that become copies, buffers and control flow: no
/// element passes through the host.
static bool movesTensors(Operation *op) {
  // Padding is a fill, whatever its region computes besides.
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return static_cast<bool>(pad.getConstantPaddingValue());
  return isa<arith::ConstantOp, tensor::CastOp, tensor::CollapseShapeOp,
             tensor::ConcatOp, tensor::DimOp, tensor::EmptyOp,
             tensor::ExpandShapeOp, tensor::ExtractSliceOp,
             tensor::InsertSliceOp, tensor::ReshapeOp, tensor::SplatOp,
             tensor::YieldOp>(op) ||
         isa_and_nonnull<FsdpDialect, bufferization::BufferizationDialect,
                         cf::ControlFlowDialect, func::FuncDialect,
                         scf::SCFDialect, ub::UBDialect>(op->getDialect());
}

/// Emits an error at the first op on tensors for which there is no kernel.
static LogicalResult checkKernels(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([](Operation *op) {
    // Bodies are part of their ops.
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return failed(checkElementwise(linalgOp)) ? WalkResult::interrupt()
                                                : WalkResult::skip();
    auto isTensor = [](Type type) { return isa<TensorType>(type); };
    if (!llvm::any_of(op->getOperandTypes(), isTensor) &&
        !llvm::any_of(op->getResultTypes(), isTensor))
      return WalkResult::advance();
    // One that the host chooses.
    auto select = dyn_cast<arith::SelectOp>(op);
    if (select && !isTensor(select.getCondition().getType()))
      return WalkResult::advance();
    if (movesTensors(op))
      return isa<tensor::PadOp>(op) ? WalkResult::skip()
                                    : WalkResult::advance();
    return failed(checkArithmetic(op)) ? WalkResult::interrupt()
                                       : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyLoweredPass
    : fsdp::impl::VerifyLoweredPassBase<VerifyLoweredPass> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(input ? verifyInput(getOperation())
                     : verifyOutput(getOperation())) ||
        (kernels && failed(checkKernels(getOperation()))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
