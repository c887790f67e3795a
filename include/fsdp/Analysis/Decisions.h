//===- Decisions.h - what passes decided, as remarks and log -*- C++ -*- --===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every decision of a pass, taken or refused, is a remark for the person who
// runs it and an entry of a log that `fsdp-print-plan` writes into its JSON.
// The log is an analysis of the module that no pass invalidates, so the plan
// printed at the end of a pipeline knows what all passes before it decided.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_DECISIONS_H
#define FSDP_ANALYSIS_DECISIONS_H

#include "mlir/IR/Operation.h"
#include "mlir/Pass/AnalysisManager.h"

#include <string>
#include <utility>

namespace mlir::fsdp {

/// One decision. `passed` tells a remark of kind "passed" from "missed".
struct Decision {
  StringRef pass;     ///< the pass's class without "Pass": "FormBuckets"
  bool passed;        ///< false if something was refused or left as it was
  StringRef outcome;  ///< one word: "merged", "fused", "refused", ...
  std::string reason; ///< "size-limit", or a short sentence
  SmallVector<std::string> items; ///< names of buckets, parameters, ...
  SmallVector<std::pair<StringRef, int64_t>> metrics; ///< "bytes", "limit"
};

/// The decisions of all passes that ran on one module, in order. Pass names,
/// outcomes and metric keys are string literals.
class DecisionLog {
public:
  explicit DecisionLog(Operation *) {}
  /// Emits `decision` as a remark at `loc` and keeps it.
  void add(Location loc, Decision decision);
  ArrayRef<Decision> getDecisions() const { return decisions; }
  /// What was decided stays true whatever later passes do.
  bool isInvalidated(const AnalysisManager::PreservedAnalyses &) {
    return false;
  }

private:
  SmallVector<Decision, 0> decisions;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_DECISIONS_H
