//===- VerifyCollectives.cpp - one order of collectives on all ranks ------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is proved. A collective has a group: the axes of the grid on whose
// coordinates the ranks that meet in it differ. The ranks that agree on all
// other axes form one communicator. If all ranks call the same entry functions
// in the same order, with equal `fsdp.uniform` arguments, and their loops end:
//
//   (1) any two ranks issue the same sequence of collectives on every
//       communicator that contains both;
//   (2) no ranks wait for each other in a circle, over any number of
//       communicators.
//
// How. The pass requires of each collective that nothing that decides whether
// and how often it runs depends on data or on the coordinates of an axis of its
// group (Uniformity.h). Let p and q be two ranks of a communicator. Where a
// branch depends on less, both take the same way. Where it depends on more,
// they may part, but then no collective of this group is on any way to the
// block at which they meet again, and no value that differs between them
// reaches beyond it without depending on the branch. So (1). For (2), give
// every run of an op its place: the places of the calls on the stack and, for
// each, the number of the iteration of every loop around it and the position in
// the loop's body, from the outside in. A rank runs its ops in lexicographic
// order of places. The ranks that meet in a collective are in the same
// iterations, since the loops around it are controlled by the same causes as
// itself, so all of them run it at the same place. Whoever waits therefore
// waits for a rank that stands at an earlier place, and that cannot go round in
// a circle.
//
// A collective may thus depend on coordinates of axes outside its group, where
// whole communicators take one way and others another. Then one thing more is
// required: no two ranks first use two communicators in opposite orders
// (FirstUses.h). (2) does not need that, but libraries do that run the
// communicators of one device side by side on shared resources, and ask for one
// order of them on all ranks.
//
// What is refused because nothing is known about it: collectives in regions of
// ops that may run in parallel, later or on some lanes only, and of ops that
// are not known; in functions that call themselves, or that are used as values
// under unknown conditions; in loops of blocks with several entries.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/FirstUses.h"

#include "fsdp/Transforms/Passes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYCOLLECTIVESPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// How many errors of one module are printed.
static constexpr unsigned kMaxErrors = 20;

namespace {
/// The proof for one module, or the errors that say where it fails.
class Proof {
public:
  explicit Proof(ModuleOp module)
      : calls(module, symbolTable),
        collectives(module, calls, axes, symbolTable),
        uniformity(axes, calls, symbolTable),
        firstUses(collectives, calls, uniformity), loc(module.getLoc()) {}
  LogicalResult run();

private:
  void checkRegions();
  void checkRecursion();
  void checkControl();
  void checkOrder();
  Operation *findUnordered(Block *block);
  /// Remembers `cause`, and that the proof has failed; returns true if there is
  /// an error to print.
  bool isNews(Operation *cause);
  void reportControl(const Collective &collective,
                     const Uniformity::Reason &reason, Dependence cause);
  void reportOrder(const Collectives::Opposite &found, Operation *decidingOp,
                   Dependence decision);

  SymbolTableCollection symbolTable;
  GridAxes axes;
  DirectCalls calls;
  Collectives collectives;
  Uniformity uniformity;
  FirstUses firstUses;
  /// The op around a block, if any, that may not run its regions in order.
  DenseMap<Block *, Operation *> unordered;
  /// One error for each cause is enough.
  DenseSet<Operation *> reported;
  Location loc;
};
} // namespace

LogicalResult Proof::run() {
  // Later steps rely on earlier ones: on regions that run in order and on calls
  // that form no circle.
  checkRegions();
  if (reported.empty())
    checkRecursion();
  if (reported.empty()) {
    for (const Collective &collective : collectives.getAll())
      uniformity.ask(collective.op->getBlock());
    uniformity.solve();
    checkControl();
    checkOrder();
  }
  if (reported.size() > kMaxErrors)
    emitError(loc) << reported.size() - kMaxErrors
                   << " more places where the order of collectives is not the "
                      "same on all ranks";
  return success(reported.empty());
}

bool Proof::isNews(Operation *cause) {
  return reported.insert(cause).second && reported.size() <= kMaxErrors;
}

