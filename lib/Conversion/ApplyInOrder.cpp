//===- ApplyInOrder.cpp - each op once, in the order of the text ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ApplyInOrder.h"

#include "mlir/Rewrite/PatternApplicator.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace {
/// What a pattern makes and erases.
struct Visits : RewriterBase::ForwardingListener {
  Visits() : ForwardingListener(nullptr) {}

  void add(std::vector<Operation *> &list, Operation *op) {
    pending.insert(op);
    list.push_back(op);
  }
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) final {
    if (!previous.isSet()) // made, and not moved
      add(made, op);
  }
  void notifyOperationErased(Operation *op) final { pending.erase(op); }

  std::vector<Operation *> ops, made;
  DenseSet<Operation *> pending; ///< of both lists; others are gone
};
} // namespace

void mlir::fsdp::applyInOrder(Operation *root,
                              const FrozenRewritePatternSet &patterns) {
  Visits visits;
  root->walk([&](Operation *op) {
    if (op != root)
      visits.add(visits.ops, op);
  });
  PatternApplicator applicator(patterns);
  applicator.applyDefaultCostModel();
  PatternRewriter rewriter(root->getContext());
  rewriter.setListener(&visits);
  auto visit = [&](Operation *op) {
    if (!visits.pending.erase(op))
      return;
    rewriter.setInsertionPoint(op);
    // Whoever applies the patterns looks for what is left.
    (void)applicator.matchAndRewrite(op, rewriter);
  };
  for (Operation *op : visits.ops) {
    visit(op);
    for (size_t i = 0; i < visits.made.size(); ++i)
      visit(visits.made[i]);
    visits.made.clear();
  }
}
