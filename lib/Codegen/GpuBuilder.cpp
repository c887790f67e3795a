//===- GpuBuilder.cpp - what all kernels are made of ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/GpuBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value GpuBuilder::word(Value index) {
  Value at = LLVM::GEPOp::create(b, words.getType(), i64, words,
                                 ArrayRef<LLVM::GEPArg>{index});
  return LLVM::LoadOp::create(b, i64, at);
}

Value GpuBuilder::loadWords(Value at, int64_t bytes) {
  return LLVM::LoadOp::create(b, VectorType::get({bytes / 4}, i32), at,
                              /*alignment=*/bytes);
}

void GpuBuilder::storeWords(Value words, Value at) {
  LLVM::StoreOp::create(b, words, at, /*alignment=*/4 * numWords(words));
}

/// What is aligned to a byte only, LLVM takes apart.
Value GpuBuilder::load(Type dtype, Value base, Value index, Access access) {
  int64_t bytes = getDtypeBytes(dtype);
  return LLVM::LoadOp::create(b, dtype, elementAt(base, index, bytes),
                              access == Access::Whole ? bytes : 1);
}

void GpuBuilder::store(Value value, Value base, Value index, Access access) {
  int64_t bytes = getDtypeBytes(value.getType());
  LLVM::StoreOp::create(b, value, elementAt(base, index, bytes),
                        access == Access::Whole ? bytes : 1);
}

Value GpuBuilder::asInteger(Value value) {
  if (emulate)
    return value;
  Type type = value.getType();
  if (type.isInteger(8)) { // there is no such register
    Value wide = asInteger(arith::ExtUIOp::create(b, b.getI16Type(), value));
    return arith::TruncIOp::create(b, type, wide);
  }
  std::string code =
      "mov.b" + std::to_string(type.getIntOrFloatBitWidth()) + " {$w0}, {$r0};";
  return NVVM::InlinePtxOp::create(b, TypeRange(type),
                                   /*readOnlyArgs=*/ValueRange(value),
                                   /*readWriteArgs=*/ValueRange(), code,
                                   /*predicate=*/Value())
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// The frame
//===----------------------------------------------------------------------===//

LLVM::LLVMFuncOp
GpuBuilder::buildKernel(const Frame &frame,
                        function_ref<std::pair<Value, Value>()> blocks,
                        function_ref<void(Value x, Value y)> body) {
  MLIRContext *context = b.getContext();
  auto generic = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {generic, pointer});
  auto func = LLVM::LLVMFuncOp::create(b, frame.name, type,
                                       emulate ? LLVM::Linkage::Internal
                                               : LLVM::Linkage::External);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(func.addEntryBlock(b));
  words = func.getArgument(0);
  operand = func.getArgument(1);

  if (emulate) {
    auto [columns, rows] = blocks();
    Value zero = constant64(0);
    loop(zero, rows, 1, [&, columns = columns](Value y) {
      loop(zero, columns, 1, [&](Value x) {
        loop(constant32(0), constant32(kThreads), 1, [&](Value index) {
          thread = index;
          body(x, y);
        });
      });
    });
  } else {
    auto array = LLVM::LLVMArrayType::get(i64, frame.numWords);
    func.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(array));
    func.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(8));
    func.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                    b.getUnitAttr());
    func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    func->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
    func->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                  b.getDenseI32ArrayAttr({int32_t(kThreads), 1, 1}));
    if (frame.registers)
      func->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                    b.getI32IntegerAttr(*frame.registers));
    Value x = NVVM::BlockIdXOp::create(b, i32);
    Value y = NVVM::BlockIdYOp::create(b, i32);
    if (frame.rowsFirst)
      std::swap(x, y);
    thread = NVVM::ThreadIdXOp::create(b, i32);
    // Harmless unless the launch asks to overlap with the kernel before.
    if (frame.waits)
      NVVM::GriddepcontrolOp::create(
          b, NVVM::GridDepActionKindAttr::get(context,
                                              NVVM::GridDepActionKind::wait));
    body(widen(x), widen(y));
  }
  LLVM::ReturnOp::create(b, ValueRange());
  return func;
}
