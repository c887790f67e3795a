//===- Decisions.cpp - what passes decided, as remarks and log ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Decisions.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::fsdp;

void DecisionLog::add(Location loc, Decision decision) {
  auto options = remark::RemarkOpts::name(decision.pass).category("fsdp");
  auto emit = [&](remark::detail::InFlightRemark remark) {
    if (!remark)
      return;
    remark << remark::metric("Reason", StringRef(decision.reason));
    // Arguments are printed in the order of their keys; this one comes last.
    if (!decision.items.empty())
      remark << remark::metric("names", llvm::join(decision.items, ","));
    for (auto [key, value] : decision.metrics)
      remark << remark::metric(key, value);
  };
  if (decision.passed)
    emit(remark::passed(loc, options));
  else
    emit(remark::missed(loc, options));
  decisions.push_back(std::move(decision));
}
