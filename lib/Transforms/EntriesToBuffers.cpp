//===- EntriesToBuffers.cpp - entries take and return buffers -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   func.func @f(%a: tensor<4xf32>) -> tensor<4xf32>
//       attributes {fsdp.entry = 1 : i64} {
//     %b = "op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
//     return %b : tensor<4xf32>
//   }
// becomes
//   func.func @f(%m: memref<4xf32>) -> memref<4xf32>
//       attributes {fsdp.entry = 1 : i64} {
//     %a = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
//     %b = "op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
//     %n = bufferization.to_buffer %b read_only
//         : tensor<4xf32> to memref<4xf32>
//     return %n : memref<4xf32>
//   }
//
// One-shot bufferization does the same. To learn which results are arguments,
// it compares each result with each argument, 225 million pairs for a unit of
// 15,000 parameters. No caller uses that of an entry.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_ENTRIESTOBUFFERSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The buffer of a tensor, or what is none as it is.
static Type getBufferType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? MemRefType::get(tensor.getShape(), tensor.getElementType())
                : type;
}

static void convert(func::FuncOp function) {
  Block &entry = function.getBody().front();
  ImplicitLocOpBuilder b(function.getLoc(), function.getContext());
  b.setInsertionPointToStart(&entry);
  for (BlockArgument argument : entry.getArguments()) {
    Type tensorType = argument.getType();
    if (!isa<RankedTensorType>(tensorType))
      continue;
    argument.setType(getBufferType(tensorType));
    auto tensor = bufferization::ToTensorOp::create(
        b, tensorType, argument, /*restrict=*/true, /*writable=*/false);
    argument.replaceAllUsesExcept(tensor.getResult(), tensor);
  }
  for (auto ret : function.getBody().getOps<func::ReturnOp>()) {
    ImplicitLocOpBuilder atEnd(ret.getLoc(), ret);
    for (OpOperand &operand : ret->getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()))
        operand.set(bufferization::ToBufferOp::create(
            atEnd, getBufferType(operand.get().getType()), operand.get(),
            /*read_only=*/true));
  }
  // What is marked as not writable is no tensor any more.
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    NamedAttrList list(function_interface_impl::getArgAttrs(function, i));
    list.erase(bufferization::BufferizationDialect::kWritableAttrName);
    attributes.push_back(list.getDictionary(function.getContext()));
  }
  function.setAllArgAttrs(attributes);
  SmallVector<Type> results(
      llvm::map_range(function.getResultTypes(), getBufferType));
  function.setType(FunctionType::get(function.getContext(),
                                     entry.getArgumentTypes(), results));
}

namespace {
struct EntriesToBuffersPass
    : fsdp::impl::EntriesToBuffersPassBase<EntriesToBuffersPass> {
  void runOnOperation() override {
    DenseSet<StringAttr> used;
    getOperation().walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        used.insert(call.getCalleeAttr().getAttr());
      else if (auto constant = dyn_cast<func::ConstantOp>(op))
        used.insert(constant.getValueAttr().getAttr());
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(FsdpDialect::getEntryAttrName()) &&
          !function.isExternal() && !used.contains(function.getSymNameAttr()))
        convert(function);
  }
};
} // namespace
