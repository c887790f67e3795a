//===- CollectiveOrder.h - collectives and their order ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ops communicate, between which ranks, and in which order ways of a
// program use communicators.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_COLLECTIVEORDER_H
#define FSDP_ANALYSIS_COLLECTIVEORDER_H

#include "fsdp/Analysis/Uniformity.h"

#include <optional>

namespace mlir::fsdp {

/// An op that meets other ranks: a collective or a unit op. Ops on groups of
/// one rank are none.
struct Collective {
  Operation *op;
  StringRef kind, name; ///< "unit" or "bucket", and its symbol
  /// The unit, or the members of the bucket: what travels, whatever the bucket
  /// is called.
  Attribute payload;
  /// The axes on whose coordinates the ranks that meet differ.
  Dependence group;
  /// The other axes of the grid: control flow may depend on these.
  Dependence tolerated;
  /// What it uses, in order. Equal numbers have equal axes in equal order.
  SmallVector<unsigned, 2> communicators;

  std::string describe() const { return (kind + " '" + name + "'").str(); }
};

/// All collectives below one op, in program order, and the functions that issue
/// them, themselves or through calls.
class Collectives {
public:
  Collectives(Operation *root, const DirectCalls &calls, GridAxes &axes,
              SymbolTableCollection &symbolTable);
  ArrayRef<Collective> getAll() const { return all; }
  /// The first collective that `op` issues, where `op` is one or calls a
  /// function that does; null if there is none.
  const Collective *getIssued(Operation *op) const;
  /// The calls of functions that issue collectives.
  ArrayRef<Operation *> getIssuingCalls() const { return issuingCalls; }
  /// A call by which a function that issues collectives comes back to itself;
  /// null if there is none.
  Operation *findRecursion() const;

  /// Two collectives that one way of control flow issues in this order, and
  /// another way in the opposite order.
  struct Opposite {
    const Collective *first, *second;
    const Collective *otherFirst, *otherSecond;
  };
  /// One collective, and one of its communicators.
  struct Use {
    unsigned communicator;
    const Collective *collective;
  };
  /// Looks for two communicators whose first uses by two ways are in opposite
  /// orders, or two units, or members of buckets, on whatever communicators.
  /// Must not be called where there is recursion.
  std::optional<Opposite> findOpposite(ArrayRef<SmallVector<Block *>> ways);

private:
  void add(Operation *op, GridAxes &axes, SymbolTableCollection &symbolTable);
  void findIssuingFunctions();
  SmallVector<Use> getUses(ArrayRef<Block *> blocks);
  ArrayRef<Use> getUsesOfCall(Operation *callee);

  const DirectCalls &calls;
  std::vector<Collective> all;
  DenseMap<Operation *, unsigned> numbers;     ///< of `all`
  DenseMap<Operation *, unsigned> firstIssued; ///< by a function
  SmallVector<Operation *> issuingCalls;
  SmallVector<std::pair<unsigned, SmallVector<int64_t>>> communicators;
  DenseMap<Operation *, SmallVector<Use>> usesOfFunction;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_COLLECTIVEORDER_H
