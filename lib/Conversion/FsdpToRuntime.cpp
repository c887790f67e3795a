//===- FsdpToRuntime.cpp - collectives and buffers become calls -----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   func.func @f(%a: memref<32xf32>, %g: memref<4x32xf32>)
//       attributes {fsdp.entry = 1 : i64} {
//     fsdp.all_gather %a of @b outs(%g : memref<4x32xf32>) : ...
//     return
//   }
// becomes
//   func.func @fsdprt_entry_f(%context: !llvm.ptr, %arguments: !llvm.ptr,
//                             %results: !llvm.ptr) -> (i32 {fsdp.status}) {
//     %a = ... ; loaded from %arguments
//     %s = call @fsdprtAllGather(%context, %name, %axes, ...)
//     return %zero : i32
//   }
//
// A function that reaches the runtime gets the context as its first argument,
// its buffers in a table (BufferArguments.h), and a status as its last result;
// fsdp-propagate-status, which needs a flat
// control flow, checks the statuses. Buffers are the context's: it frees what a
// failed run leaves behind, so no path has to.
//
//===----------------------------------------------------------------------===//

#include "BufferArguments.h"
#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Conversion/Passes.h"
#include "fsdp/Runtime/Runtime.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FSDPTORUNTIMEPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
class RuntimeLowering {
public:
  RuntimeLowering(ModuleOp module, bool deviceMemory)
      : module(module), deviceMemory(deviceMemory), calls(module),
        typeConverter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  LogicalResult run();

private:
  void findFunctions();
  LogicalResult lowerFunction(func::FuncOp function);
  LogicalResult lower(Operation *op);
  LogicalResult lowerAlloc(memref::AllocOp op);
  void lowerDealloc(memref::DeallocOp op);
  LogicalResult lowerCopy(memref::CopyOp op);
  void lowerConstant(memref::GetGlobalOp op);
  bool reachesRuntime(Operation *op) const;
  void lowerLinearIndex(shard::ProcessLinearIndexOp op);
  LogicalResult lowerMultiIndex(shard::ProcessMultiIndexOp op);
  LogicalResult lowerCollective(CollectiveOpInterface op);
  LogicalResult lowerLaunch(gpu::LaunchFuncOp op);
  LogicalResult addArguments(func::FuncOp function);
  void requireDriver(func::FuncOp function);
  void renameEntries();
  void eraseDeclarations();

  Value getContext(Operation *op) {
    return op->getParentOfType<func::FuncOp>().getArgument(0);
  }
  Value getSlot(Operation *op);
  Value i32(ImplicitLocOpBuilder &b, int32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value i64(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value createDescriptor(ImplicitLocOpBuilder &b, MemRefType type, Value data,
                         ValueRange dynamicSizes);

  ModuleOp module;
  const bool deviceMemory;
  RuntimeCalls calls;
  LLVMTypeConverter typeConverter;
  Type pointer;
  SymbolTableCollection symbolTable;
  /// Functions that reach the runtime, in the module's order.
  llvm::SetVector<Operation *> functions;
  /// Per function, eight bytes in which the runtime returns a value.
  DenseMap<Operation *, Value> slots;
  /// Per function, three words for the lists of a call of collectives.
  DenseMap<Operation *, Value> collectiveLists;
  /// How each of `functions` takes its arguments.
  DenseMap<Operation *, BufferArguments> arguments;
};
} // namespace

/// True for what becomes a call of the runtime.
bool RuntimeLowering::reachesRuntime(Operation *op) const {
  if (deviceMemory && isa<memref::CopyOp, memref::GetGlobalOp>(op))
    return true;
  return isa<BucketUserOpInterface, memref::AllocOp, memref::DeallocOp,
             shard::ProcessLinearIndexOp, shard::ProcessMultiIndexOp,
             gpu::LaunchFuncOp>(op);
}

/// Collects the functions that reach the runtime, by themselves or by a call,
/// and the entries, which have a status in any case.
void RuntimeLowering::findFunctions() {
  DenseMap<Operation *, SmallVector<Operation *>> callers;
  SmallVector<Operation *> worklist;
  DenseSet<Operation *> found;
  auto add = [&](Operation *function) {
    if (found.insert(function).second)
      worklist.push_back(function);
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function->hasAttr(FsdpDialect::getEntryAttrName()))
      add(function);
    function.walk([&](Operation *op) {
      if (reachesRuntime(op))
        add(function);
      if (auto call = dyn_cast<func::CallOp>(op))
        if (auto callee = symbolTable.lookupNearestSymbolFrom<func::FuncOp>(
                call, call.getCalleeAttr()))
          callers[callee].push_back(function);
    });
  }
  while (!worklist.empty())
    for (Operation *caller : callers[worklist.pop_back_val()])
      add(caller);
  for (auto function : module.getOps<func::FuncOp>())
    if (found.contains(function))
      functions.insert(function);
}

