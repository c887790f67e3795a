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
// What single ops become are patterns, with calls and returns among them. What
// a function takes is decided for all functions before, in threadContext():
// that is no rewrite of an op, since an argument becomes loads at each of its
// uses.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/FsdpToRuntime.h"
#include "ApplyInOrder.h"
#include "BufferArguments.h"
#include "fsdp/Codegen/RuntimeCalls.h"
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
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FSDPTORUNTIMEPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// What `RuntimeLowering` knows of the functions that reach the runtime.
struct RuntimeLowering::State {
  State(ModuleOp module, const FsdpToRuntimePassOptions &options)
      : module(module), deviceMemory(options.deviceMemory), calls(module),
        typeConverter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  bool reachesRuntime(Operation *op) const;
  void findFunctions();
  LogicalResult checkNothingIsLeft(const FrozenRewritePatternSet &patterns);
  LogicalResult checkOps(const FrozenRewritePatternSet &patterns);
  LogicalResult addArguments(func::FuncOp function);
  void requireDriver(func::FuncOp function);
  void renameEntries();
  void eraseDeclarations();
  Value createDescriptor(ImplicitLocOpBuilder &b, MemRefType type, Value data,
                         ValueRange dynamicSizes);
  /// Whether the function around `op` has a context by now.
  bool hasContext(Operation *op) const {
    auto function = op->getParentOfType<func::FuncOp>();
    return isThreaded && function && functions.contains(function);
  }

  ModuleOp module;
  const bool deviceMemory;
  RuntimeCalls calls;
  LLVMTypeConverter typeConverter;
  Type pointer;
  SymbolTableCollection symbolTable;
  DenseSet<StringRef> runtimeOps; ///< of others, by name
  bool isThreaded = false;
  /// Functions that reach the runtime, in the module's order.
  llvm::SetVector<Operation *> functions;
  /// Per function, eight bytes in which the runtime returns a value.
  DenseMap<Operation *, Value> slots;
  /// Per function, three words for the lists of a call of collectives.
  DenseMap<Operation *, Value> collectiveLists;
  /// How each of `functions` takes its arguments.
  DenseMap<Operation *, BufferArguments> arguments;
  /// Constants that are used where the device has them.
  DenseSet<Operation *> constants;
};

static Value i32(ImplicitLocOpBuilder &b, int32_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
}
static Value i64(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

//===----------------------------------------------------------------------===//
// What has no lowering
//===----------------------------------------------------------------------===//

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

/// Whether a pattern for this very op is there: one for an interface is not.
static bool hasOwnPattern(const FrozenRewritePatternSet &patterns,
                          Operation *op) {
  auto found = patterns.getOpSpecificNativePatterns().find(op->getName());
  return found != patterns.getOpSpecificNativePatterns().end() &&
         llvm::any_of(found->second, [&](const RewritePattern *pattern) {
           return pattern->getRootKind() == op->getName();
         });
}

static int64_t getBytes(MemRefType type) {
  int64_t elementBytes = DataLayout().getTypeSize(type.getElementType());
  return type.getNumElements() * elementBytes;
}

/// The bytes of the static dimensions of `op`; none if they are too many.
static std::optional<int64_t> getStaticBytes(memref::AllocOp op) {
  MemRefType type = op.getType();
  int64_t bytes = DataLayout::closest(op).getTypeSize(type.getElementType());
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return bytes;
}

/// The number of addresses that the kernel of `op` takes by value; none if it
/// is no kernel of ours.
static std::optional<int64_t> getKernelWords(gpu::LaunchFuncOp op,
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

static LLVM::LLVMFuncOp lookupKernel(gpu::LaunchFuncOp op,
                                     SymbolTableCollection &symbolTable) {
  return dyn_cast_or_null<LLVM::LLVMFuncOp>(
      symbolTable.lookupNearestSymbolFrom(op, op.getKernelAttr()));
}

/// Why one of the ops that have patterns here cannot be lowered, as the end of
/// an error at the op; empty if it can be.
static std::string whyNoLowering(Operation *op, bool deviceMemory,
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

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
/// Lowers an op of a function that has a context.
template <typename OpTy>
struct RuntimePattern : OpRewritePattern<OpTy> {
  RuntimePattern(MLIRContext *context, RuntimeLowering &lowering,
                 RuntimeLowering::State &state)
      : OpRewritePattern<OpTy>(context), lowering(lowering), state(state) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const final {
    if (!state.hasContext(op))
      return rewriter.notifyMatchFailure(op, "no context reaches it");
    std::string why = whyNoLowering(op, state.deviceMemory, state.symbolTable);
    if (!why.empty())
      return rewriter.notifyMatchFailure(op, why);
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    return lower(op, b, rewriter);
  }

  virtual LogicalResult lower(OpTy op, ImplicitLocOpBuilder &b,
                              PatternRewriter &rewriter) const = 0;

  RuntimeLowering &lowering;
  RuntimeLowering::State &state;
};

struct AllocLowering : RuntimePattern<memref::AllocOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::AllocOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    Value bytes = i64(b, *getStaticBytes(op));
    for (Value size : op.getDynamicSizes())
      bytes = arith::MulIOp::create(
          b, bytes, arith::IndexCastOp::create(b, b.getI64Type(), size));
    Value slot = lowering.getSlot(op);
    state.calls.call(b, RuntimeFunction::fsdprtAlloc,
                     {lowering.getContext(op), bytes, slot});
    Value data = LLVM::LoadOp::create(b, state.pointer, slot);
    rewriter.replaceOp(op, state.createDescriptor(b, op.getType(), data,
                                                  op.getDynamicSizes()));
    return success();
  }
};

struct DeallocLowering : RuntimePattern<memref::DeallocOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::DeallocOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    // Of the whole buffer, wherever a view starts.
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, op.getMemref());
    Value word = arith::IndexCastOp::create(b, b.getI64Type(), address);
    Value data = LLVM::IntToPtrOp::create(b, state.pointer, word);
    state.calls.call(b, RuntimeFunction::fsdprtFree,
                     {lowering.getContext(op), data});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyLowering : RuntimePattern<memref::CopyOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::CopyOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    int64_t bytes = getBytes(cast<MemRefType>(op.getSource().getType()));
    Value source = createPointer(b, op.getSource());
    Value target = createPointer(b, op.getTarget());
    state.calls.call(b, RuntimeFunction::fsdprtCopy,
                     {lowering.getContext(op), source, target, i64(b, bytes)});
    rewriter.eraseOp(op);
    return success();
  }
};