void Proof::checkRecursion() {
  Operation *call = collectives.findRecursion();
  if (call && isNews(call))
    call->emitOpError("calls itself in a circle that issues the collective of ")
        << collectives.getIssued(call)->describe()
        << ", which is control flow of unknown depth";
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Returns the innermost op around `block`, below its function, that is not
/// known to run its regions in order; null if there is none.
Operation *Proof::findUnordered(Block *block) {
  SmallVector<Block *> passed;
  Operation *found = nullptr;
  while (true) {
    auto it = unordered.find(block);
    if (it != unordered.end()) {
      found = it->second;
      break;
    }
    passed.push_back(block);
    Operation *op = block->getParentOp();
    if (isa<FunctionOpInterface>(op))
      break;
    if (!runsRegionsInOrder(op)) {
      found = op;
      break;
    }
    block = op->getBlock();
  }
  for (Block *inner : passed)
    unordered[inner] = found;
  return found;
}

void Proof::checkRegions() {
  auto check = [&](Operation *op) {
    Operation *around = findUnordered(op->getBlock());
    if (!around || !isNews(around))
      return;
    const Collective *issued = collectives.getIssued(op);
    InFlightDiagnostic diag =
        issued->op->emitOpError("of ")
        << issued->describe() << " is under control flow of unknown order: "
        << (around->isRegistered() ? "" : "unregistered op ") << "'"
        << around->getName() << "' is not known to run its region in order";
    diag.attachNote(around->getLoc()) << "around it here";
    if (issued->op != op)
      diag.attachNote(op->getLoc()) << "called from here";
  };
  for (const Collective &collective : collectives.getAll())
    check(collective.op);
  for (Operation *call : collectives.getIssuingCalls())
    check(call);
}

//===----------------------------------------------------------------------===//
// Control flow and order
//===----------------------------------------------------------------------===//

void Proof::reportControl(const Collective &collective,
                          const Uniformity::Reason &reason, Dependence cause) {
  InFlightDiagnostic diag = collective.op->emitOpError("of ")
                            << collective.describe()
                            << " is under control flow that depends on "
                            << axes.describe(cause)
                            << ", expected the same on all ranks of its group, "
                            << axes.describeAxes(collective.group);
  if (reason.decidingOp)
    diag.attachNote(reason.decidingOp->getLoc())
        << "'" << reason.decidingOp->getName() << "' decides here";
  for (Operation *call : reason.calls)
    diag.attachNote(call->getLoc()) << "called from here";
  diag.attachNote(reason.loc) << reason.source;
}

void Proof::reportOrder(const Collectives::Opposite &found,
                        Operation *decidingOp, Dependence decision) {
  InFlightDiagnostic diag =
      found.second->op->emitOpError("of ")
      << found.second->describe() << " comes after " << found.first->describe()
      << " here, but " << found.otherFirst->describe() << " before "
      << found.otherSecond->describe()
      << " in another branch of control flow that depends on "
      << axes.describe(decision) << ", expected one order on all ranks";
  diag.attachNote(found.first->op->getLoc())
      << found.first->describe() << " is first here";
  diag.attachNote(found.otherFirst->op->getLoc())
      << found.otherFirst->describe() << " is first in the other branch";
  diag.attachNote(found.otherSecond->op->getLoc())
      << found.otherSecond->describe() << " is second there";
  diag.attachNote(decidingOp->getLoc())
      << "'" << decidingOp->getName() << "' decides here";
}

void Proof::checkControl() {
  // Collectives of one block and one group share their causes.
  DenseMap<Block *, Dependence> explained;
  for (const Collective &collective : collectives.getAll()) {
    Block *block = collective.op->getBlock();
    Dependence cause = uniformity.getControl(block) & ~collective.tolerated;
    if (!(cause & ~explained[block]))
      continue;
    explained[block] |= cause;
    Uniformity::Reason reason = uniformity.explain(block, cause);
    Operation *key = reason.decidingOp      ? reason.decidingOp
                     : reason.calls.empty() ? block->getParentOp()
                                            : reason.calls.front();
    if (!isNews(key))
      continue;
    if (reason.decidingOp) {
      cause &= uniformity.getDecision(reason.decidingOp);
      auto ways = uniformity.getWays(reason.decidingOp);
      if (auto found = collectives.findOpposite(ways)) {
        reportOrder(*found, reason.decidingOp,
                    uniformity.getDecision(reason.decidingOp));
        continue;
      }
    }
    reportControl(collective, reason, cause);
  }
}

void Proof::checkOrder() {
  for (Operation *function : calls.getFunctions())
    if (!cast<FunctionOpInterface>(function).isExternal())
      if (auto found = firstUses.findOpposite(function))
        if (isNews(found->decidingOp))
          reportOrder(found->uses, found->decidingOp, found->decision);
}

namespace {
struct VerifyCollectivesPass
    : fsdp::impl::VerifyCollectivesPassBase<VerifyCollectivesPass> {
  void runOnOperation() override {
    if (failed(Proof(getOperation()).run()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
