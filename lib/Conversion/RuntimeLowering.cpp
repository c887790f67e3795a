//===- RuntimeLowering.cpp - functions get a context and a status ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What convert-fsdp-to-runtime does around its patterns: it refuses what they
// cannot lower, decides which functions reach the runtime and what those take,
// and at the end removes the declarations.
//
//===----------------------------------------------------------------------===//

#include "RuntimeLowering.h"

#include "ApplyInOrder.h"
#include "fsdp/Runtime/Runtime.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// What has no lowering
//===----------------------------------------------------------------------===//

std::optional<int32_t> mlir::fsdp::getRuntimeKind(CollectiveKind kind) {
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

/// Whether a pattern for this very op is there: one for an interface is not.
static bool hasOwnPattern(const FrozenRewritePatternSet &patterns,
                          Operation *op) {
  auto found = patterns.getOpSpecificNativePatterns().find(op->getName());
  return found != patterns.getOpSpecificNativePatterns().end() &&
         llvm::any_of(found->second, [&](const RewritePattern *pattern) {
           return pattern->getRootKind() == op->getName();
         });
}

int64_t mlir::fsdp::getDenseBytes(MemRefType type) {
  int64_t elementBytes = DataLayout().getTypeSize(type.getElementType());
  return type.getNumElements() * elementBytes;
}

std::optional<int64_t> mlir::fsdp::getStaticBytes(memref::AllocOp op) {
  MemRefType type = op.getType();
  int64_t bytes = DataLayout::closest(op).getTypeSize(type.getElementType());
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return bytes;
}

std::optional<int64_t> mlir::fsdp::getKernelWords(gpu::LaunchFuncOp op,
                                                  LLVM::LLVMFuncOp kernel) {
  auto addresses = kernel && kernel.getNumArguments() == 2
                       ? kernel.getArgAttrOfType<TypeAttr>(
                             0, LLVM::LLVMDialect::getByValAttrName())
                       : TypeAttr();
  auto array = addresses ? dyn_cast<LLVM::LLVMArrayType>(addresses.getValue())
                         : LLVM::LLVMArrayType();
  if (!array || op.getNumKernelOperands() != 2)
    return std::nullopt;
  return array.getNumElements();
}

LLVM::LLVMFuncOp mlir::fsdp::lookupKernel(gpu::LaunchFuncOp op,
                                          SymbolTableCollection &symbolTable) {
  return dyn_cast_or_null<LLVM::LLVMFuncOp>(
      symbolTable.lookupNearestSymbolFrom(op, op.getKernelAttr()));
}

std::string mlir::fsdp::whyNoLowering(Operation *op, bool deviceMemory,
                                      SymbolTableCollection &symbolTable) {
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    MemRefType type = alloc.getType();
    if (!type.getLayout().isIdentity() || type.getMemorySpace())
      return llvm::formatv("has no lowering to the runtime: expected a dense "
                           "buffer in the default memory space, but it is "
                           "'{0}'",
                           type);
    if (!getStaticBytes(alloc))
      return llvm::formatv("is too large: expected fewer than 2^63 bytes, but "
                           "it is '{0}'",
                           type);
  } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    if (deviceMemory && (!isContiguousBuffer(copy.getSource()) ||
                         !isContiguousBuffer(copy.getTarget())))
      return "has no lowering to the runtime: expected dense buffers of static "
             "shape";
  } else if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
    if (!getKernelWords(launch, lookupKernel(launch, symbolTable)))
      return "has no lowering to the runtime: expected a kernel of "
             "convert-fsdp-to-tiles";
  }
  return {};
}

/// Refuses what an earlier pass should have removed, before anything changes.
LogicalResult RuntimeLowering::State::checkNothingIsLeft(
    const FrozenRewritePatternSet &patterns) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    auto user = dyn_cast<BucketUserOpInterface>(op);
    if (isa<UnitOpInterface>(op))
      return op->emitOpError("has no lowering to the runtime: expected "
                             "fsdp-expand-units to have removed it");
    if (!user)
      return WalkResult::advance();
    if (!user.isBufferForm())
      return op->emitOpError("has no lowering to the runtime: expected the "
                             "buffer form, after bufferization");
    bool isOurs = !hasOwnPattern(patterns, op);
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective && isOurs)
      return op->emitOpError("has no lowering to the runtime: expected "
                             "convert-fsdp-to-tiles to have removed it");
    if (isOurs && !getRuntimeKind(collective.getCollectiveKind()))
      return op->emitOpError("has no lowering to the runtime: expected it to "
                             "be replaced where its dialect is lowered");
    if (!op->getParentOfType<func::FuncOp>())
      return op->emitOpError("has no lowering to the runtime: expected it "
                             "inside of a func.func");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Refuses ops that patterns are there for, but not for what the ops say.