/// Eight bytes in the entry block, for any out-parameter of the runtime.
Value RuntimeLowering::getSlot(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  Value &slot = slots[function];
  if (!slot) {
    ImplicitLocOpBuilder b(function.getLoc(), module.getContext());
    slot = createFrameArray(b, function, 1);
  }
  return slot;
}

/// A memref over `data`, row major and dense.
Value RuntimeLowering::createDescriptor(ImplicitLocOpBuilder &b,
                                        MemRefType type, Value data,
                                        ValueRange dynamicSizes) {
  if (type.hasStaticShape())
    return createDenseBuffer(b, type, data);
  Location loc = b.getLoc();
  auto descriptor =
      MemRefDescriptor::poison(b, loc, typeConverter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, data);
  descriptor.setAlignedPtr(b, loc, data);
  descriptor.setConstantOffset(b, loc, 0);
  Value stride = i64(b, 1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    Value size;
    if (type.isDynamicDim(dim))
      size = arith::IndexCastOp::create(
          b, b.getI64Type(), dynamicSizes[type.getDynamicDimIndex(dim)]);
    else
      size = i64(b, type.getDimSize(dim));
    descriptor.setSize(b, loc, dim, size);
    descriptor.setStride(b, loc, dim, stride);
    stride = arith::MulIOp::create(b, stride, size);
  }
  Value whole = descriptor;
  return UnrealizedConversionCastOp::create(b, type, whole).getResult(0);
}

LogicalResult RuntimeLowering::lowerAlloc(memref::AllocOp op) {
  MemRefType type = op.getType();
  if (!type.getLayout().isIdentity() || type.getMemorySpace())
    return op.emitOpError("has no lowering to the runtime: expected a dense "
                          "buffer in the default memory space, but it is ")
           << type;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t elementBytes =
      DataLayout::closest(op).getTypeSize(type.getElementType());
  int64_t staticBytes = elementBytes;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) &&
        llvm::MulOverflow(staticBytes, size, staticBytes))
      return op.emitOpError("is too large: expected fewer than 2^63 bytes, but "
                            "it is ")
             << type;
  Value bytes = i64(b, staticBytes);
  for (Value size : op.getDynamicSizes())
    bytes = arith::MulIOp::create(
        b, bytes, arith::IndexCastOp::create(b, b.getI64Type(), size));
  Value slot = getSlot(op);
  calls.call(b, RuntimeFunction::fsdprtAlloc, {getContext(op), bytes, slot});
  Value data = LLVM::LoadOp::create(b, pointer, slot);
  op.replaceAllUsesWith(createDescriptor(b, type, data, op.getDynamicSizes()));
  op.erase();
  return success();
}

void RuntimeLowering::lowerDealloc(memref::DeallocOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  // Of the whole buffer, wherever a view starts.
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, op.getMemref());
  Value word = arith::IndexCastOp::create(b, b.getI64Type(), address);
  Value data = LLVM::IntToPtrOp::create(b, pointer, word);
  calls.call(b, RuntimeFunction::fsdprtFree, {getContext(op), data});
  op.erase();
}

static int64_t getBytes(MemRefType type) {
  int64_t elementBytes = DataLayout().getTypeSize(type.getElementType());
  return type.getNumElements() * elementBytes;
}

LogicalResult RuntimeLowering::lowerCopy(memref::CopyOp op) {
  if (!isContiguousBuffer(op.getSource()) ||
      !isContiguousBuffer(op.getTarget()))
    return op.emitOpError("has no lowering to the runtime: expected dense "
                          "buffers of static shape");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t bytes = getBytes(cast<MemRefType>(op.getSource().getType()));
  calls.call(b, RuntimeFunction::fsdprtCopy,
             {getContext(op), createPointer(b, op.getSource()),
              createPointer(b, op.getTarget()), i64(b, bytes)});
  op.erase();
  return success();
}

