//===- RuntimeCalls.cpp - calls of the runtime's functions ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Types from the C declarations
//===----------------------------------------------------------------------===//

namespace {
/// The type of a C parameter; only those that the ABI allows have one.
template <typename T>
struct AbiType;
template <>
struct AbiType<int32_t> {
  static Type get(MLIRContext *context) {
    return IntegerType::get(context, 32);
  }
};
template <>
struct AbiType<int64_t> {
  static Type get(MLIRContext *context) {
    return IntegerType::get(context, 64);
  }
};
template <>
struct AbiType<double> {
  static Type get(MLIRContext *context) { return Float64Type::get(context); }
};
template <typename T>
struct AbiType<T *> {
  static Type get(MLIRContext *context) {
    return LLVM::LLVMPointerType::get(context);
  }
};

template <typename Function>
struct AbiFunction;
template <typename Result, typename... Parameters>
struct AbiFunction<Result(Parameters...)> {
  static FunctionType get(MLIRContext *context) {
    return FunctionType::get(context, {AbiType<Parameters>::get(context)...},
                             {AbiType<Result>::get(context)});
  }
};

struct Signature {
  StringRef name;
  FunctionType (*getType)(MLIRContext *);
};
} // namespace

/// In the order of RuntimeFunction.
static const Signature signatures[] = {
#define FSDPRT_CALL(name, parameters) {#name, AbiFunction<decltype(name)>::get},
#include "fsdp/Runtime/RuntimeFunctions.def"
};

//===----------------------------------------------------------------------===//
// RuntimeCalls
//===----------------------------------------------------------------------===//

RuntimeCalls::RuntimeCalls(ModuleOp module) : module(module), symbols(module) {}

Value RuntimeCalls::call(ImplicitLocOpBuilder &builder,
                         RuntimeFunction function, ValueRange operands) {
  int index = static_cast<int>(function);
  func::FuncOp &declaration = declarations[index];
  if (!declaration) {
    const Signature &signature = signatures[index];
    // One that is there already, from another run over the module.
    declaration = symbols.lookup<func::FuncOp>(signature.name);
    if (!declaration) {
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      declaration =
          func::FuncOp::create(top, module.getLoc(), signature.name,
                               signature.getType(builder.getContext()));
      declaration.setPrivate();
      declaration.setResultAttr(0, FsdpDialect::getStatusAttrName(),
                                builder.getUnitAttr());
      symbols.insert(declaration);
    }
  }
  return func::CallOp::create(builder, declaration, operands).getResult(0);
}

/// A constant of the module, in front of what there is.
static StringAttr
addConstant(ImplicitLocOpBuilder &builder, ModuleOp module,
            SymbolTable &symbols, Location loc, Type type, StringRef name,
            Attribute value,
            function_ref<Value(ImplicitLocOpBuilder &)> createValue = nullptr) {
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto global = LLVM::GlobalOp::create(top, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, value);
  if (createValue) {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&global.getInitializerRegion());
    LLVM::ReturnOp::create(builder, createValue(builder));
  }
  return symbols.insert(global);
}

StringAttr RuntimeCalls::nameSymbol(ImplicitLocOpBuilder &builder,
                                    Operation *named) {
  StringAttr &symbol = names[named];
  if (!symbol) {
    std::string text = SymbolTable::getSymbolName(named).str();
    text.push_back('\0');
    symbol = addConstant(
        builder, module, symbols, named->getLoc(),
        LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
        isa<BucketOp>(named) ? "fsdp_bucket_name" : "fsdp_kernel_name",
        builder.getStringAttr(text));
  }
  return symbol;
}

StringAttr RuntimeCalls::axesSymbol(ImplicitLocOpBuilder &builder,
                                    ArrayRef<int64_t> axes) {
  SmallVector<int32_t> words(axes.begin(), axes.end());
  auto value = builder.getI32TensorAttr(words);
  StringAttr &symbol = axesLists[value];
  if (!symbol)
    symbol = addConstant(
        builder, module, symbols, module.getLoc(),
        LLVM::LLVMArrayType::get(builder.getI32Type(), words.size()),
        "fsdp_axes", value);
  return symbol;
}

