//===- FsdpToTiles.cpp - lower local ops to loops over tiles --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fsdp.chunk_cat %g into @b outs(%m : memref<2x32xf32>)
//       : (memref<5x3xbf16>) -> ()
// becomes
//   llvm.mlir.global internal constant @b_chunk_cat_tiles(dense<[...]>)
//   %members = llvm.alloca ... ; one pointer per member
//   llvm.call @fsdp_pack_bf16_f32(%members, ..., %m, @b_chunk_cat_tiles, ...)
// for the CPU, and for the GPU
//   gpu.launch_func @fsdp_kernels::@b_chunk_cat args(%members, %m)
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/FsdpToTiles.h"

#include "ApplyInOrder.h"
#include "Quietly.h"
#include "fsdp/Codegen/GpuBuilder.h"
#include "fsdp/Codegen/KernelModule.h"
#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Codegen/TileBodyCpu.h"
#include "fsdp/Codegen/TileBodyGpu.h"
#include "fsdp/Codegen/TilePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FSDPTOTILESPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// What the local ops of one module share: functions, tables and kernels.
class TileLowering {
public:
  /// With target=cuda, `chip` is the one that `options` name.
  TileLowering(ModuleOp module, const FsdpToTilesPassOptions &options,
               const GpuChip *chip)
      : module(module), options(options),
        kernels(module, symbolTables, chip, this->options.features) {}

  LogicalResult lower(LocalOpInterface op, PatternRewriter &rewriter);

private:
  /// A local op on dense buffers, and what is known of it.
  struct LocalOp {
    LocalOpInterface op;
    FunctionOpInterface parent;
    const TilePlan &plan;
    TileFunction function;
    SmallVector<Value> members, old;
  };

  void callTileFunction(const LocalOp &local, PatternRewriter &rewriter);
  void runKernels(const LocalOp &local, PatternRewriter &rewriter);
  void runKernel(const LocalOp &local, const TilePlan &plan,
                 ArrayRef<Value> members, ArrayRef<Value> old,
                 PatternRewriter &rewriter);

  LLVM::LLVMFuncOp getOrCreateFunction(const TileFunction &function);
  LLVM::GlobalOp createTable(Operation *parent, LocalOpInterface op,
                             const TilePlan &plan, unsigned addressSpace);

  ModuleOp module;
  const FsdpToTilesPassOptions options;
  SymbolTableCollection symbolTables;
  KernelModule kernels;
  llvm::StringMap<LLVM::LLVMFuncOp> functions; ///< by name, shared by ops
  /// By where they are and what they hold, shared by ops.
  DenseMap<std::pair<Operation *, Attribute>, LLVM::GlobalOp> tables;
};

struct FsdpToTilesPass : fsdp::impl::FsdpToTilesPassBase<FsdpToTilesPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// Gives `op` densely packed buffers where it has others: a copy of each that
/// it reads, and one that is copied back for each that it writes. Bufferization
/// of a program that hands us slices of larger tensors leads here.
static void makeContiguous(LocalOpInterface op, PatternRewriter &rewriter) {
  OperandRange outputs = op.getOutputOperands();
  unsigned firstOutput = outputs.getBeginOperandIndex();
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = cast<MemRefType>(operand.get().getType());
    if (isContiguousBuffer(operand.get()))
      continue;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value original = operand.get();
    auto denseType = MemRefType::get(type.getShape(), type.getElementType());
    Value dense = memref::AllocOp::create(b, denseType);
    bool isOutput = operand.getOperandNumber() >= firstOutput &&
                    operand.getOperandNumber() < firstOutput + outputs.size();
    if (!isOutput)
      memref::CopyOp::create(b, original, dense);
    rewriter.modifyOpInPlace(op, [&] { operand.set(dense); });
    b.setInsertionPointAfter(op);
    if (isOutput)
      memref::CopyOp::create(b, dense, original);
    memref::DeallocOp::create(b, dense);
  }
}

LLVM::LLVMFuncOp
TileLowering::getOrCreateFunction(const TileFunction &function) {
  LLVM::LLVMFuncOp &known = functions[function.getName()];
  if (!known) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    known = buildTileFunction(function, builder, module.getLoc());
    symbolTables.getSymbolTable(module).insert(known);
  }
  return known;
}

/// The name of the op's bucket and the op, in the characters that every symbol
/// may have: PTX knows no dots.
static std::string getCodeName(LocalOpInterface op) {
  std::string name =
      (op.getBucketAttr().getValue() + "_" + op->getName().stripDialect())
          .str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return llvm::isDigit(name.front()) ? "_" + name : name;
}

