//===- BufferArguments.cpp - buffers are passed in tables -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferArguments.h"
#include "fsdp/Codegen/RuntimeCalls.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isDenseBuffer(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && memref.hasStaticShape() && memref.getLayout().isIdentity() &&
         !memref.getMemorySpace();
}

//===----------------------------------------------------------------------===//
// Scalars as files store them: i1 in a byte, index as i64
//===----------------------------------------------------------------------===//

static Value loadScalar(ImplicitLocOpBuilder &b, Type type, Value data) {
  if (type.isIndex()) {
    Value word = LLVM::LoadOp::create(b, b.getI64Type(), data);
    return arith::IndexCastOp::create(b, type, word);
  }
  if (type.isInteger(1)) {
    Value byte = LLVM::LoadOp::create(b, b.getI8Type(), data);
    Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, byte, zero);
  }
  return LLVM::LoadOp::create(b, type, data);
}

static void storeScalar(ImplicitLocOpBuilder &b, Value value, Value data) {
  if (value.getType().isIndex())
    value = arith::IndexCastOp::create(b, b.getI64Type(), value);
  else if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, b.getI8Type(), value);
  LLVM::StoreOp::create(b, value, data);
}

//===----------------------------------------------------------------------===//
// BufferArguments
//===----------------------------------------------------------------------===//

BufferArguments::BufferArguments(func::FuncOp function, bool isEntry,
                                 size_t inputs)
    : function(function), numTables(isEntry ? 2 : 0) {
  unsigned next[2] = {0, 0}, byValue = 0;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isEntry && !isDenseBuffer(type)) {
      places.push_back({-1, byValue++});
      continue;
    }
    int table = isEntry && index >= inputs;
    numTables = std::max<unsigned>(numTables, table + 1);
    places.push_back({table, next[table]++});
  }
}

bool BufferArguments::canBeEntry(func::FuncOp function, size_t inputs) {
  ArrayRef<Type> types = function.getArgumentTypes();
  auto isInput = [](Type type) {
    return isDenseBuffer(type) || type.isIntOrIndexOrFloat();
  };
  return inputs <= types.size() && function.getNumResults() == 0 &&
         llvm::all_of(types.take_front(inputs), isInput) &&
         llvm::all_of(types.drop_front(inputs), isDenseBuffer);
}

