//===- FirstUses.cpp - the order of first uses ----------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/FirstUses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

FirstUses::FirstUses(const Collectives &collectives, const DirectCalls &calls,
                     Uniformity &uniformity)
    : collectives(collectives), calls(calls), uniformity(uniformity) {
  auto noteAround = [&](Operation *op) {
    while ((op = op->getParentOp()) && around.insert(op).second)
      ;
  };
  for (const Collective &collective : collectives.getAll())
    noteAround(collective.op);
  for (Operation *call : collectives.getIssuingCalls())
    noteAround(call);
}

//===----------------------------------------------------------------------===//
// Uses and their guards
//===----------------------------------------------------------------------===//

const FirstUses::Uses &FirstUses::getUses(Operation *function) {
  if (auto it = usesOf.find(function); it != usesOf.end())
    return it->second;
  Uses uses;
  collect(cast<FunctionOpInterface>(function).getFunctionBody(), Use(), uses);
  return usesOf[function] = std::move(uses);
}

void FirstUses::add(unsigned communicator, const Collective *collective,
                    const Use &around, Uses &uses) {
  Use use = around;
  use.communicator = communicator;
  use.collective = collective;
  // What is under the same guards runs whenever an earlier one does.
  auto sameGuards = [](ArrayRef<Guard> a, ArrayRef<Guard> b) {
    return llvm::equal(a, b, [](const Guard &x, const Guard &y) {
      return x.decision == y.decision && x.way == y.way;
    });
  };
  llvm::hash_code hash = llvm::hash_combine(
      communicator,
      llvm::hash_combine_range(use.loops.begin(), use.loops.end()));
  for (const Guard &guard : use.guards)
    hash = llvm::hash_combine(hash, guard.decision, guard.way);
  auto &equal = uses.byHash[static_cast<unsigned>(size_t(hash))];
  if (llvm::any_of(equal, [&](unsigned number) {
        const Use &other = uses.all[number];
        return other.communicator == communicator && other.loops == use.loops &&
               sameGuards(other.guards, use.guards);
      }))
    return;
  unsigned number = uses.all.size();
  equal.push_back(number);
  if (use.guards.empty())
    uses.unguarded.push_back(number);
  else
    uses.byInnermostGuard[{use.guards.back().decision, use.guards.back().way}]
        .push_back(number);
  uses.all.push_back(std::move(use));
}

/// True if what decides at `op` may be another value in another iteration of a
/// loop around it, which `loops` says whether there is.
static bool variesInLoop(Operation *op, bool isInLoop) {
  if (!isInLoop)
    return false;
  if (isa<scf::WhileOp>(op))
    return true;
  SmallVector<Value> deciders = Uniformity::getDeciders(op);
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop))
      for (Value decider : deciders)
        if (loop->isAncestor(decider.getParentBlock()->getParentOp()))
          return true;
  return false;
}

/// True if the operands that decide at `op` are the same on a rank whenever the
/// function runs: made of coordinates and constants.
static bool isFixed(Operation *op) {
  SmallVector<Value> values = Uniformity::getDeciders(op);
  DenseSet<Value> seen(values.begin(), values.end());
  while (!values.empty()) {
    Operation *source = values.pop_back_val().getDefiningOp();
    if (!source || source->getNumRegions() || isa<CallOpInterface>(source) ||
        !isMemoryEffectFree(source))
      return false;
    for (Value operand : source->getOperands())
      if (seen.insert(operand).second)
        values.push_back(operand);
  }
  return true;
}

FirstUses::Guard FirstUses::getGuard(Operation *op, Region &region,
                                     const Use &around) {
  Dependence dependence = uniformity.getDecision(op);
  bool isIf = isa<scf::IfOp>(op);
  const void *decider =
      isIf ? cast<scf::IfOp>(op).getCondition().getAsOpaquePointer() : op;
  // The body of a loop is one way, to run it; the branches of others are many.
  size_t way = isa<LoopLikeOpInterface>(op) ? 0 : region.getRegionNumber();
  return Guard{{decider, 0},
               reinterpret_cast<const void *>(way),
               /*block=*/nullptr,
               dependence == 0,
               variesInLoop(op, !around.loops.empty()),
               isFixed(op),
               op,
               dependence};
}

