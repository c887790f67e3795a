//===- SplitDeallocations.cpp - one buffer per deallocation ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   bufferization.dealloc (%a, %b : ...) if (%own_a, %own_b)
// becomes
//   bufferization.dealloc (%a : ...) if (%own_a)
//   %same = ... %a and %b have one address
//   bufferization.dealloc (%b : ...) if (%own_b and not (%own_a and %same))
//
// A loop that carries several buffers ends in such an op. Upstream lowers one
// of many buffers to tables in memory and a call of a helper function. Tables
// that are allocated like other buffers would be the device's, on which the
// host must not write; comparing addresses needs none. Buffers of which the
// analysis knows that they come from different allocations are not compared, so
// that there are as many comparisons as buffers that one name may stand for.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SPLITDEALLOCATIONSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using bufferization::DeallocOp;

namespace {
class Splitter {
public:
  explicit Splitter(ModuleOp module) : origins(module) {}
  void split(DeallocOp op);

private:
  bool mayBeSame(Value lhs, Value rhs) {
    return origins.isSameAllocation(lhs, rhs).value_or(true);
  }
  BufferOriginAnalysis origins;
};
} // namespace

void Splitter::split(DeallocOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value no = arith::ConstantIntOp::create(b, 0, 1);
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  SmallVector<Value> updated(op.getRetained().size(), no);
  SmallVector<Value> addresses(op.getMemrefs().size());
  auto getAddress = [&](unsigned index) {
    if (!addresses[index])
      addresses[index] = memref::ExtractAlignedPointerAsIndexOp::create(
          b, op.getMemrefs()[index]);
    return addresses[index];
  };
  for (auto [index, buffer, owned] :
       llvm::enumerate(op.getMemrefs(), op.getConditions())) {
    Value condition = owned;
    for (unsigned other = 0; other < index; ++other) {
      if (!mayBeSame(op.getMemrefs()[other], buffer))
        continue;
      Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                         getAddress(other), getAddress(index));
      Value done = arith::AndIOp::create(b, op.getConditions()[other], same);
      condition = arith::AndIOp::create(b, condition,
                                        arith::XOrIOp::create(b, done, yes));
    }
    SmallVector<Value> retained;
    SmallVector<unsigned> places;
    for (auto [place, value] : llvm::enumerate(op.getRetained())) {
      if (!mayBeSame(value, buffer))
        continue;
      retained.push_back(value);
      places.push_back(place);
    }
    auto single = DeallocOp::create(b, ValueRange{buffer},
                                    ValueRange{condition}, retained);
    for (auto [place, isOwned] :
         llvm::zip_equal(places, single.getUpdatedConditions()))
      updated[place] =
          updated[place] == no
              ? Value(isOwned)
              : Value(arith::OrIOp::create(b, updated[place], isOwned));
  }
  op->replaceAllUsesWith(updated);
  op->erase();
}

namespace {
struct SplitDeallocationsPass
    : fsdp::impl::SplitDeallocationsPassBase<SplitDeallocationsPass> {
  void runOnOperation() override {
    SmallVector<DeallocOp> ops;
    getOperation()->walk([&](DeallocOp op) {
      if (op.getMemrefs().size() > 1)
        ops.push_back(op);
    });
    if (ops.empty())
      return markAllAnalysesPreserved();
    Splitter splitter(getOperation());
    llvm::for_each(ops, [&](DeallocOp op) { splitter.split(op); });
  }
};
} // namespace
