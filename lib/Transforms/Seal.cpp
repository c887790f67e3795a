//===- Seal.cpp - write down which plan was proved ------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A proof holds for the module that was proved. Passes of others may run
// between the proof and the artefact, so the plan's hash is written here and
// computed again where the artefact is declared (fsdp-declare-entries).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Plan.h"
#include "fsdp/Transforms/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SEALPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The first op that a plan cannot have, since it has no buckets yet.
static Operation *findUnitOp(ModuleOp module) {
  Operation *found = nullptr;
  module.walk([&](Operation *op) {
    if (!isa<UnitOpInterface>(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

namespace {
struct SealPass : fsdp::impl::SealPassBase<SealPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StringRef name = FsdpDialect::getPlanHashAttrName();
    if (drop) {
      module->removeAttr(name);
      return markAllAnalysesPreserved();
    }
    if (Operation *op = findUnitOp(module)) {
      op->emitOpError("has no plan yet, expected stage explicit or later: run "
                      "fsdp-expand-units before fsdp-seal");
      return signalPassFailure();
    }
    module->removeAttr(name);
    markAllAnalysesPreserved();
    WalkResult hasBuckets =
        module.walk([](BucketOp) { return WalkResult::interrupt(); });
    if (!hasBuckets.wasInterrupted())
      return;
    SymbolTableCollection symbolTable;
    FailureOr<Plan> plan = Plan::get(module, symbolTable);
    if (failed(plan))
      return signalPassFailure();
    module->setAttr(name, StringAttr::get(&getContext(), plan->getHashText()));
  }
};
} // namespace
