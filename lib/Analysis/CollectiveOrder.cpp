//===- CollectiveOrder.cpp - collectives and their order ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/CollectiveOrder.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Collectives::Collectives(Operation *root, const DirectCalls &calls,
                         GridAxes &axes, SymbolTableCollection &symbolTable)
    : calls(calls) {
  root->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { add(op, axes, symbolTable); });
  findIssuingFunctions();
}

/// The unit whose groups an op's ranks are: of a bucket's members, all are
/// equal. Null if the op is no collective.
static UnitOp getUnit(Operation *op, SymbolTableCollection &symbolTable) {
  if (auto unitOp = dyn_cast<UnitOpInterface>(op))
    return symbolTable.lookupNearestSymbolFrom<UnitOp>(op,
                                                       unitOp.getUnitAttr());
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return {};
  BucketOp bucket = lookupBucket(collective, symbolTable);
  auto member = cast<SymbolRefAttr>(bucket.getMembers()[0]);
  return lookupParam(bucket, member, symbolTable).getUnit();
}

void Collectives::add(Operation *op, GridAxes &axes,
                      SymbolTableCollection &symbolTable) {
  UnitOp unit = getUnit(op, symbolTable);
  if (!unit)
    return;
  FailureOr<UnitGroup> group = unit.getGroup(symbolTable);
  if (failed(group)) // does not verify
    return;
  StringRef grid = unit.getGrid();
  ArrayRef<int64_t> shape = group->grid.shape;
  SmallVector<SmallVector<int64_t>> groups;
  Collective collective{op, "unit", unit.getSymName(), unit.getSymNameAttr(), 0,
                        0,  {}};
  if (auto unitOp = dyn_cast<UnitOpInterface>(op)) {
    groups = unitOp.getGroups(*group);
  } else {
    auto issued = cast<CollectiveOpInterface>(op);
    groups = {issued.getGroupAxes(*group)};
    BucketOp bucket = lookupBucket(issued, symbolTable);
    collective.kind = "bucket";
    collective.name = bucket.getSymName();
    collective.payload = bucket.getMembers();
  }
  unsigned gridNumber = axes.getNumber(grid, shape);
  auto addGroup = [&](ArrayRef<int64_t> groupAxes) {
    Dependence set = axes.get(grid, shape, groupAxes);
    if (!set) // a group of one rank meets nobody
      return;
    collective.group |= set;
    std::pair<unsigned, SmallVector<int64_t>> communicator;
    communicator.first = gridNumber;
    for (int64_t axis : groupAxes)
      if (shape[axis] != 1)
        communicator.second.push_back(axis);
    auto it = llvm::find(communicators, communicator);
    collective.communicators.push_back(it - communicators.begin());
    if (it == communicators.end())
      communicators.push_back(communicator);
  };
  for (ArrayRef<int64_t> groupAxes : groups)
    addGroup(groupAxes);
  if (!collective.group)
    return;
  collective.tolerated =
      axes.getAll(grid, shape) & ~collective.group & ~kDependsOnData;
  numbers[op] = all.size();
  all.push_back(std::move(collective));
}

void Collectives::findIssuingFunctions() {
  SmallVector<Operation *> found;
  auto note = [&](Operation *op, unsigned collective) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    if (function && firstIssued.try_emplace(function, collective).second)
      found.push_back(function);
  };
  for (auto [number, collective] : llvm::enumerate(all))
    note(collective.op, number);
  while (!found.empty()) {
    Operation *function = found.pop_back_val();
    for (Operation *call : calls.getCalls(function)) {
      issuingCalls.push_back(call);
      note(call, firstIssued[function]);
    }
  }
}

const Collective *Collectives::getIssued(Operation *op) const {
  if (auto it = numbers.find(op); it != numbers.end())
    return &all[it->second];
  auto it = firstIssued.find(calls.getCallee(op));
  return it == firstIssued.end() ? nullptr : &all[it->second];
}