/// A constant stays where the artefact has it; what is read is the device's.
struct ConstantLowering : RuntimePattern<memref::GetGlobalOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(memref::GetGlobalOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    if (!state.constants.insert(op).second)
      return rewriter.notifyMatchFailure(op, "the device has it");
    b.setInsertionPointAfter(op);
    MemRefType type = op.getType();
    Value slot = lowering.getSlot(op);
    Value host = createPointer(b, op);
    Operation *address = op->getNextNode();
    state.calls.call(
        b, RuntimeFunction::fsdprtConstant,
        {lowering.getContext(op), host, i64(b, getBytes(type)), slot});
    Value data = LLVM::LoadOp::create(b, state.pointer, slot);
    rewriter.replaceAllUsesExcept(
        op.getResult(), state.createDescriptor(b, type, data, {}), address);
    return success();
  }
};

struct LinearIndexLowering : RuntimePattern<shard::ProcessLinearIndexOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(shard::ProcessLinearIndexOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    Value slot = lowering.getSlot(op);
    state.calls.call(b, RuntimeFunction::fsdprtRank,
                     {lowering.getContext(op), slot});
    Value rank = LLVM::LoadOp::create(b, b.getI64Type(), slot);
    rewriter.replaceOp(op,
                       arith::IndexCastOp::create(b, b.getIndexType(), rank));
    return success();
  }
};

struct MultiIndexLowering : RuntimePattern<shard::ProcessMultiIndexOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(shard::ProcessMultiIndexOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    SmallVector<int32_t> axes(op.getAxes().begin(), op.getAxes().end());
    if (axes.empty()) // means all of them
      axes = llvm::to_vector(llvm::seq<int32_t>(0, op.getNumResults()));
    Value slot = lowering.getSlot(op);
    SmallVector<Value> coordinates;
    for (int32_t axis : axes) {
      state.calls.call(b, RuntimeFunction::fsdprtCoordinate,
                       {lowering.getContext(op), i32(b, axis), slot});
      Value coordinate = LLVM::LoadOp::create(b, b.getI64Type(), slot);
      coordinates.push_back(
          arith::IndexCastOp::create(b, b.getIndexType(), coordinate));
    }
    rewriter.replaceOp(op, coordinates);
    return success();
  }
};