LogicalResult
RuntimeLowering::State::checkOps(const FrozenRewritePatternSet &patterns) {
  for (Operation *function : functions) {
    WalkResult result = function->walk([&](Operation *op) -> WalkResult {
      std::string why = whyNoLowering(op, deviceMemory, symbolTable);
      if (!why.empty())
        return op->emitOpError(why);
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (!collective || hasOwnPattern(patterns, op))
        return WalkResult::advance();
      return LogicalResult(
          ResolvedBucket::get(lookupBucket(collective, symbolTable),
                              symbolTable, [&] { return op->emitOpError(); }));
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// True for what becomes a call of the runtime.
bool RuntimeLowering::State::reachesRuntime(Operation *op) const {
  if (deviceMemory && isa<memref::CopyOp, memref::GetGlobalOp>(op))
    return true;
  return isa<BucketUserOpInterface, memref::AllocOp, memref::DeallocOp,
             shard::ProcessLinearIndexOp, shard::ProcessMultiIndexOp,
             gpu::LaunchFuncOp>(op) ||
         runtimeOps.contains(op->getName().getStringRef());
}

/// Collects the functions that reach the runtime, by themselves or by a call,
/// and the entries, which have a status in any case.
void RuntimeLowering::State::findFunctions() {
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

/// Takes note of how `function` takes its arguments. An entry, whose first
/// `fsdp.entry` operands are a launcher's arguments, the others results,
/// becomes the function that a launcher calls.
LogicalResult RuntimeLowering::State::addArguments(func::FuncOp function) {
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
void RuntimeLowering::State::requireDriver(func::FuncOp function) {
  if (!function->hasAttr(FsdpDialect::getEntryAttrName()) ||
      module.getOps<gpu::GPUModuleOp>().empty())
    return;
  ImplicitLocOpBuilder b(function.getLoc(), module.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  calls.call(b, RuntimeFunction::fsdprtRequireDriver,
             {function.getArgument(0), calls.kernelDriver(b)});
}

/// Gives entries their exported names, once nothing looks them up any more.
void RuntimeLowering::State::renameEntries() {
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
void RuntimeLowering::State::eraseDeclarations() {
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

/// A memref over `data`, row major and dense.
Value RuntimeLowering::State::createDescriptor(ImplicitLocOpBuilder &b,
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

//===----------------------------------------------------------------------===//
// RuntimeLowering
//===----------------------------------------------------------------------===//

RuntimeLowering::RuntimeLowering(ModuleOp module,
                                 const FsdpToRuntimePassOptions &options)
    : state(std::make_unique<State>(module, options)) {}

RuntimeLowering::~RuntimeLowering() = default;

void RuntimeLowering::addRuntimeOp(StringRef name) {
  state->runtimeOps.insert(name);
}

RuntimeCalls &RuntimeLowering::getCalls() { return state->calls; }

Value RuntimeLowering::getContext(Operation *op) {
  if (!state->hasContext(op))
    return {};
  return op->getParentOfType<func::FuncOp>().getArgument(0);
}

/// Eight bytes in the entry block, for any out-parameter of the runtime.
Value RuntimeLowering::getSlot(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  Value &slot = state->slots[function];
  if (!slot) {
    ImplicitLocOpBuilder b(function.getLoc(), state->module.getContext());
    slot = createFrameArray(b, function, 1);
  }
  return slot;
}

/// A constant record and, on the frame, three lists of one: the record, what is
/// sent, and what is received.
void RuntimeLowering::createCollective(ImplicitLocOpBuilder &b, Operation *op,
                                       const CollectiveRecord &record,
                                       Value sent, Value received) {
  auto function = op->getParentOfType<func::FuncOp>();
  Value &lists = state->collectiveLists[function];
  if (!lists) {
    ImplicitLocOpBuilder top(function.getLoc(), state->module.getContext());
    lists = createFrameArray(top, function, 3);
  }
  Value values[] = {state->calls.collective(b, record), createPointer(b, sent),
                    createPointer(b, received)};
  SmallVector<Value> operands{getContext(op)};
  for (auto [index, value] : llvm::enumerate(values)) {
    LLVM::GEPArg place = static_cast<int32_t>(index);
    Value list =
        LLVM::GEPOp::create(b, state->pointer, state->pointer, lists, place);
    LLVM::StoreOp::create(b, value, list);
    operands.push_back(list);
  }
  operands.insert(operands.begin() + 2, i32(b, 1));
  state->calls.call(b, RuntimeFunction::fsdprtRunCollectives, operands);
}

LogicalResult
RuntimeLowering::threadContext(const FrozenRewritePatternSet &patterns) {
  if (failed(state->checkNothingIsLeft(patterns)))
    return failure();
  state->findFunctions();
  for (Operation *function : state->functions)
    if (failed(state->addArguments(cast<func::FuncOp>(function))))
      return failure();
  if (failed(state->checkOps(patterns)))
    return failure();
  for (Operation *function : state->functions)
    state->arguments.at(function).rewrite();
  for (Operation *function : state->functions)
    state->requireDriver(cast<func::FuncOp>(function));
  state->isThreaded = true;
  return success();
}

LogicalResult RuntimeLowering::finish() {
  for (Operation *function : state->functions) {
    WalkResult result =
        function->walk([](BucketUserOpInterface op) -> WalkResult {
          return op->emitOpError("has no lowering to the runtime: none of the "
                                 "patterns for it applies");
        });
    if (result.wasInterrupted())
      return failure();
  }
  for (Operation *function : state->functions)
    expandDescriptors(cast<func::FuncOp>(function));
  state->renameEntries();
  state->eraseDeclarations();
  state->isThreaded = false;
  return success();
}

LogicalResult RuntimeLowering::run(RewritePatternSet &&patterns) {
  FrozenRewritePatternSet frozen(std::move(patterns));
  if (failed(threadContext(frozen)))
    return failure();
  for (Operation *function : state->functions)
    applyInOrder(function, frozen);
  return finish();
}
