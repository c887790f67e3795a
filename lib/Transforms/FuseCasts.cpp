//===- FuseCasts.cpp - fold casts into the local ops ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
//   %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
// becomes
//   %b = fsdp.chunk_cat %g into @r : (tensor<8x3xbf16>) -> tensor<4x32xf32>
//
//   %s = fsdp.split %f of @r : (tensor<32xf32>) -> tensor<2x3xf32>
//   %c = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
// becomes
//   %c = fsdp.split %f of @r : (tensor<32xf32>) -> tensor<2x3xbf16>
//
// and likewise for concat and unchunk. The tensor between cast and local op, a
// whole parameter or gradient, is then never written to memory. Which casts may
// go is decided in CastFolding.h; here they go, one after the other until none
// is left beside the op. No bit of any result changes.
//
// A cast in front of a local op that someone else reads stays for that reader.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/CastFolding.h"
#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FUSECASTSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static int64_t getBytes(Type tensor) {
  return getTensorBytes(cast<RankedTensorType>(tensor));
}

namespace {
/// Folds the casts beside the local ops of a module.
class CastFuser {
public:
  explicit CastFuser(DecisionLog &log) : log(log) {}

  /// Folds all casts beside `op` that may be, and logs what was done.
  void fuse(LocalOpInterface op, const ResolvedBucket &bucket);
  /// Logs the casts that were folded but have other readers. To be called at
  /// the end: some other local op may have been the last reader.
  void reportKept();

private:
  /// Makes `op` read what the cast reads, and erases casts that are now dead.
  /// Returns the bytes of the tensors that no longer exist.
  int64_t foldOperand(Operation *op, unsigned index, const AdjacentCast &cast);
  /// Makes result `index` what the casts of it are, and erases them. Returns
  /// the bytes of the tensor that no longer exists.
  int64_t foldResult(Operation *op, unsigned index, const AdjacentCast &cast);

  DecisionLog &log;
  /// Casts that were folded into a packing op, each with the first parameter's
  /// name, and which of all casts are gone.
  llvm::MapVector<Operation *, std::string> folded;
  DenseSet<Operation *> erased;
};
} // namespace

int64_t CastFuser::foldOperand(Operation *op, unsigned index,
                               const AdjacentCast &cast) {
  // In concat and chunk_cat the members' operands come first.
  op->setOperand(index, cast.source);
  int64_t bytes = 0;
  // A pair of casts may die together, the later one first.
  for (Operation *dead = cast.casts.front(); dead && dead->use_empty();) {
    Value input = dead->getOperand(0);
    bytes = addSizes(bytes, getBytes(dead->getResult(0).getType()));
    erased.insert(dead);
    dead->erase();
    dead = input == cast.source ? nullptr : input.getDefiningOp();
  }
  return bytes;
}

int64_t CastFuser::foldResult(Operation *op, unsigned index,
                              const AdjacentCast &cast) {
  OpResult result = op->getResult(index);
  int64_t bytes = getBytes(result.getType());
  result.setType(cast.type);
  for (Operation *folded : cast.casts) {
    folded->getResult(0).replaceAllUsesWith(result);
    folded->erase();
  }
  return bytes;
}

void CastFuser::fuse(LocalOpInterface op, const ResolvedBucket &bucket) {
  BucketOp symbol = bucket.bucket;
  std::string where = llvm::formatv(
      "{0} of bucket '{1}'", op->getName().stripDialect(), symbol.getSymName());
  bool isPack = op.packs();
  SmallVector<std::string> fused;
  int64_t bytes = 0;
  for (auto [index, member] : llvm::enumerate(bucket.members)) {
    ParamOp param = member.param;
    std::string name = param.getSymName().str();
    bool changed = false;
    while (std::optional<AdjacentCast> cast = getAdjacentCast(
               op, isPack ? op->getOperand(index) : op->getResult(index),
               member)) {
      Operation *first = cast->casts.front();
      if (!cast->isFoldable()) {
        log.add(first->getLoc(),
                {"FuseCasts",
                 /*passed=*/false,
                 "refused",
                 "the cast stays beside " + where + ": " + cast->whyKeep,
                 {name},
                 {}});
        break;
      }
      changed = true;
      if (isPack) {
        folded.insert({first, name});
        bytes += foldOperand(op, index, *cast);
      } else {
        bytes += foldResult(op, index, *cast);
      }
    }
    if (changed)
      fused.push_back(name);
  }
  if (!fused.empty())
    log.add(op->getLoc(), {"FuseCasts",
                           /*passed=*/true,
                           "fused",
                           "casts folded into " + where,
                           std::move(fused),
                           {{"bytes", bytes}}});
}

void CastFuser::reportKept() {
  for (auto &[cast, param] : folded) {
    if (erased.contains(cast))
      continue;
    log.add(cast->getLoc(),
            {"FuseCasts",
             /*passed=*/false,
             "kept",
             "the cast is folded, but stays for its other use",
             {param},
             {{"bytes", getBytes(cast->getResult(0).getType())}}});
  }
}

namespace {
struct FuseCastsPass : fsdp::impl::FuseCastsPassBase<FuseCastsPass> {
  using Base::Base;

  void runOnOperation() override {
    // The casts beside an op are erased while it is visited, so collect first.
    SmallVector<LocalOpInterface> localOps;
    getOperation().walk([&](LocalOpInterface op) {
      if (!op.isBufferForm())
        localOps.push_back(op);
    });
    SymbolTableCollection symbolTable;
    CastFuser fuser(getAnalysis<DecisionLog>());
    for (LocalOpInterface op : localOps) {
      // Everything that verifies resolves.
      FailureOr<ResolvedBucket> bucket =
          ResolvedBucket::get(lookupBucket(op, symbolTable), symbolTable);
      fuser.fuse(op, *bucket);
    }
    fuser.reportKept();
  }
};
} // namespace