/// A constant stays where the artefact has it; what is read is the device's.
void RuntimeLowering::lowerConstant(memref::GetGlobalOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
  b.setInsertionPointAfter(op);
  MemRefType type = op.getType();
  Value slot = getSlot(op);
  Value host = createPointer(b, op);
  Operation *address = op->getNextNode();
  calls.call(b, RuntimeFunction::fsdprtConstant,
             {getContext(op), host, i64(b, getBytes(type)), slot});
  Value data = LLVM::LoadOp::create(b, pointer, slot);
  op.getResult().replaceAllUsesExcept(createDescriptor(b, type, data, {}),
                                      address);
}

void RuntimeLowering::lowerLinearIndex(shard::ProcessLinearIndexOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value slot = getSlot(op);
  calls.call(b, RuntimeFunction::fsdprtRank, {getContext(op), slot});
  Value rank = LLVM::LoadOp::create(b, b.getI64Type(), slot);
  op.replaceAllUsesWith(
      arith::IndexCastOp::create(b, b.getIndexType(), rank).getResult());
  op.erase();
}

LogicalResult RuntimeLowering::lowerMultiIndex(shard::ProcessMultiIndexOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<int32_t> axes(op.getAxes().begin(), op.getAxes().end());
  if (axes.empty()) // means all of them
    axes = llvm::to_vector(llvm::seq<int32_t>(0, op.getNumResults()));
  Value slot = getSlot(op);
  SmallVector<Value> coordinates;
  for (int32_t axis : axes) {
    calls.call(b, RuntimeFunction::fsdprtCoordinate,
               {getContext(op), i32(b, axis), slot});
    Value coordinate = LLVM::LoadOp::create(b, b.getI64Type(), slot);
    coordinates.push_back(
        arith::IndexCastOp::create(b, b.getIndexType(), coordinate));
  }
  op->replaceAllUsesWith(coordinates);
  op->erase();
  return success();
}

/// The fsdprtCollectiveKind of a collective; none for what the runtime has not.
static std::optional<int32_t> getRuntimeKind(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return FSDPRT_ALL_GATHER;
  case CollectiveKind::ReduceScatter:
    return FSDPRT_REDUCE_SCATTER;
  case CollectiveKind::AllReduce:
    return FSDPRT_ALL_REDUCE;
  case CollectiveKind::Other:
    return std::nullopt;
  }
  llvm_unreachable("unknown kind of collective");
}

/// A constant record and, on the frame, three lists of one: the record, what is
/// sent, and what is received.
LogicalResult RuntimeLowering::lowerCollective(CollectiveOpInterface op) {
  CollectiveRecord record;
  record.bucket = lookupBucket(op, symbolTable);
  FailureOr<ResolvedBucket> resolved = ResolvedBucket::get(
      record.bucket, symbolTable, [&] { return op->emitOpError(); });
  if (failed(resolved))
    return failure();
  record.kind = *getRuntimeKind(op.getCollectiveKind()); // it was checked
  record.axes = llvm::to_vector(op.getGroupAxes(resolved->group));
  record.count = resolved->layout.rowElements();
  if (std::optional<CollectiveReduction> reduction =
          op.getCollectiveReduction()) {
    record.reduction = getRuntimeReduction(reduction->op);
    if (reduction->multiplier)
      record.multiplier = reduction->multiplier.getValueAsDouble();
    record.accumulate = static_cast<bool>(reduction->accumulate);
  }

  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto function = op->getParentOfType<func::FuncOp>();
  Value &lists = collectiveLists[function];
  if (!lists) {
    ImplicitLocOpBuilder top(function.getLoc(), module.getContext());
    lists = createFrameArray(top, function, 3);
  }
  Value values[] = {calls.collective(b, record), createPointer(b, op.getSent()),
                    createPointer(b, op.getReceived())};
  SmallVector<Value> operands{getContext(op)};
  for (auto [index, value] : llvm::enumerate(values)) {
    LLVM::GEPArg place = static_cast<int32_t>(index);
    Value list = LLVM::GEPOp::create(b, pointer, pointer, lists, place);
    LLVM::StoreOp::create(b, value, list);
    operands.push_back(list);
  }
  operands.insert(operands.begin() + 2, i32(b, 1));
  calls.call(b, RuntimeFunction::fsdprtRunCollectives, operands);
  op->erase();
  return success();
}