/// The records of `plan`, as a constant of `parent`, a symbol table. Ops with
/// equal records share one: the layers of a model, and parameters of one shape.
LLVM::GlobalOp TileLowering::createTable(Operation *parent, LocalOpInterface op,
                                         const TilePlan &plan,
                                         unsigned addressSpace) {
  SmallVector<int32_t, 0> words;
  words.reserve(plan.tiles.size() * kTileWords);
  for (const Tile &tile : plan.tiles)
    llvm::append_range(words, tile.encode());
  ImplicitLocOpBuilder b(op.getLoc(), module.getContext());
  b.setInsertionPointToEnd(&parent->getRegion(0).front());
  auto type = LLVM::LLVMArrayType::get(b.getI32Type(), words.size());
  auto value = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(words.size())},
                            b.getI32Type()),
      ArrayRef<int32_t>(words));
  LLVM::GlobalOp &table = tables[{parent, value}];
  if (table)
    return table;
  table = LLVM::GlobalOp::create(
      b, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      getCodeName(op) + "_tiles", value, /*alignment=*/32, addressSpace);
  symbolTables.getSymbolTable(parent).insert(table);
  return table;
}

/// For the CPU: one call for the tiles of one run, one for the strided ones.
void TileLowering::callTileFunction(const LocalOp &local,
                                    PatternRewriter &rewriter) {
  LocalOpInterface op = local.op;
  const TilePlan &plan = local.plan;
  LLVM::LLVMFuncOp callee = getOrCreateFunction(local.function);
  LLVM::GlobalOp table = createTable(module, op, plan, /*addressSpace=*/0);

  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value members = createWordArray(b, local.parent, local.members);
  Value old = createWordArray(b, local.parent, local.old);
  Value rows = createPointer(b, op.getBucketValue().first);
  Value tiles = LLVM::AddressOfOp::create(b, table);
  auto call = [&](int64_t first, int64_t count, bool rowsOutside) {
    if (count == 0)
      return;
    Value from = LLVM::GEPOp::create(
        b, tiles.getType(),
        LLVM::LLVMArrayType::get(b.getI32Type(), kTileWords), tiles,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(first)});
    Value order = arith::ConstantOp::create(b, b.getBoolAttr(rowsOutside));
    LLVM::CallOp::create(b, callee,
                         ValueRange{members, old, rows, from, constant(count),
                                    constant(plan.rows),
                                    constant(plan.rowBytes),
                                    constant(plan.granule), order});
  };
  int64_t contiguous = plan.numContiguous;
  call(0, contiguous, /*rowsOutside=*/true);
  call(contiguous, plan.tiles.size() - contiguous, /*rowsOutside=*/false);
}

/// For the GPU: one kernel, or several if the addresses do not fit the
/// parameters of one.
void TileLowering::runKernels(const LocalOp &local, PatternRewriter &rewriter) {
  size_t perKernel = kernels.maxAddresses() / (local.function.adds ? 2 : 1);
  ArrayRef<Value> members = local.members, old = local.old;
  if (members.size() <= perKernel)
    return runKernel(local, local.plan, members, old, rewriter);
  for (size_t first = 0; first < members.size(); first += perKernel) {
    size_t count = std::min(perKernel, members.size() - first);
    TilePlan part = local.plan;
    llvm::erase_if(part.tiles, [&](const Tile &tile) {
      return tile.member < first || tile.member >= first + count;
    });
    for (Tile &tile : part.tiles)
      tile.member -= first;
    if (!part.tiles.empty())
      runKernel(local, part, members.slice(first, count),
                local.function.adds ? old.slice(first, count) : old, rewriter);
  }
}

void TileLowering::runKernel(const LocalOp &local, const TilePlan &plan,
                             ArrayRef<Value> members, ArrayRef<Value> old,
                             PatternRewriter &rewriter) {
  LocalOpInterface op = local.op;
  LLVM::GlobalOp table =
      createTable(kernels.getParent(), op, plan, kKernelAddressSpace);
  TileKernel kernel = {getCodeName(op), local.function, plan,
                       kernels.isEmulated(), kernels.waits()};
  OpBuilder atEnd = kernels.atEnd();
  LLVM::LLVMFuncOp callee =
      kernel.build(atEnd, op.getLoc(), table, members.size());
  kernels.insert(callee);

  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  SmallVector<Value> values(members);
  llvm::append_range(values, old);
  Value addresses = createWordArray(b, local.parent, values);
  Value rows = createPointer(b, op.getBucketValue().first);
  kernels.run(b, callee, addresses, rows, plan.tiles.size(), plan.rows,
              kernel.rowsFirst());
}

namespace {
/// A local op, and what has to be known of it before it is lowered.
struct Planned {
  FunctionOpInterface parent;
  ResolvedBucket bucket;
  TilePlan plan;
};
} // namespace