Value RuntimeCalls::name(ImplicitLocOpBuilder &builder, Operation *named) {
  return LLVM::AddressOfOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext()),
      nameSymbol(builder, named));
}

Value RuntimeCalls::collective(ImplicitLocOpBuilder &builder,
                               const CollectiveRecord &record) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  BucketOp bucket = record.bucket;
  StringAttr name = nameSymbol(builder, bucket);
  // In the order of the struct. Six words as one constant, since a program may
  // have tens of thousands of records.
  const int32_t words[] = {static_cast<int32_t>(sizeof(fsdprtCollective)),
                           record.kind,
                           getRuntimeDtype(bucket),
                           record.reduction,
                           record.accumulate,
                           static_cast<int32_t>(record.axes.size())};
  static_assert(sizeof(fsdprtCollective) ==
                    sizeof(words) + 2 * 8 + 2 * sizeof(void *),
                "the struct has other fields than those here");
  TypedAttr fields[] = {builder.getI32TensorAttr(words),
                        builder.getI64IntegerAttr(record.count),
                        builder.getF64FloatAttr(record.multiplier)};
  SmallVector<Attribute> key(std::begin(fields), std::end(fields));
  key.push_back(name);
  key.push_back(builder.getDenseI64ArrayAttr(record.axes));
  StringAttr &symbol = records[builder.getArrayAttr(key)];
  if (!symbol) {
    StringAttr axes;
    if (!record.axes.empty())
      axes = axesSymbol(builder, record.axes);
    Type types[] = {
        LLVM::LLVMArrayType::get(builder.getI32Type(), std::size(words)),
        builder.getI64Type(), builder.getF64Type(), pointer, pointer};
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
    symbol = addConstant(
        builder, module, symbols, bucket.getLoc(), type, "fsdp_collective",
        Attribute(), [&](ImplicitLocOpBuilder &b) -> Value {
          Value value = LLVM::UndefOp::create(b, type);
          int64_t index = 0;
          auto add = [&](Value field) {
            value = LLVM::InsertValueOp::create(b, value, field, index++);
          };
          for (auto [field, fieldType] : llvm::zip(fields, types))
            add(LLVM::ConstantOp::create(b, fieldType, field));
          add(LLVM::AddressOfOp::create(b, pointer, name));
          add(axes ? Value(LLVM::AddressOfOp::create(b, pointer, axes))
                   : Value(LLVM::ZeroOp::create(b, pointer)));
          return value;
        });
  }
  return LLVM::AddressOfOp::create(builder, pointer, symbol);
}

/// A constant of the module that another pass defines.
static LLVM::GlobalOp declare(SymbolTable &symbols, ModuleOp module,
                              StringRef name, Type type) {
  if (auto known = symbols.lookup<LLVM::GlobalOp>(name))
    return known;
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto global =
      LLVM::GlobalOp::create(top, module.getLoc(), type,
                             /*isConstant=*/true, LLVM::Linkage::External, name,
                             /*value=*/Attribute());
  symbols.insert(global);
  return global;
}

/// The value of the constant `name`, which another pass defines.
static Value loadConstant(ImplicitLocOpBuilder &builder, SymbolTable &symbols,
                          ModuleOp module, StringRef name, Type type) {
  Value address = LLVM::AddressOfOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext()),
      declare(symbols, module, name, type).getSymName());
  return LLVM::LoadOp::create(builder, type, address);
}

Value RuntimeCalls::kernelDriver(ImplicitLocOpBuilder &builder) {
  return loadConstant(builder, symbols, module, kKernelDriverSymbol,
                      builder.getI32Type());
}

std::pair<Value, Value>
RuntimeCalls::kernelImage(ImplicitLocOpBuilder &builder) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto image = declare(symbols, module, kKernelImageSymbol,
                       LLVM::LLVMArrayType::get(builder.getI8Type(), 0));
  Value address =
      LLVM::AddressOfOp::create(builder, pointer, image.getSymName());
  return {address, loadConstant(builder, symbols, module,
                                kKernelImageBytesSymbol, builder.getI64Type())};
}

