//===- FirstUses.h - the order of first uses ---------------------*- C++ -*-==//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether all ranks that use two communicators use the same one first. Ranks
// may take different ways where a condition depends on coordinates; what they
// all decide alike is no difference.
//
// A use has guards: the decisions around it, and the way that each must take.
// Two ranks are in opposite orders if one can use x before y and the other y
// before x, where
//
//   - the guards of the two uses of one rank do not contradict each other;
//   - neither rank must have used the other communicator before, because of a
//   use
//     whose guards hold as well;
//   - decisions that are the same on all ranks are the same for both.
//
// Guards on one condition value are one decision, in several calls too if it is
// made of coordinates and constants alone. Other conditions, `a < b` and
// `b > a`, are not compared: what is not known to exclude each other may both
// happen, and the program is refused.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_FIRSTUSES_H
#define FSDP_ANALYSIS_FIRSTUSES_H

#include "fsdp/Analysis/CollectiveOrder.h"

#include <deque>

namespace mlir::fsdp {

class FirstUses {
public:
  FirstUses(const Collectives &collectives, const DirectCalls &calls,
            Uniformity &uniformity);

  struct Opposite {
    Collectives::Opposite uses;
    /// What decides between the two orders, and on what that depends.
    Operation *decidingOp;
    Dependence decision;
  };
  /// Two communicators that ranks use in opposite orders in `function`, where
  /// no function that it calls has such two. Must not be called where there is
  /// recursion.
  std::optional<Opposite> findOpposite(Operation *function);

private:
  /// That a decision takes one of its ways.
  struct Guard {
    std::pair<const void *, unsigned> decision; ///< who decides, or a number
    const void *way;
    Block *block = nullptr; ///< if the way is to reach a block
    bool isUniform;         ///< the same on all ranks
    bool varies;            ///< between iterations of a loop around
    bool isFixed;           ///< the same in all calls of the function
    Operation *op;
    Dependence dependence;
  };
  struct Use {
    unsigned communicator;
    const Collective *collective;
    SmallVector<Guard, 2> guards;
    SmallVector<const void *, 2> loops; ///< around it
    bool isUniform() const {
      return llvm::all_of(guards, [](const Guard &g) { return g.isUniform; });
    }
  };
  /// A decision and one of its ways.
  using Way = std::pair<std::pair<const void *, unsigned>, const void *>;
  /// The uses of a function, and ways to look for them that do not go through
  /// all: there may be as many as a program has branches.
  struct Uses {
    std::vector<Use> all; ///< in the order of the text
    /// Those of equal communicators, guards and loops have equal hashes.
    DenseMap<unsigned, SmallVector<unsigned, 1>> byHash;
    DenseMap<Way, SmallVector<unsigned, 2>> byInnermostGuard;
    SmallVector<unsigned, 2> unguarded;
  };

  const Uses &getUses(Operation *function);
  void collect(Region &region, const Use &around, Uses &uses);
  void collect(Operation *op, const Use &around, Uses &uses);
  void add(unsigned communicator, const Collective *collective,
           const Use &around, Uses &uses);
  Guard getGuard(Operation *op, Region &region, const Use &around);
  std::optional<Opposite> findOpposite(const Uses &uses, unsigned x,
                                       unsigned y) const;
  using Pair = std::pair<const Use *, const Use *>; ///< of two communicators
  /// The pairs of uses of two communicators that can be a rank's first ones, in
  /// this order, whatever other ranks do. Looked for as far as they are needed.
  class Orders {
  public:
    Orders(const FirstUses &parent, const Uses &uses, unsigned first,
           unsigned second);
    /// Null behind the last one.
    const Pair *get(size_t index);

  private:
    const FirstUses &parent;
    const Uses &uses;
    SmallVector<const Use *> firsts, seconds;
    size_t nextFirst = 0, nextSecond = 0;
    std::deque<Pair> found;
  };
  bool canBoth(const Uses &uses, Pair a, Pair b) const;
  /// `mine.second` may be null, for any use of communicator `other`.
  static bool canBeFirst(const Uses &uses, unsigned other, Pair mine,
                         Pair theirs);
  static bool mustRun(const Use &use, Pair mine, Pair theirs);

  bool agree(const Guard &a, const Guard &b) const;
  bool agree(const Use &a, const Use &b) const;
  static bool mayPrecede(const Use &a, const Use &b);
  static const Guard *getDifference(const Use &a, const Use &b);

  const Collectives &collectives;
  const DirectCalls &calls;
  Uniformity &uniformity;
  /// Ops with collectives in their regions.
  DenseSet<Operation *> around;
  DenseMap<Operation *, Uses> usesOf;
  unsigned numDecisions = 0;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_FIRSTUSES_H
