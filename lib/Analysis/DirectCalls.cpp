//===- DirectCalls.cpp - who calls whom --------------------------------------
//===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/DirectCalls.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::fsdp;

DirectCalls::DirectCalls(Operation *root, SymbolTableCollection &symbolTable) {
  auto markUsed = [&](Operation *user, SymbolRefAttr name) {
    Operation *function = symbolTable.lookupNearestSymbolFrom(user, name);
    if (!isa_and_nonnull<FunctionOpInterface>(function))
      return;
    // A use outside of functions, in a list of entries for example, does not
    // run anything by itself.
    if (user->getParentOfType<FunctionOpInterface>())
      usedOtherwise.insert(function);
    else
      exported.insert(function);
  };
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<FunctionOpInterface>(op)) {
      functions.insert(op);
      return;
    }
    // Ops of ours name units, parameters and buckets.
    if (isa_and_nonnull<FsdpDialect>(op->getDialect()))
      return;
    SymbolRefAttr called;
    // Other dialects' calls may run their callee later or elsewhere.
    if (auto call = dyn_cast<func::CallOp>(op)) {
      called = call.getCalleeAttr();
      auto callee = dyn_cast_or_null<FunctionOpInterface>(
          call.resolveCallableInTable(&symbolTable));
      if (callee && !callee.isExternal()) {
        callees[op] = callee;
        callsOf[callee].push_back(op);
      } else {
        called = {};
      }
    }
    for (NamedAttribute attribute : op->getAttrs())
      attribute.getValue().walk([&](SymbolRefAttr name) {
        if (name != called)
          markUsed(op, name);
      });
  });
}

ArrayRef<Operation *> DirectCalls::getCalls(Operation *function) const {
  auto it = callsOf.find(function);
  return it == callsOf.end() ? ArrayRef<Operation *>() : it->second;
}

bool DirectCalls::isEntry(Operation *function) const {
  auto symbol = dyn_cast<SymbolOpInterface>(function);
  return !symbol || !symbol.isPrivate() || exported.contains(function) ||
         hasOtherUses(function) || getCalls(function).empty();
}