void FirstUses::collect(Region &region, const Use &outside, Uses &uses) {
  if (region.empty()) // no `else`
    return;
  for (Block *block : llvm::ReversePostOrderTraversal<Region *>(&region)) {
    if (llvm::none_of(*block, [&](Operation &op) {
          return collectives.getIssued(&op) || around.contains(&op);
        }))
      continue;
    Use here = outside;
    bool isInLoop = uniformity.isInLoopOfBlocks(block);
    if (isInLoop)
      here.loops.push_back(&region);
    SmallVector<Operation *> branches = uniformity.getBranches(block);
    if (!branches.empty()) {
      Dependence dependence = 0;
      for (Operation *branch : branches)
        dependence |= uniformity.getDecision(branch);
      here.guards.push_back(
          {{&region, 0},
           block,
           block,
           dependence == 0,
           !here.loops.empty(),
           here.loops.empty() && llvm::all_of(branches, isFixed),
           branches.front(),
           dependence});
    }
    for (Operation &op : *block)
      collect(&op, here, uses);
  }
}

void FirstUses::collect(Operation *op, const Use &here, Uses &uses) {
  if (const Collective *issued = collectives.getIssued(op)) {
    if (issued->op == op) {
      for (unsigned communicator : issued->communicators)
        add(communicator, issued, here, uses);
      return;
    }
    // What guards a use in a function is another decision in each call.
    DenseMap<std::pair<const void *, unsigned>, unsigned> inThisCall;
    for (const Use &inner : getUses(calls.getCallee(op)).all) {
      Use use = here;
      for (Guard guard : inner.guards) {
        if (!guard.isFixed) {
          auto [it, isNew] =
              inThisCall.try_emplace(guard.decision, numDecisions + 1);
          numDecisions += isNew;
          guard.decision = {nullptr, it->second};
          guard.varies |= !here.loops.empty();
        }
        use.guards.push_back(guard);
      }
      llvm::append_range(use.loops, inner.loops);
      add(inner.communicator, inner.collective, use, uses);
    }
    return;
  }
  if (!around.contains(op))
    return;
  for (Region &region : op->getRegions()) {
    Use inside = here;
    // The first region of a `while` runs at least once.
    bool isDecided = !Uniformity::getDeciders(op).empty() &&
                     !(isa<scf::WhileOp>(op) && region.getRegionNumber() == 0);
    if (isDecided)
      inside.guards.push_back(getGuard(op, region, here));
    if (isa<LoopLikeOpInterface>(op))
      inside.loops.push_back(op);
    collect(region, inside, uses);
  }
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

bool FirstUses::agree(const Guard &a, const Guard &b) const {
  if (a.decision != b.decision || a.way == b.way || a.varies || b.varies)
    return true;
  return a.block && (uniformity.reaches(a.block, b.block) ||
                     uniformity.reaches(b.block, a.block));
}

bool FirstUses::agree(const Use &a, const Use &b) const {
  return llvm::all_of(a.guards, [&](const Guard &x) {
    return llvm::all_of(b.guards, [&](const Guard &y) { return agree(x, y); });
  });
}

/// A decision that is not the same on all ranks and that leads to one of two
/// uses, if possible not to both.
const FirstUses::Guard *FirstUses::getDifference(const Use &a, const Use &b) {
  const Guard *shared = nullptr;
  for (auto [mine, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const Guard &guard : mine->guards) {
      if (guard.isUniform)
        continue;
      if (llvm::none_of(other->guards, [&](const Guard &g) {
            return g.decision == guard.decision && g.way == guard.way;
          }))
        return &guard;
      shared = &guard;
    }
  return shared;
}

/// True if `a` may run before `b`: where it stands before it, or in a loop
/// around both of which an iteration may leave out `b`.
bool FirstUses::mayPrecede(const Use &a, const Use &b) {
  // Uses stand in one array, in the order of the text.
  if (&a < &b)
    return true;
  bool mayBeLeftOut =
      llvm::any_of(b.guards, [](const Guard &guard) { return guard.varies; });
  return mayBeLeftOut && llvm::any_of(a.loops, [&](const void *loop) {
           return llvm::is_contained(b.loops, loop);
         });
}

/// True if `use` runs on the rank that runs `mine`, where another one runs
/// `theirs`.
bool FirstUses::mustRun(const Use &use, Pair mine, Pair theirs) {
  auto holds = [](const Use *other, const Guard &guard, bool uniformOnly) {
    return other && llvm::any_of(other->guards, [&](const Guard &g) {
             return g.decision == guard.decision && g.way == guard.way &&
                    (g.isUniform || !uniformOnly);
           });
  };
  return llvm::all_of(use.guards, [&](const Guard &guard) {
    return !guard.varies && (holds(mine.first, guard, false) ||
                             holds(mine.second, guard, false) ||
                             holds(theirs.first, guard, true) ||
                             holds(theirs.second, guard, true));
  });
}

/// True if no use of one of the two communicators must run before the first of
/// `mine`.
bool FirstUses::canBeFirst(const Uses &uses, unsigned other, Pair mine,
                           Pair theirs) {
  auto isBefore = [&](unsigned number) {
    const Use &use = uses.all[number];
    return (use.communicator == mine.first->communicator ||
            use.communicator == other) &&
           &use != mine.first && !mayPrecede(*mine.first, use) &&
           mustRun(use, mine, theirs);
  };
  if (llvm::any_of(uses.unguarded, isBefore))
    return false;
  // What must run has its innermost guard in common with one of these.
  for (const Use *use :
       {mine.first, mine.second, theirs.first, theirs.second}) {
    if (!use)
      continue;
    for (const Guard &guard : use->guards) {
      auto it = uses.byInnermostGuard.find({guard.decision, guard.way});
      if (it != uses.byInnermostGuard.end() &&
          llvm::any_of(it->second, isBefore))
        return false;
    }
  }
  return true;
}

FirstUses::Orders::Orders(const FirstUses &parent, const Uses &uses,
                          unsigned first, unsigned second)
    : parent(parent), uses(uses) {
  for (const Use &use : uses.all) {
    if (use.communicator == second)
      seconds.push_back(&use);
    // In most programs nothing is left here of one of the two.
    if (use.communicator == first &&
        canBeFirst(uses, second, {&use, nullptr}, {}))
      firsts.push_back(&use);
  }
}

const FirstUses::Pair *FirstUses::Orders::get(size_t index) {
  while (found.size() <= index) {
    if (nextSecond == seconds.size()) {
      nextSecond = 0;
      ++nextFirst;
    }
    if (nextFirst >= firsts.size() || seconds.empty())
      return nullptr;
    const Use &a = *firsts[nextFirst], &b = *seconds[nextSecond++];
    if (mayPrecede(a, b) && parent.agree(a, b) &&
        canBeFirst(uses, b.communicator, {&a, &b}, {}))
      found.push_back({&a, &b});
  }
  return &found[index];
}

/// True if two ranks can run `a` and `b`: they agree in what all decide alike.
bool FirstUses::canBoth(const Uses &uses, Pair a, Pair b) const {
  // What all ranks decide alike they issue at one place in their order.
  if (a.first->isUniform() && b.first->isUniform())
    return false;
  for (const Use *p : {a.first, a.second})
    for (const Use *q : {b.first, b.second})
      for (const Guard &g : p->guards)
        for (const Guard &h : q->guards)
          if (g.isUniform && h.isUniform && !agree(g, h))
            return false;
  return canBeFirst(uses, a.second->communicator, a, b) &&
         canBeFirst(uses, b.second->communicator, b, a);
}

std::optional<FirstUses::Opposite>
FirstUses::findOpposite(const Uses &uses, unsigned x, unsigned y) const {
  Orders xFirst(*this, uses, x, y), yFirst(*this, uses, y, x);
  for (size_t i = 0; yFirst.get(0) && xFirst.get(i); ++i)
    for (size_t j = 0; yFirst.get(j); ++j) {
      Pair a = *xFirst.get(i), b = *yFirst.get(j);
      if (!canBoth(uses, a, b))
        continue;
      // The order that the text shows first is reported against the other.
      if (b.first->collective < a.first->collective)
        std::swap(a, b);
      const Guard *deciding = getDifference(*a.first, *b.first);
      return Opposite{{a.first->collective, a.second->collective,
                       b.first->collective, b.second->collective},
                      deciding->op,
                      deciding->dependence};
    }
  return std::nullopt;
}

std::optional<FirstUses::Opposite>
FirstUses::findOpposite(Operation *function) {
  const Uses &uses = getUses(function);
  if (llvm::all_of(uses.all, [](const Use &use) { return use.isUniform(); }))
    return std::nullopt;
  SmallVector<unsigned> communicators;
  for (const Use &use : uses.all)
    if (!llvm::is_contained(communicators, use.communicator))
      communicators.push_back(use.communicator);
  for (auto [i, x] : llvm::enumerate(communicators))
    for (unsigned y : ArrayRef(communicators).drop_front(i + 1))
      if (auto found = findOpposite(uses, x, y))
        return found;
  return std::nullopt;
}