/// A launch of one of our kernels: its first operand points to the addresses
/// that the kernel takes by value, the second is the bucket.
LogicalResult RuntimeLowering::lowerLaunch(gpu::LaunchFuncOp op) {
  auto kernel = dyn_cast_or_null<LLVM::LLVMFuncOp>(
      symbolTable.lookupNearestSymbolFrom(op, op.getKernelAttr()));
  auto addresses = kernel && kernel.getNumArguments() == 2
                       ? kernel.getArgAttrOfType<TypeAttr>(
                             0, LLVM::LLVMDialect::getByValAttrName())
                       : TypeAttr();
  auto array = addresses ? dyn_cast<LLVM::LLVMArrayType>(addresses.getValue())
                         : LLVM::LLVMArrayType();
  if (!array || op.getNumKernelOperands() != 2)
    return op.emitOpError("has no lowering to the runtime: expected a kernel "
                          "of convert-fsdp-to-tiles");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto size = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, b.getI64Type(), index);
  };
  auto [image, imageBytes] = calls.kernelImage(b);
  gpu::KernelDim3 blocks = op.getGridSizeOperandValues();
  gpu::KernelDim3 threads = op.getBlockSizeOperandValues();
  Value bucket =
      LLVM::AddrSpaceCastOp::create(b, pointer, op.getKernelOperand(1));
  calls.call(b, RuntimeFunction::fsdprtLaunch,
             {getContext(op), image, imageBytes, calls.name(b, kernel),
              size(blocks.x), size(blocks.y), size(threads.x),
              op.getKernelOperand(0), i64(b, 8 * array.getNumElements()),
              bucket});
  op.erase();
  return success();
}

LogicalResult RuntimeLowering::lower(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::AllocOp alloc) { return lowerAlloc(alloc); })
      .Case([&](memref::DeallocOp dealloc) {
        lowerDealloc(dealloc);
        return success();
      })
      .Case([&](memref::CopyOp copy) {
        return deviceMemory ? lowerCopy(copy) : success();
      })
      .Case([&](memref::GetGlobalOp constant) {
        if (deviceMemory)
          lowerConstant(constant);
        return success();
      })
      .Case([&](shard::ProcessLinearIndexOp index) {
        lowerLinearIndex(index);
        return success();
      })
      .Case([&](shard::ProcessMultiIndexOp index) {
        return lowerMultiIndex(index);
      })
      .Case([&](gpu::LaunchFuncOp launch) { return lowerLaunch(launch); })
      .Case([&](CollectiveOpInterface collective) {
        return lowerCollective(collective);
      })
      .Default([](Operation *) { return success(); });
}

LogicalResult RuntimeLowering::lowerFunction(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      ImplicitLocOpBuilder b(ret.getLoc(), ret);
      ret->insertOperands(ret.getNumOperands(), i32(b, FSDPRT_SUCCESS));
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = symbolTable.lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!functions.contains(callee))
        continue;
      ImplicitLocOpBuilder b(call.getLoc(), call);
      auto withStatus = func::CallOp::create(
          b, callee,
          arguments.at(callee).createOperands(b, function, call.getOperands()));
      call->replaceAllUsesWith(withStatus.getResults().drop_back());
      call->erase();
    } else if (failed(lower(op))) {
      return failure();
    }
  }
  return success();
}

/// Takes note of how `function` takes its arguments. An entry, whose first
/// `fsdp.entry` operands are a launcher's arguments, the others results,
/// becomes the function that a launcher calls.
LogicalResult RuntimeLowering::addArguments(func::FuncOp function) {
  auto count =
      function->getAttrOfType<IntegerAttr>(FsdpDialect::getEntryAttrName());
  if (!count) {
    arguments.try_emplace(function, function, /*isEntry=*/false, /*inputs=*/0);
    return success();
  }
  if (!BufferArguments::canBeEntry(function, count.getInt()))
    return function.emitOpError("cannot be an entry: expected ")
           << count.getInt()
           << " inputs, which are scalars or dense buffers of static shape, "
              "then such buffers, and no result";
  auto name =
      StringAttr::get(module.getContext(),
                      FSDPRT_ARTEFACT_ENTRY_PREFIX + function.getSymName());
  if (symbolTable.lookupSymbolIn(module, name))
    return function.emitOpError("cannot be an entry: the symbol '")
           << name.getValue() << "' is taken";
  arguments.try_emplace(function, function, /*isEntry=*/true, count.getInt());
  return success();
}

