//===- ShareLoops.cpp - equal element-wise loops are one function ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linalg.generic {... element-wise ...} ins(%a : memref<8x3xf32>)
//       outs(%b : memref<8x3xbf16>) { truncf }
// becomes, where there are many of them with buffers of whatever shape,
//   %n = arith.constant 24 : index
//   call @fsdp_loop(%pa, %pb, %n) : (!llvm.ptr, !llvm.ptr, index) -> ()
//
// At level 0 there is such a cast for each parameter, and each would become a
// vector loop of its own. What local ops do is shared in the same way
// (TileBody.h).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "fsdp/Codegen/RuntimeCalls.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SHARELOOPSPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True if `op` computes each element of dense buffers of one static shape from
/// the elements at the same place, and from nothing else.
static bool canBeShared(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumLoops() == 0 ||
      op.getNumParallelLoops() != op.getNumLoops() || op.hasIndexSemantics())
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
        type.getMemorySpace() ||
        !op.getMatchingIndexingMap(&operand).isIdentity())
      return false;
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  return captured.empty();
}

/// Equal for loops that do the same.
static unsigned hashLoop(linalg::GenericOp op) {
  llvm::hash_code hash = llvm::hash_value(op.getNumDpsInputs());
  for (Type type : op.getBody()->getArgumentTypes())
    hash = llvm::hash_combine(hash, type);
  for (Operation &inner : *op.getBody())
    hash = llvm::hash_combine(hash,
                              OperationEquivalence::computeHash(
                                  &inner, OperationEquivalence::ignoreHashValue,
                                  OperationEquivalence::ignoreHashValue,
                                  OperationEquivalence::IgnoreLocations));
  return static_cast<unsigned>(size_t(hash));
}

static bool doTheSame(linalg::GenericOp a, linalg::GenericOp b) {
  return a.getNumDpsInputs() == b.getNumDpsInputs() &&
         a->getNumOperands() == b->getNumOperands() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getRegion(), &b.getRegion(),
             OperationEquivalence::IgnoreLocations);
}

/// The function of one loop: a pointer per operand, and the number of elements.
static func::FuncOp createFunction(ModuleOp module, linalg::GenericOp op) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter typeConverter(context);
  auto pointer = LLVM::LLVMPointerType::get(context);
  OpBuilder top = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types(op->getNumOperands(), pointer);
  types.push_back(top.getIndexType());
  Location loc = op.getLoc();
  auto function = func::FuncOp::create(top, loc, "fsdp_loop",
                                       top.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr("passthrough", top.getStrArrayAttr({"noinline"}));
  Block *entry = function.addEntryBlock();
  ImplicitLocOpBuilder b(loc, context);
  b.setInsertionPointToStart(entry);
  Value size = arith::IndexCastOp::create(
      b, b.getI64Type(), entry->getArgument(op->getNumOperands()));
  Value one = arith::ConstantOp::create(b, b.getI64IntegerAttr(1));
  SmallVector<Value> buffers;
  for (auto [operand, data] :
       llvm::zip_first(op->getOperands(), entry->getArguments())) {
    auto type =
        MemRefType::get({ShapedType::kDynamic},
                        cast<MemRefType>(operand.getType()).getElementType());
    auto descriptor =
        MemRefDescriptor::poison(b, loc, typeConverter.convertType(type));
    descriptor.setAllocatedPtr(b, loc, data);
    descriptor.setAlignedPtr(b, loc, data);
    descriptor.setConstantOffset(b, loc, 0);
    descriptor.setSize(b, loc, 0, size);
    descriptor.setStride(b, loc, 0, one);
    Value whole = descriptor;
    buffers.push_back(
        UnrealizedConversionCastOp::create(b, type, whole).getResult(0));
  }
  SmallVector<AffineMap> maps(buffers.size(), b.getMultiDimIdentityMap(1));
  SmallVector<utils::IteratorType> iterators{utils::IteratorType::parallel};
  size_t inputs = op.getNumDpsInputs();
  auto loop = linalg::GenericOp::create(b, ArrayRef(buffers).take_front(inputs),
                                        ArrayRef(buffers).drop_front(inputs),
                                        maps, iterators);
  IRMapping mapping;
  op.getRegion().cloneInto(&loop.getRegion(), mapping);
  func::ReturnOp::create(b);
  return function;
}

namespace {
struct ShareLoopsPass : fsdp::impl::ShareLoopsPassBase<ShareLoopsPass> {
  using Base::Base;
  void runOnOperation() override {
    using Loops = SmallVector<linalg::GenericOp>;
    llvm::MapVector<unsigned, SmallVector<Loops, 1>> byHash;
    getOperation().walk([&](linalg::GenericOp op) {
      if (!op->getParentOfType<func::FuncOp>() || !canBeShared(op))
        return;
      SmallVector<Loops, 1> &groups = byHash[hashLoop(op)];
      auto *group = llvm::find_if(
          groups, [&](Loops &loops) { return doTheSame(loops.front(), op); });
      if (group == groups.end())
        group = &groups.emplace_back();
      group->push_back(op);
    });
    SymbolTable symbols(getOperation());
    for (auto &[hash, groups] : byHash)
      for (Loops &loops : groups) {
        if (static_cast<int64_t>(loops.size()) < minLoops)
          continue;
        func::FuncOp function = createFunction(getOperation(), loops.front());
        symbols.insert(function);
        for (linalg::GenericOp op : loops) {
          ImplicitLocOpBuilder b(op.getLoc(), op);
          SmallVector<Value> operands;
          for (Value operand : op->getOperands())
            operands.push_back(createPointer(b, operand));
          operands.push_back(arith::ConstantIndexOp::create(
              b,
              cast<MemRefType>(op->getOperand(0).getType()).getNumElements()));
          func::CallOp::create(b, function, operands);
          op.erase();
        }
      }
  }
};
} // namespace