Operation *Collectives::findRecursion() const {
  // Takes away functions that call none of those left, until nothing changes.
  DenseMap<Operation *, unsigned> callsLeft;
  for (Operation *call : issuingCalls)
    ++callsLeft[call->getParentOfType<FunctionOpInterface>()];
  SmallVector<Operation *> leaves;
  for (auto [function, first] : firstIssued)
    if (!callsLeft.count(function))
      leaves.push_back(function);
  while (!leaves.empty())
    for (Operation *call : calls.getCalls(leaves.pop_back_val())) {
      Operation *caller = call->getParentOfType<FunctionOpInterface>();
      if (--callsLeft[caller] == 0)
        leaves.push_back(caller);
    }
  // Every function left calls one that is left: any way leads into a circle.
  DenseMap<Operation *, Operation *> callOf;
  for (Operation *call : issuingCalls) {
    Operation *caller = call->getParentOfType<FunctionOpInterface>();
    if (callsLeft.lookup(caller) && callsLeft.lookup(calls.getCallee(call)))
      callOf.try_emplace(caller, call);
  }
  for (Operation *call : issuingCalls) {
    DenseSet<Operation *> visited;
    Operation *caller = call->getParentOfType<FunctionOpInterface>();
    while (Operation *next = callOf.lookup(caller)) {
      visited.insert(caller);
      caller = calls.getCallee(next);
      if (visited.contains(caller))
        return next;
    }
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

ArrayRef<Collectives::Use> Collectives::getUsesOfCall(Operation *callee) {
  auto it = usesOfFunction.find(callee);
  if (it != usesOfFunction.end())
    return it->second;
  Region &body = cast<FunctionOpInterface>(callee).getFunctionBody();
  SmallVector<Use> uses =
      getUses(llvm::to_vector(llvm::make_pointer_range(body)));
  // First uses say all about the order; nested calls stay small.
  SmallVector<Use> kept;
  DenseSet<unsigned> seen;
  for (const Use &use : uses)
    if (seen.insert(use.communicator).second)
      kept.push_back(use);
  return usesOfFunction[callee] = std::move(kept);
}

SmallVector<Collectives::Use> Collectives::getUses(ArrayRef<Block *> blocks) {
  SmallVector<Use> uses;
  for (Block *block : blocks)
    block->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto it = numbers.find(op); it != numbers.end())
        for (unsigned communicator : all[it->second].communicators)
          uses.push_back({communicator, &all[it->second]});
      else if (getIssued(op))
        llvm::append_range(uses, getUsesOfCall(calls.getCallee(op)));
    });
  return uses;
}

/// Two uses whose first ones in `a` and in `b` are in opposite orders. What
/// `keyOf` maps to one key counts as one.
static std::optional<Collectives::Opposite> findOppositeFirstUses(
    ArrayRef<Collectives::Use> a, ArrayRef<Collectives::Use> b,
    function_ref<std::pair<const void *, uintptr_t>(const Collectives::Use &)>
        keyOf) {
  using Key = std::pair<const void *, uintptr_t>;
  DenseMap<Key, std::pair<unsigned, const Collective *>> inB;
  for (auto [position, use] : llvm::enumerate(b))
    inB.try_emplace(keyOf(use), position, use.collective);
  // If any two are in opposite orders, two neighbours among the common are.
  const Collectives::Use *before = nullptr;
  DenseSet<Key> seen;
  for (const Collectives::Use &use : a) {
    auto it = inB.find(keyOf(use));
    if (it == inB.end() || !seen.insert(keyOf(use)).second)
      continue;
    if (before) {
      auto [position, other] = inB.lookup(keyOf(*before));
      if (it->second.first < position)
        return Collectives::Opposite{before->collective, use.collective,
                                     it->second.second, other};
    }
    before = &use;
  }
  return std::nullopt;
}

std::optional<Collectives::Opposite>
Collectives::findOpposite(ArrayRef<SmallVector<Block *>> ways) {
  auto communicatorOf = [](const Use &use) {
    return std::pair<const void *, uintptr_t>(nullptr, use.communicator);
  };
  auto payloadOf = [](const Use &use) {
    TypeID kind = use.collective->op->getName().getTypeID();
    return std::pair<const void *, uintptr_t>(
        kind.getAsOpaquePointer(),
        reinterpret_cast<uintptr_t>(
            use.collective->payload.getAsOpaquePointer()));
  };
  SmallVector<SmallVector<Use>> uses;
  for (const SmallVector<Block *> &way : ways)
    uses.push_back(getUses(way));
  for (size_t i = 0; i < ways.size(); ++i)
    for (size_t j = i + 1; j < ways.size(); ++j) {
      if (auto found = findOppositeFirstUses(uses[i], uses[j], communicatorOf))
        return found;
      if (auto found = findOppositeFirstUses(uses[i], uses[j], payloadOf))
        return found;
    }
  return std::nullopt;
}
