//===- PrintPlan.cpp - print what a module will communicate and move ------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints the plan to standard output, text or JSON. In JSON stands also what
// the passes before it decided, if they ran on the same module in one pipeline.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Plan.h"
#include "fsdp/Transforms/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PRINTPLANPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct PrintPlanPass : mlir::fsdp::impl::PrintPlanPassBase<PrintPlanPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    if (format == "text" || format == "json")
      return success();
    return emitError(UnknownLoc::get(context))
           << getArgument() << ": option format is '" << format
           << "', expected text or json";
  }

  void runOnOperation() override {
    SymbolTableCollection symbolTables;
    ArrayRef<Decision> decisions;
    if (auto log = getCachedAnalysis<DecisionLog>())
      decisions = log->get().getDecisions();
    FailureOr<Plan> plan = Plan::get(getOperation(), symbolTables, decisions);
    if (failed(plan))
      return signalPassFailure();
    if (format == "json")
      writeJSON(toJSON(*plan), llvm::outs());
    else
      printText(*plan, llvm::outs());
    markAllAnalysesPreserved();
  }
};
} // namespace