/// Replaces each use of `argument` by what is loaded there: in front of the op
/// that uses it, or of the one of the function's body that holds this op.
static void loadAtUses(BlockArgument argument, Value table, unsigned index) {
  Region *body = argument.getOwner()->getParent();
  auto pointer = LLVM::LLVMPointerType::get(argument.getContext());
  llvm::SmallDenseMap<Operation *, Value, 4> loaded;
  for (OpOperand &use : llvm::make_early_inc_range(argument.getUses())) {
    Operation *place = body->findAncestorOpInRegion(*use.getOwner());
    Value &value = loaded[place];
    if (!value) {
      ImplicitLocOpBuilder b(argument.getLoc(), place);
      Value slot = LLVM::GEPOp::create(
          b, pointer, pointer, table,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      Value data = LLVM::LoadOp::create(b, pointer, slot);
      auto type = dyn_cast<MemRefType>(argument.getType());
      value = type ? createDenseBuffer(b, type, data)
                   : loadScalar(b, argument.getType(), data);
    }
    use.set(value);
  }
}

void BufferArguments::rewrite() {
  MLIRContext *context = function.getContext();
  Location loc = function.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type status = IntegerType::get(context, 32);
  // All at once: one at a time would copy the list as often.
  unsigned numNew = 1 + numTables;
  SmallVector<Type> types(numNew, pointer);
  SmallVector<DictionaryAttr> attributes(numNew, DictionaryAttr::get(context));
  SmallVector<Attribute> results;
  BitVector inTable(numNew + places.size());
  for (auto [index, place] : llvm::enumerate(places)) {
    inTable[numNew + index] = place.table >= 0;
    if (place.table >= 0)
      continue;
    types.push_back(function.getArgumentTypes()[index]);
    attributes.push_back(DictionaryAttr::get(
        context, function_interface_impl::getArgAttrs(function, index)));
  }
  SmallVector<Type> resultTypes(function.getResultTypes());
  SmallVector<DictionaryAttr> resultAttributes;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    resultAttributes.push_back(DictionaryAttr::get(
        context, function_interface_impl::getResultAttrs(function, i)));
  resultTypes.push_back(status);
  resultAttributes.push_back(DictionaryAttr::get(
      context, {{StringAttr::get(context, FsdpDialect::getStatusAttrName()),
                 UnitAttr::get(context)}}));
  function.setType(FunctionType::get(context, types, resultTypes));
  function.setAllArgAttrs(attributes);
  function.setAllResultAttrs(resultAttributes);

  Block &entry = function.getBody().front();
  for (unsigned i = 0; i < numNew; ++i)
    entry.insertArgument(i, pointer, loc);
  for (auto [index, place] : llvm::enumerate(places))
    if (place.table >= 0)
      loadAtUses(entry.getArgument(numNew + index),
                 entry.getArgument(1 + place.table), place.index);
  entry.eraseArguments(inTable);
}

SmallVector<Value> BufferArguments::createOperands(ImplicitLocOpBuilder &b,
                                                   func::FuncOp caller,
                                                   ValueRange values) {
  SmallVector<Value> byValue;
  SmallVector<SmallVector<Value>> tables(numTables);
  for (auto [place, value] : llvm::zip_equal(places, values)) {
    if (place.table < 0) {
      byValue.push_back(value);
      continue;
    }
    Value address;
    if (isa<MemRefType>(value.getType())) {
      address = createPointer(b, value);
    } else {
      address = createFrameArray(b, caller, 1);
      storeScalar(b, value, address);
    }
    tables[place.table].push_back(address);
  }
  SmallVector<Value> operands{caller.getArgument(0)};
  for (ArrayRef<Value> addresses : tables)
    operands.push_back(createAddressArray(b, caller, addresses));
  llvm::append_range(operands, byValue);
  return operands;
}

//===----------------------------------------------------------------------===//
// Dense buffers
//===----------------------------------------------------------------------===//

Value mlir::fsdp::createDenseBuffer(ImplicitLocOpBuilder &b, MemRefType type,
                                    Value data) {
  return UnrealizedConversionCastOp::create(b, type, data).getResult(0);
}

/// Replaces what computes the address of `buffer`, the memory at `data`.
static void forwardAddresses(Value buffer, Value data) {
  for (Operation *user : llvm::make_early_inc_range(buffer.getUsers())) {
    // A view of which nothing but the address was needed.
    if (isa<ViewLikeOpInterface>(user) && isOpTriviallyDead(user)) {
      user->erase();
      continue;
    }
    auto extract = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(user);
    if (!extract)
      continue;
    for (Operation *cast : llvm::make_early_inc_range(extract->getUsers())) {
      auto word = dyn_cast<arith::IndexCastOp>(cast);
      if (!word)
        continue;
      for (Operation *last : llvm::make_early_inc_range(word->getUsers()))
        if (auto address = dyn_cast<LLVM::IntToPtrOp>(last);
            address && address.getType() == data.getType()) {
          address.replaceAllUsesWith(data);
          address.erase();
        }
      if (word.use_empty())
        word.erase();
    }
    if (extract.use_empty())
      extract.erase();
  }
}

void mlir::fsdp::expandDescriptors(func::FuncOp function) {
  LLVMTypeConverter typeConverter(function.getContext());
  SmallVector<UnrealizedConversionCastOp> casts;
  function.walk([&](UnrealizedConversionCastOp cast) {
    if (cast.getInputs().size() == 1 &&
        isa<LLVM::LLVMPointerType>(cast.getInputs().front().getType()) &&
        cast.getNumResults() == 1 && isDenseBuffer(cast.getResultTypes()[0]))
      casts.push_back(cast);
  });
  for (UnrealizedConversionCastOp cast : casts) {
    Value buffer = cast.getResult(0), data = cast.getInputs().front();
    forwardAddresses(buffer, data);
    if (!buffer.use_empty()) {
      ImplicitLocOpBuilder b(cast.getLoc(), cast);
      Value descriptor = MemRefDescriptor::fromStaticShape(
          b, cast.getLoc(), typeConverter,
          mlir::cast<MemRefType>(buffer.getType()), data);
      cast.getInputsMutable().assign(descriptor);
      continue;
    }
    cast.erase();
  }
}
