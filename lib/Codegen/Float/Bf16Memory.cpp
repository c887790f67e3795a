//===- Bf16Memory.cpp - bf16 travels as integers --------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   llvm.store %x, %p : bf16, !llvm.ptr
// becomes
//   %i = llvm.bitcast %x : bf16 to i16
//   llvm.store %i, %p : i16, !llvm.ptr
//
// All arithmetic on bf16 is integer arithmetic by now (ExpandFloats.cpp). Where
// a bf16 is stored, LLVM moves the cast to bf16 up, through the selection of
// the NaN; and x86 has no vector selection of bf16, so that a loop over casts
// falls apart into scalars. Parts of a vector of bf16 are taken out of integers
// too: x86 would take them out of f32, and round back by a function of the
// compiler's own library.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_BF16MEMORYPASS
#include "fsdp/Codegen/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

/// The integer type of the width of a bf16 or of a vector of them; null for
/// other types.
static Type toInteger(Type type) {
  if (!getElementTypeOrSelf(type).isBF16())
    return {};
  Type integer = IntegerType::get(type.getContext(), 16);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(integer);
  return integer;
}

/// Lets the owner of `operand` read integers where it read bf16.
static void takeInteger(OpBuilder &builder, OpOperand &operand) {
  if (Type integer = toInteger(operand.get().getType()))
    operand.set(LLVM::BitcastOp::create(builder, operand.getOwner()->getLoc(),
                                        integer, operand.get()));
}

/// Lets the op that makes `result` make integers where it made bf16.
static void giveInteger(OpBuilder &builder, Value result) {
  Type type = result.getType();
  Type integer = toInteger(type);
  if (!integer)
    return;
  builder.setInsertionPointAfterValue(result);
  result.setType(integer);
  auto cast = LLVM::BitcastOp::create(builder, result.getLoc(), type, result);
  result.replaceAllUsesExcept(cast.getResult(), cast);
}

/// Lets the functions in `root` take integers for a bf16 from their callers. It
/// would travel as an f32, and back by a call.
static void passIntegers(Operation *root) {
  OpBuilder builder(root->getContext());
  auto isBf16 = [](Type type) { return type.isBF16(); };
  llvm::StringSet<> changed;
  root->walk([&](LLVM::LLVMFuncOp function) {
    if (function.isExternal() ||
        llvm::none_of(function.getArgumentTypes(), isBf16))
      return;
    for (BlockArgument argument : function.getArguments())
      if (isBf16(argument.getType()))
        giveInteger(builder, argument);
    SmallVector<Type> types(function.getBody().getArgumentTypes());
    function.setFunctionType(LLVM::LLVMFunctionType::get(
        function.getFunctionType().getReturnType(), types));
    changed.insert(function.getSymName());
  });
  root->walk([&](LLVM::CallOp call) {
    if (!call.getCallee() || !changed.contains(*call.getCallee()))
      return;
    builder.setInsertionPoint(call);
    for (OpOperand &operand : call.getCalleeOperandsMutable())
      if (isBf16(operand.get().getType()))
        takeInteger(builder, operand);
  });
}

namespace {
struct Bf16MemoryPass : fsdp::impl::Bf16MemoryPassBase<Bf16MemoryPass> {
  void runOnOperation() override {
    passIntegers(getOperation());
    getOperation()->walk([](Operation *op) {
      OpBuilder builder(op);
      if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
        takeInteger(builder, store.getValueMutable());
      } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
        giveInteger(builder, load.getResult());
      } else if (auto shuffle = dyn_cast<LLVM::ShuffleVectorOp>(op)) {
        takeInteger(builder, shuffle.getV1Mutable());
        takeInteger(builder, shuffle.getV2Mutable());
        giveInteger(builder, shuffle.getResult());
      }
    });
  }
};
} // namespace
