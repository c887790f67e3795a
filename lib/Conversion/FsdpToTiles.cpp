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
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"

#include "TileBody.h"
#include "TilePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
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
/// Lowers the local ops of one module.
class TileLowering {
public:
  TileLowering(ModuleOp module, bool printPlan)
      : module(module), printPlan(printPlan) {}

  LogicalResult lower(BucketUserOpInterface op);

private:
  LLVM::LLVMFuncOp getOrCreateFunction(const TileFunction &function);
  LLVM::GlobalOp createTable(BucketUserOpInterface op, const TilePlan &plan);

  ModuleOp module;
  bool printPlan;
  SymbolTableCollection symbolTables;
  llvm::StringMap<LLVM::LLVMFuncOp> functions; ///< by name, shared by ops
};

struct FsdpToTilesPass : fsdp::impl::FsdpToTilesPassBase<FsdpToTilesPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The address of the first element of `memref`.
static Value getPointer(ImplicitLocOpBuilder &b, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  if (!type.getLayout().isIdentity()) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
    Value bytes =
        arith::ConstantIndexOp::create(b, getDtypeBytes(type.getElementType()));
    Value offset = arith::MulIOp::create(b, metadata.getOffset(), bytes);
    address = arith::AddIOp::create(b, address, offset);
  }
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                  integer);
}

/// Gives `op` densely packed buffers where it has others: a copy of each that
/// it reads, and one that is copied back for each that it writes. Bufferization
/// of a program that hands us slices of larger tensors leads here.
static void makeContiguous(BucketUserOpInterface op) {
  OperandRange outputs = op.getOutputOperands();
  unsigned firstOutput = outputs.getBeginOperandIndex();
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = cast<MemRefType>(operand.get().getType());
    if (memref::isStaticShapeAndContiguousRowMajor(type))
      continue;
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value original = operand.get();
    auto denseType = MemRefType::get(type.getShape(), type.getElementType());
    Value dense = memref::AllocOp::create(b, denseType);
    bool isOutput = operand.getOperandNumber() >= firstOutput &&
                    operand.getOperandNumber() < firstOutput + outputs.size();
    if (!isOutput)
      memref::CopyOp::create(b, original, dense);
    operand.set(dense);
    b.setInsertionPointAfter(op);
    if (isOutput)
      memref::CopyOp::create(b, dense, original);
    memref::DeallocOp::create(b, dense);
  }
}

/// An array of the addresses of `values`, in the frame of `function`, so that
/// a loop around the op does not grow the stack.
static Value createPointerArray(ImplicitLocOpBuilder &b,
                                FunctionOpInterface function,
                                ValueRange values) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (values.empty())
    return LLVM::ZeroOp::create(b, pointer);
  Value array;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    Value count = arith::ConstantOp::create(
        b, b.getI64IntegerAttr(static_cast<int64_t>(values.size())));
    array = LLVM::AllocaOp::create(b, pointer, pointer, count);
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    Value slot = LLVM::GEPOp::create(
        b, pointer, pointer, array,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(b, getPointer(b, value), slot);
  }
  return array;
}

LLVM::LLVMFuncOp
TileLowering::getOrCreateFunction(const TileFunction &function) {
  LLVM::LLVMFuncOp &known = functions[function.getName()];
  if (!known) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    known = function.build(builder, module.getLoc());
    symbolTables.getSymbolTable(module).insert(known);
  }
  return known;
}

/// The records of `plan`, as a constant of the module.
LLVM::GlobalOp TileLowering::createTable(BucketUserOpInterface op,
                                         const TilePlan &plan) {
  SmallVector<int32_t, 0> words;
  words.reserve(plan.tiles.size() * kTileWords);
  for (const Tile &tile : plan.tiles)
    llvm::append_range(words, tile.encode());
  ImplicitLocOpBuilder b(op.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI32Type(), words.size());
  auto value = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(words.size())},
                            b.getI32Type()),
      ArrayRef<int32_t>(words));
  std::string name = (op.getBucketAttr().getValue() + "_" +
                      op->getName().stripDialect() + "_tiles")
                         .str();
  auto table = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                      LLVM::Linkage::Internal, name, value,
                                      /*alignment=*/32);
  symbolTables.getSymbolTable(module).insert(table);
  return table;
}

LogicalResult TileLowering::lower(BucketUserOpInterface op) {
  FailureOr<ResolvedBucket> bucket =
      ResolvedBucket::get(lookupBucket(op, symbolTables), symbolTables);
  if (failed(bucket))
    return op.emitOpError("cannot be lowered: its bucket ")
           << op.getBucketAttr() << " does not verify";
  auto parent = op->getParentOfType<FunctionOpInterface>();
  if (!parent)
    return op.emitOpError("cannot be lowered: it stands in no function");
  FailureOr<TilePlan> plan = TilePlan::get(op, *bucket);
  if (failed(plan))
    return failure();
  if (printPlan)
    plan->print(llvm::errs(), *bucket);
  if (plan->tiles.empty()) { // no member has an element
    op->erase();
    return success();
  }

  makeContiguous(op);
  std::optional<APFloat> divide;
  ValueRange old;
  if (auto chunkCat = dyn_cast<ChunkCatOp>(op.getOperation())) {
    divide = chunkCat.getDivide();
  } else if (auto split = dyn_cast<SplitOp>(op.getOperation())) {
    divide = split.getDivide();
    old = split.getAdd();
  }
  TileFunction function = {plan->packs, plan->pairs, std::nullopt,
                           !old.empty()};
  if (divide)
    function.divide = divide->convertToDouble();
  LLVM::LLVMFuncOp callee = getOrCreateFunction(function);
  LLVM::GlobalOp table = createTable(op, *plan);

  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value members = createPointerArray(b, parent, op.getMemberValues());
  Value oldShards = createPointerArray(b, parent, old);
  Value rows = getPointer(b, op.getBucketValues().front().first);
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
                         ValueRange{members, oldShards, rows, from,
                                    constant(count), constant(plan->rows),
                                    constant(plan->rowBytes),
                                    constant(plan->granule), order});
  };
  int64_t contiguous = plan->numContiguous;
  call(0, contiguous, /*rowsOutside=*/true);
  call(contiguous, plan->tiles.size() - contiguous, /*rowsOutside=*/false);
  op->erase();
  return success();
}

void FsdpToTilesPass::runOnOperation() {
  SmallVector<BucketUserOpInterface> ops;
  WalkResult walk = getOperation().walk([&](BucketUserOpInterface op) {
    if (isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op.getOperation()))
      return WalkResult::advance();
    if (!op.isBufferForm()) {
      op.emitOpError("is on tensors, expected the buffer form: run "
                     "one-shot-bufferize first");
      return WalkResult::interrupt();
    }
    ops.push_back(op);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return signalPassFailure();
  TileLowering lowering(getOperation(), printPlan);
  for (BucketUserOpInterface op : ops)
    if (failed(lowering.lower(op)))
      return signalPassFailure();
}