/// An entry of a module with kernels checks the driver before any rank waits
/// for another one. Called before there are frame arrays, which then precede
/// it.
void RuntimeLowering::requireDriver(func::FuncOp function) {
  if (!function->hasAttr(FsdpDialect::getEntryAttrName()) ||
      module.getOps<gpu::GPUModuleOp>().empty())
    return;
  ImplicitLocOpBuilder b(function.getLoc(), module.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  calls.call(b, RuntimeFunction::fsdprtRequireDriver,
             {function.getArgument(0), calls.kernelDriver(b)});
}

/// Gives entries their exported names, once nothing looks them up any more.
void RuntimeLowering::renameEntries() {
  DenseMap<StringAttr, FlatSymbolRefAttr> renamed;
  for (Operation *op : functions) {
    auto function = cast<func::FuncOp>(op);
    if (!function->removeAttr(FsdpDialect::getEntryAttrName()))
      continue;
    StringAttr old = function.getSymNameAttr();
    auto name = StringAttr::get(module.getContext(),
                                FSDPRT_ARTEFACT_ENTRY_PREFIX + old.getValue());
    function.setSymNameAttr(name);
    renamed.try_emplace(old, FlatSymbolRefAttr::get(name));
  }
  module.walk([&](func::CallOp call) {
    if (FlatSymbolRefAttr name = renamed.lookup(call.getCalleeAttr().getAttr()))
      call.setCalleeAttr(name);
  });
}

/// Declarations have done their work: nothing refers to them now.
void RuntimeLowering::eraseDeclarations() {
  for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
    if (isa<UnitOp, BucketOp, shard::GridOp>(op)) {
      op.erase();
      continue;
    }
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      continue;
    // All at once: one at a time would copy the list as often.
    if (!function.getArgAttrsAttr())
      continue;
    SmallVector<DictionaryAttr> attributes;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      ArrayRef<NamedAttribute> all =
          function_interface_impl::getArgAttrs(function, i);
      NamedAttrList list(all);
      for (NamedAttribute attribute : all)
        if (isa_and_nonnull<FsdpDialect>(attribute.getNameDialect()))
          list.erase(attribute.getName());
      attributes.push_back(list.getDictionary(module.getContext()));
    }
    function.setAllArgAttrs(attributes);
  }
  for (NamedAttribute attribute :
       llvm::to_vector(module->getDiscardableAttrs()))
    if (isa_and_nonnull<FsdpDialect>(attribute.getNameDialect()))
      module->removeDiscardableAttr(attribute.getName());
}

/// Refuses what an earlier pass should have removed, before anything changes.
static LogicalResult checkNothingIsLeft(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    auto user = dyn_cast<BucketUserOpInterface>(op);
    if (isa<UnitOpInterface>(op))
      return op->emitOpError("has no lowering to the runtime: expected "
                             "fsdp-expand-units to have removed it");
    if (!user)
      return WalkResult::advance();
    if (!user.isBufferForm())
      return op->emitOpError("has no lowering to the runtime: expected the "
                             "buffer form, after bufferization");
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      return op->emitOpError("has no lowering to the runtime: expected "
                             "convert-fsdp-to-tiles to have removed it");
    if (!getRuntimeKind(collective.getCollectiveKind()))
      return op->emitOpError("has no lowering to the runtime: expected it to "
                             "be replaced where its dialect is lowered");
    if (!op->getParentOfType<func::FuncOp>())
      return op->emitOpError("has no lowering to the runtime: expected it "
                             "inside of a func.func");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult RuntimeLowering::run() {
  if (failed(checkNothingIsLeft(module)))
    return failure();
  findFunctions();
  for (Operation *function : functions)
    if (failed(addArguments(cast<func::FuncOp>(function))))
      return failure();
  for (Operation *function : functions)
    arguments.at(function).rewrite();
  for (Operation *function : functions)
    requireDriver(cast<func::FuncOp>(function));
  for (Operation *function : functions)
    if (failed(lowerFunction(cast<func::FuncOp>(function))))
      return failure();
  for (Operation *function : functions)
    expandDescriptors(cast<func::FuncOp>(function));
  renameEntries();
  eraseDeclarations();
  return success();
}

namespace {
struct FsdpToRuntimePass
    : fsdp::impl::FsdpToRuntimePassBase<FsdpToRuntimePass> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(RuntimeLowering(getOperation(), deviceMemory).run()))
      signalPassFailure();
  }
};
} // namespace