bool mlir::fsdp::isContiguousBuffer(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && (memref::isStaticShapeAndContiguousRowMajor(type) ||
                  (type.hasStaticShape() && type.getNumElements() == 0));
}

/// The pointer to the first element of `view`, a part of a dense buffer,
/// without the descriptors of the two; null if it is none.
static Value createViewPointer(ImplicitLocOpBuilder &builder,
                               memref::SubViewOp view) {
  MemRefType source = view.getSourceType();
  if (!source.hasStaticShape() || !source.getLayout().isIdentity())
    return {};
  int64_t stride = getDtypeBytes(source.getElementType()), fixed = 0;
  Value bytes;
  SmallVector<OpFoldResult> offsets = view.getMixedOffsets();
  for (int64_t dim = source.getRank() - 1; dim >= 0; --dim) {
    if (std::optional<int64_t> offset = getConstantIntValue(offsets[dim])) {
      fixed += *offset * stride;
    } else {
      Value scale = arith::ConstantIndexOp::create(builder, stride);
      Value part =
          arith::MulIOp::create(builder, cast<Value>(offsets[dim]), scale);
      bytes = bytes ? arith::AddIOp::create(builder, bytes, part) : part;
    }
    stride *= source.getDimSize(dim);
  }
  Value start = createPointer(builder, view.getSource());
  if (bytes)
    start = LLVM::GEPOp::create(
        builder, start.getType(), builder.getI8Type(), start,
        ArrayRef<LLVM::GEPArg>{Value(
            arith::IndexCastOp::create(builder, builder.getI64Type(), bytes))});
  if (fixed)
    start = LLVM::GEPOp::create(
        builder, start.getType(), builder.getI8Type(), start,
        ArrayRef<LLVM::GEPArg>{Value(arith::ConstantOp::create(
            builder, builder.getI64IntegerAttr(fixed)))});
  return start;
}

Value mlir::fsdp::createPointer(ImplicitLocOpBuilder &builder, Value buffer) {
  if (auto view = buffer.getDefiningOp<memref::SubViewOp>())
    if (Value pointer = createViewPointer(builder, view))
      return pointer;
  auto type = cast<MemRefType>(buffer.getType());
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, buffer);
  if (!type.getLayout().isIdentity()) {
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, buffer);
    Value bytes = arith::ConstantIndexOp::create(
        builder, getDtypeBytes(type.getElementType()));
    Value offset = arith::MulIOp::create(builder, metadata.getOffset(), bytes);
    address = arith::AddIOp::create(builder, address, offset);
  }
  Value word =
      arith::IndexCastOp::create(builder, builder.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext()), word);
}

Value mlir::fsdp::createFrameArray(ImplicitLocOpBuilder &builder,
                                   FunctionOpInterface function,
                                   int64_t count) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  Value words =
      arith::ConstantOp::create(builder, builder.getI64IntegerAttr(count));
  return LLVM::AllocaOp::create(builder, pointer, pointer, words);
}

Value mlir::fsdp::createAddressArray(ImplicitLocOpBuilder &builder,
                                     FunctionOpInterface function,
                                     ValueRange addresses) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  if (addresses.empty())
    return LLVM::ZeroOp::create(builder, pointer);
  Value array = createFrameArray(builder, function, addresses.size());
  for (auto [index, address] : llvm::enumerate(addresses)) {
    Value slot = LLVM::GEPOp::create(
        builder, pointer, pointer, array,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(builder, address, slot);
  }
  return array;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

int32_t mlir::fsdp::getRuntimeDtype(BucketOp bucket) {
  Type wire = bucket.getWire();
  if (bucket.isBytes())
    return FSDPRT_BYTES;
  if (wire.isF16())
    return FSDPRT_F16;
  if (wire.isBF16())
    return FSDPRT_BF16;
  return wire.isF32() ? FSDPRT_F32 : FSDPRT_F64;
}

int32_t mlir::fsdp::getRuntimeReduction(ReduceOp reduction) {
  switch (reduction) {
  case ReduceOp::sum:
    return FSDPRT_SUM;
  case ReduceOp::avg:
    return FSDPRT_AVG;
  case ReduceOp::premul:
    return FSDPRT_PREMUL;
  }
  llvm_unreachable("every reduction has a code");
}
