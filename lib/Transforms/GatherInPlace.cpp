//===- GatherInPlace.cpp - pack into the gather's own row -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %f = memref.alloc() : memref<LxT>
//   fsdp.concat %a, %b into @p outs(%f : memref<LxT>)
//   %g = memref.alloc() : memref<WxLxT>
//   fsdp.all_gather %f of @p outs(%g : memref<WxLxT>)
// becomes
//   %g = memref.alloc() : memref<WxLxT>
//   %r = ... this rank's place in the shard group
//   %f = memref.subview %g[%r, 0] [1, L] [1, 1]
//   fsdp.concat %a, %b into @p outs(%f : memref<LxT, strided<[1], offset: ?>>)
//   fsdp.all_gather %f of @p outs(%g : memref<WxLxT>)
//
// The communicator copies a rank's own row to where it lies already, and skips
// it; and the flat buffer is gone.
//
//===----------------------------------------------------------------------===//

#include "GatherInPlace.h"

#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_GATHERINPLACEPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A gather and what decides whether it can work in place.
struct Candidate {
  AllGatherOp gather;
  memref::AllocOp flat;
  ConcatOp concat;
  memref::AllocOp lateOutput; ///< of the gather, if it must move up
  FailureOr<ResolvedBucket> bucket;
  std::string reason; ///< why not, or empty
};
} // namespace

/// Finds the producer of the gather's input; returns why there is none to move,
/// or an empty string.
static std::string findConcat(Candidate &candidate) {
  AllGatherOp gather = candidate.gather;
  candidate.flat = gather.getFlat().getDefiningOp<memref::AllocOp>();
  if (!candidate.flat)
    return "the flat shard is not a buffer of its own";
  if (candidate.flat.getType().getNumElements() == 0)
    return "the flat shard is empty"; // a row without elements has no subview
  for (Operation *user : candidate.flat->getUsers()) {
    if (user == gather || isa<memref::DeallocOp>(user))
      continue;
    auto concat = dyn_cast<ConcatOp>(user);
    if (!concat || candidate.concat || concat.getOutput() != gather.getFlat())
      return "the flat shard has another use";
    candidate.concat = concat;
  }
  if (!candidate.concat)
    return "the flat shard is not packed by fsdp.concat";
  if (candidate.concat->getBlock() != gather->getBlock() ||
      !candidate.concat->isBeforeInBlock(gather))
    return "the flat shard is packed in another block";
  return {};
}

/// Returns why the gather's output cannot be written early, or an empty string.
static std::string whyOutputIsBusy(AllGatherOp gather) {
  Value output = gather.getOutput();
  if (!isa<BlockArgument>(output) && !output.getDefiningOp<memref::AllocOp>())
    return "the gathered buffer is a view of another one";
  if (!cast<MemRefType>(output.getType()).getLayout().isIdentity())
    return "the gathered buffer is strided";
  for (Operation *user : output.getUsers()) {
    if (user == gather)
      continue;
    Operation *ancestor = gather->getBlock()->findAncestorOpInBlock(*user);
    if (!ancestor || ancestor->isBeforeInBlock(gather))
      return "the gathered buffer is used before";
  }
  return {};
}

std::string mlir::fsdp::whyNotInPlace(AllGatherOp gather) {
  Candidate candidate;
  candidate.gather = gather;
  std::string reason = findConcat(candidate);
  return reason.empty() ? whyOutputIsBusy(gather) : reason;
}

/// This rank's place in the group, numbered row major over the axes as listed.
static OpFoldResult createGroupRank(OpBuilder &builder, Location loc,
                                    UnitGroup &group) {
  SmallVector<Value> coordinates =
      group.gridOp.createCoordinates(builder, loc, group.shardAxes);
  if (coordinates.empty())
    return builder.getIndexAttr(0);
  Value rank = coordinates.front();
  for (size_t i = 1; i < coordinates.size(); ++i) {
    Value size = arith::ConstantIndexOp::create(
        builder, loc, group.grid.shape[group.shardAxes[i]]);
    rank = arith::MulIOp::create(builder, loc, rank, size);
    rank = arith::AddIOp::create(builder, loc, rank, coordinates[i]);
  }
  return rank;
}

/// Only looks, so that the order of the ops in a block is computed once.
static Candidate inspect(AllGatherOp gather,
                         SymbolTableCollection &symbolTable) {
  Candidate candidate;
  candidate.gather = gather;
  candidate.bucket =
      ResolvedBucket::get(lookupBucket(gather, symbolTable), symbolTable);
  candidate.reason = findConcat(candidate);
  if (candidate.reason.empty())
    candidate.reason = whyOutputIsBusy(gather);
  if (!candidate.reason.empty())
    return candidate;
  auto output = gather.getOutput().getDefiningOp<memref::AllocOp>();
  ConcatOp concat = candidate.concat;
  if (output && output->getBlock() == concat->getBlock() &&
      concat->isBeforeInBlock(output))
    candidate.lateOutput = output;
  return candidate;
}

static void packIntoOwnRow(Candidate &candidate) {
  memref::AllocOp flat = candidate.flat;
  Value output = candidate.gather.getOutput();
  if (candidate.lateOutput)
    candidate.lateOutput->moveBefore(candidate.concat);

  OpBuilder builder(candidate.concat);
  Location loc = candidate.gather.getLoc();
  OpFoldResult rank = createGroupRank(builder, loc, candidate.bucket->group);
  int64_t elements = flat.getType().getDimSize(0);
  SmallVector<OpFoldResult> offsets{rank, builder.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes{builder.getIndexAttr(1),
                                  builder.getIndexAttr(elements)};
  SmallVector<OpFoldResult> strides(2, builder.getIndexAttr(1));
  MemRefType rowType = memref::SubViewOp::inferRankReducedResultType(
      {elements}, cast<MemRefType>(output.getType()), offsets, sizes, strides);
  Value row = memref::SubViewOp::create(builder, loc, rowType, output, offsets,
                                        sizes, strides);
  for (Operation *user : llvm::make_early_inc_range(flat->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  flat.getResult().replaceAllUsesWith(row);
  flat.erase();
}

namespace {
struct GatherInPlacePass
    : fsdp::impl::GatherInPlacePassBase<GatherInPlacePass> {
  void runOnOperation() override {
    auto &log = getAnalysis<DecisionLog>();
    SymbolTableCollection symbolTable;
    SmallVector<Candidate, 0> candidates;
    getOperation()->walk([&](AllGatherOp gather) {
      if (gather.isBufferForm() &&
          !gather.getFlat().getDefiningOp<memref::SubViewOp>())
        candidates.push_back(inspect(gather, symbolTable));
    });
    for (Candidate &candidate : candidates) {
      bool passed = candidate.reason.empty();
      Location loc = candidate.gather.getLoc();
      BucketOp bucket = candidate.bucket->bucket;
      if (passed)
        packIntoOwnRow(candidate);
      log.add(loc, {"GatherInPlace",
                    passed,
                    passed ? "in-place" : "refused",
                    passed ? "packed into its own row" : candidate.reason,
                    {bucket.getSymName().str()},
                    {{"bytes", candidate.bucket->layout.rowBytes}}});
    }
  }
};
} // namespace
