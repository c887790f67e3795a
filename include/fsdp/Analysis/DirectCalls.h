//===- DirectCalls.h - who calls whom ------------------------------*- C++ -*-
//===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_DIRECTCALLS_H
#define FSDP_ANALYSIS_DIRECTCALLS_H

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

/// Calls by `func.call` between the functions below one op.
class DirectCalls {
public:
  DirectCalls(Operation *root, SymbolTableCollection &symbolTable);
  ArrayRef<Operation *> getFunctions() const { return functions.getArrayRef(); }
  /// The function with a body that `call` runs; null if that is not known.
  Operation *getCallee(Operation *call) const { return callees.lookup(call); }
  ArrayRef<Operation *> getCalls(Operation *function) const;
  /// True if the function may be run from outside, with any arguments.
  bool isEntry(Operation *function) const;
  /// True if an op other than `func.call` names the function, which may then
  /// run anywhere.
  bool hasOtherUses(Operation *function) const {
    return usedOtherwise.contains(function);
  }

private:
  llvm::SetVector<Operation *> functions;
  DenseMap<Operation *, Operation *> callees;
  DenseMap<Operation *, SmallVector<Operation *>> callsOf;
  DenseSet<Operation *> usedOtherwise, exported;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_DIRECTCALLS_H