/// Emits an error at `op` where it cannot be lowered.
static FailureOr<Planned> plan(LocalOpInterface op, TileTarget target,
                               SymbolTableCollection &symbolTables) {
  if (!op.isBufferForm())
    return op.emitOpError("is on tensors, expected the buffer form: run "
                          "one-shot-bufferize first");
  FailureOr<ResolvedBucket> bucket =
      ResolvedBucket::get(lookupBucket(op, symbolTables), symbolTables);
  if (failed(bucket))
    return op.emitOpError("cannot be lowered: its bucket ")
           << op.getBucketAttr() << " does not verify";
  auto parent = op->getParentOfType<FunctionOpInterface>();
  if (!parent)
    return op.emitOpError("cannot be lowered: it is in no function");
  FailureOr<TilePlan> plan = TilePlan::get(op, *bucket);
  if (failed(plan))
    return failure();
  if (target != TileTarget::Cpu && plan->rows > kMaxRows)
    return op.emitOpError("cannot be lowered: bucket ")
           << op.getBucketAttr() << " has " << plan->rows
           << " rows, but a grid of blocks at most " << kMaxRows;
  return Planned{parent, std::move(*bucket), std::move(*plan)};
}

LogicalResult
mlir::fsdp::checkFsdpToTiles(LocalOpInterface op,
                             const FsdpToTilesPassOptions &options) {
  SymbolTableCollection symbolTables;
  return plan(op, options.target, symbolTables);
}

LogicalResult TileLowering::lower(LocalOpInterface op,
                                  PatternRewriter &rewriter) {
  FailureOr<Planned> planned = quietly(
      op->getContext(), [&] { return plan(op, options.target, symbolTables); });
  if (failed(planned))
    return rewriter.notifyMatchFailure(op, "checkFsdpToTiles() says why");
  const TilePlan &plan = planned->plan;
  if (options.printPlan)
    plan.print(llvm::errs(), planned->bucket);
  if (plan.tiles.empty()) { // no member has an element
    rewriter.eraseOp(op);
    return success();
  }

  makeContiguous(op, rewriter);
  LocalOp local = {
      op, planned->parent,      plan,
      {}, op.getMemberValues(), llvm::to_vector_of<Value>(op.getAdd())};
  local.function = {plan.packs, plan.pairs, std::nullopt, !local.old.empty()};
  if (FloatAttr divide = op.getDivideAttr())
    local.function.divide = divide.getValueAsDouble();
  if (options.target == TileTarget::Cpu)
    callTileFunction(local, rewriter);
  else
    runKernels(local, rewriter);
  rewriter.eraseOp(op);
  return success();
}

namespace {
struct LocalOpLowering : OpInterfaceRewritePattern<LocalOpInterface> {
  LocalOpLowering(MLIRContext *context, std::shared_ptr<TileLowering> lowering)
      : OpInterfaceRewritePattern(context), lowering(std::move(lowering)) {}

  LogicalResult matchAndRewrite(LocalOpInterface op,
                                PatternRewriter &rewriter) const final {
    return lowering->lower(op, rewriter);
  }

  std::shared_ptr<TileLowering> lowering;
};
} // namespace

/// Bytes of the parameters of the largest kernel, if nothing limits them.
static int64_t getLargestParameters(ModuleOp module) {
  int64_t addresses = 0;
  module.walk([&](LocalOpInterface op) {
    int64_t members = op.getMemberValues().size();
    int64_t added = op.getAdd().size();
    addresses = std::max(addresses, members + added);
  });
  return getParameterBytes(std::min(addresses, kMaxAddresses));
}

LogicalResult
mlir::fsdp::populateFsdpToTilesPatterns(RewritePatternSet &patterns,
                                        ModuleOp module,
                                        const FsdpToTilesPassOptions &options) {
  FsdpToTilesPassOptions chosen = options;
  const GpuChip *gpuChip = nullptr;
  if (options.target == TileTarget::Cuda) {
    gpuChip = checkChip(module, options.chip, getLargestParameters(module),
                        chosen.features);
    if (!gpuChip)
      return failure();
  }
  patterns.add<LocalOpLowering>(
      patterns.getContext(),
      std::make_shared<TileLowering>(module, chosen, gpuChip));
  return success();
}

void FsdpToTilesPass::runOnOperation() {
  FsdpToTilesPassOptions options = {target, chip, features, printPlan};
  WalkResult tensors = getOperation().walk([&](LocalOpInterface op) {
    return op.isBufferForm() ? WalkResult::advance()
                             : WalkResult(checkFsdpToTiles(op, options));
  });
  RewritePatternSet patterns(&getContext());
  if (tensors.wasInterrupted() ||
      failed(populateFsdpToTilesPatterns(patterns, getOperation(), options)))
    return signalPassFailure();
  applyInOrder(getOperation(), std::move(patterns));
  WalkResult left = getOperation().walk([&](LocalOpInterface op) {
    return WalkResult(checkFsdpToTiles(op, options));
  });
  if (left.wasInterrupted())
    signalPassFailure();
}