/// A launch of one of our kernels: its first operand points to the addresses
/// that the kernel takes by value, the second is the bucket.
struct LaunchLowering : RuntimePattern<gpu::LaunchFuncOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(gpu::LaunchFuncOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    LLVM::LLVMFuncOp kernel = lookupKernel(op, state.symbolTable);
    int64_t words = *getKernelWords(op, kernel);
    auto size = [&](Value index) -> Value {
      return arith::IndexCastOp::create(b, b.getI64Type(), index);
    };
    auto [image, imageBytes] = state.calls.kernelImage(b);
    gpu::KernelDim3 blocks = op.getGridSizeOperandValues();
    gpu::KernelDim3 threads = op.getBlockSizeOperandValues();
    Value bucket =
        LLVM::AddrSpaceCastOp::create(b, state.pointer, op.getKernelOperand(1));
    state.calls.call(b, RuntimeFunction::fsdprtLaunch,
                     {lowering.getContext(op), image, imageBytes,
                      state.calls.name(b, kernel), size(blocks.x),
                      size(blocks.y), size(threads.x), op.getKernelOperand(0),
                      i64(b, 8 * words), bucket});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CallLowering : RuntimePattern<func::CallOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(func::CallOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    auto callee = state.symbolTable.lookupNearestSymbolFrom<func::FuncOp>(
        op, op.getCalleeAttr());
    if (!state.functions.contains(callee))
      return rewriter.notifyMatchFailure(op, "no context for what it calls");
    if (op.getNumResults() == callee.getNumResults())
      return rewriter.notifyMatchFailure(op, "it returns the status");
    auto withStatus = func::CallOp::create(
        b, callee,
        state.arguments.at(callee).createOperands(
            b, op->getParentOfType<func::FuncOp>(), op.getOperands()));
    rewriter.replaceOp(op, withStatus.getResults().drop_back());
    return success();
  }
};

struct ReturnLowering : RuntimePattern<func::ReturnOp> {
  using RuntimePattern::RuntimePattern;
  LogicalResult lower(func::ReturnOp op, ImplicitLocOpBuilder &b,
                      PatternRewriter &rewriter) const final {
    if (op.getNumOperands() ==
        op->getParentOfType<func::FuncOp>().getNumResults())
      return rewriter.notifyMatchFailure(op, "it returns the status");
    Value status = i32(b, FSDPRT_SUCCESS);
    rewriter.modifyOpInPlace(
        op, [&] { op->insertOperands(op.getNumOperands(), status); });
    return success();
  }
};

/// Any collective of a kind that the runtime has.
struct CollectiveLowering : OpInterfaceRewritePattern<CollectiveOpInterface> {
  CollectiveLowering(MLIRContext *context, RuntimeLowering &lowering,
                     RuntimeLowering::State &state)
      : OpInterfaceRewritePattern(context), lowering(lowering), state(state) {}

  LogicalResult matchAndRewrite(CollectiveOpInterface op,
                                PatternRewriter &rewriter) const final {
    std::optional<int32_t> kind = getRuntimeKind(op.getCollectiveKind());
    if (!kind || !op.isBufferForm() || !state.hasContext(op))
      return rewriter.notifyMatchFailure(
          op, "the runtime has no such collective, it is on tensors, or no "
              "context reaches it");
    CollectiveRecord record;
    record.bucket = lookupBucket(op, state.symbolTable);
    FailureOr<ResolvedBucket> resolved =
        ResolvedBucket::get(record.bucket, state.symbolTable);
    if (failed(resolved))
      return rewriter.notifyMatchFailure(op, "its bucket does not verify");
    record.kind = *kind;
    record.axes = llvm::to_vector(op.getGroupAxes(resolved->group));
    record.count = resolved->layout.rowElements();
    if (std::optional<CollectiveReduction> reduction =
            op.getCollectiveReduction()) {
      record.reduction = getRuntimeReduction(reduction->op);
      if (reduction->multiplier)
        record.multiplier = reduction->multiplier.getValueAsDouble();
      record.accumulate = static_cast<bool>(reduction->accumulate);
    }
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    lowering.createCollective(b, op, record, op.getSent(), op.getReceived());
    rewriter.eraseOp(op);
    return success();
  }

  RuntimeLowering &lowering;
  RuntimeLowering::State &state;
};
} // namespace

void mlir::fsdp::populateFsdpToRuntimePatterns(RewritePatternSet &patterns,
                                               RuntimeLowering &lowering) {
  RuntimeLowering::State &state = *lowering.state;
  patterns.add<AllocLowering, DeallocLowering, LinearIndexLowering,
               MultiIndexLowering, LaunchLowering, CallLowering, ReturnLowering,
               CollectiveLowering>(patterns.getContext(), lowering, state);
  if (state.deviceMemory)
    patterns.add<CopyLowering, ConstantLowering>(patterns.getContext(),
                                                 lowering, state);
}

namespace {
struct FsdpToRuntimePass
    : fsdp::impl::FsdpToRuntimePassBase<FsdpToRuntimePass> {
  using Base::Base;
  void runOnOperation() override {
    RuntimeLowering lowering(getOperation(), {deviceMemory});
    RewritePatternSet patterns(&getContext());
    populateFsdpToRuntimePatterns(patterns, lowering);
    // By name, so in one order.
    for (Dialect *dialect : getContext().getLoadedDialects())
      if (auto *other = dialect->getRegisteredInterface<
                        ConvertFsdpToRuntimeDialectInterface>())
        other->populateFsdpToRuntimePatterns(patterns, lowering);
    if (failed(lowering.run(std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
