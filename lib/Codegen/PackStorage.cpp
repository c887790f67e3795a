//===- PackStorage.cpp - elements of less than a byte, as bytes -----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fsdp.param @w : tensor<16x8xf4E2M1FN> frozen
// becomes
//   fsdp.param @w : tensor<16x4xi8> frozen
//
// and so does every tensor of it. A buffer of such elements has several of them
// in a byte, but a memref gives each an address of its own. Our ops only move
// whole rows, so bytes are all that they need to know; an op that reads one
// element is refused, because no address would be right.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PACKSTORAGEPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static bool isPacked(Type type) {
  return isPackedDtype(getElementTypeOrSelf(type));
}

/// The tensor of bytes in place of a packed one; null if there is none.
static RankedTensorType toBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getRank() == 0)
    return {};
  SmallVector<int64_t> shape = llvm::to_vector(tensor.getShape());
  std::optional<int64_t> bytes =
      getStorageUnits(tensor.getElementType(), shape.back());
  if (!bytes)
    return {};
  shape.back() = *bytes;
  return tensor.clone(shape, IntegerType::get(type.getContext(), 8));
}

/// True for ops that pass tensors on as they are.
static bool keepsRows(Operation *op) {
  Dialect *dialect = op->getDialect();
  return isa_and_nonnull<FsdpDialect, func::FuncDialect, scf::SCFDialect,
                         cf::ControlFlowDialect>(dialect);
}

/// Finds packed tensors and refuses what this pass cannot write in bytes.
static WalkResult check(Operation *op, bool &isNeeded) {
  auto checkType = [&](Type type) {
    if (!isPacked(type))
      return true;
    isNeeded = true;
    return toBytes(type) && keepsRows(op);
  };
  SmallVector<Type> types = llvm::to_vector(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::append_range(types, block.getArgumentTypes());
  for (Type type : types)
    if (!checkType(type))
      return op->emitOpError("works on ")
             << type << ", but elements of " << getElementTypeOrSelf(type)
             << " are packed into bytes, which "
             << "are gathered and passed on as whole rows and not computed "
                "with";
  return WalkResult::advance();
}

namespace {
struct PackStoragePass : fsdp::impl::PackStoragePassBase<PackStoragePass> {
  void runOnOperation() override;
};
} // namespace

void PackStoragePass::runOnOperation() {
  bool isNeeded = false;
  auto checked = getOperation()->walk([&](Operation *op) {
    if (auto param = dyn_cast<ParamOp>(op))
      isNeeded |= isPacked(param.getFullType());
    return check(op, isNeeded);
  });
  if (checked.wasInterrupted())
    return signalPassFailure();
  if (!isNeeded)
    return;
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
        if (!isPacked(type))
          return std::nullopt;
        return std::pair<Type, WalkResult>(toBytes(type), WalkResult::skip());
      });
  // The param dtype of a resolved parameter.
  replacer.addReplacement([](FloatType type) -> std::optional<Type> {
    if (!isPackedDtype(type))
      return std::nullopt;
    return IntegerType::get(type.getContext(), 8);
  });
  replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}
