//===- Uniformity.cpp - what may differ between ranks ---------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Uniformity.h"

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Rules about single ops
//===----------------------------------------------------------------------===//

bool mlir::fsdp::runsRegionsInOrder(Operation *op) {
  return isa_and_nonnull<scf::IfOp, scf::ForOp, scf::WhileOp,
                         scf::IndexSwitchOp, scf::ExecuteRegionOp,
                         affine::AffineIfOp, affine::AffineForOp,
                         memref::AllocaScopeOp>(op);
}

/// True if every result of `op` is computed from its operands and nothing else.
/// Purity alone does not say so: `gpu.thread_id` is pure.
static bool computesFromOperands(Operation *op) {
  if (isa<tensor::EmptyOp>(op)) // its elements are whatever lies there
    return false;
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         isa_and_nonnull<affine::AffineDialect, arith::ArithDialect,
                         BuiltinDialect, index::IndexDialect, math::MathDialect,
                         tensor::TensorDialect>(op->getDialect());
}

/// True if `value` is a number that the text of the program gives. Undefined
/// values and addresses are constants too, but not the same on all ranks.
static bool isLiteral(Value value) {
  Attribute literal;
  return matchPattern(value, m_Constant(&literal)) &&
         isa_and_nonnull<IntegerAttr, FloatAttr, ElementsAttr>(literal);
}

SmallVector<Value> Uniformity::getDeciders(Operation *op) {
  SmallVector<Value> deciders;
  auto addOthers = [&](Operation *from, ArrayRef<OperandRange> forwarded) {
    for (OpOperand &operand : from->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      if (llvm::none_of(forwarded, [&](OperandRange range) {
            return !range.empty() && range.getBeginOperandIndex() <= index &&
                   index < range.getBeginOperandIndex() + range.size();
          }))
        deciders.push_back(operand.get());
    }
  };
  SmallVector<OperandRange> forwarded;
  if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i)
      forwarded.push_back(
          branch.getSuccessorOperands(i).getForwardedOperands());
    addOthers(op, forwarded);
    return deciders;
  }
  auto regionOp = dyn_cast<RegionBranchOpInterface>(op);
  if (!regionOp) {
    llvm::append_range(deciders, op->getOperands());
    return deciders;
  }
  for (RegionBranchPoint point : regionOp.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    regionOp.getSuccessorRegions(point, successors);
    forwarded.clear();
    for (const RegionSuccessor &successor : successors)
      forwarded.push_back(regionOp.getSuccessorOperands(point, successor));
    Operation *terminator = point.getTerminatorPredecessorOrNull();
    addOthers(terminator ? terminator : op, forwarded);
  }
  return deciders;
}

//===----------------------------------------------------------------------===//
// GridAxes
//===----------------------------------------------------------------------===//

GridAxes::Grid &GridAxes::getGrid(StringRef name, ArrayRef<int64_t> shape) {
  for (Grid &grid : grids)
    if (ArrayRef(grid.shape) == shape)
      return grid;
  Grid &grid = grids.emplace_back();
  grid.shape.assign(shape.begin(), shape.end());
  grid.name = name.str();
  for (int64_t size : shape) {
    // 63 axes are more than ranks can be numbered for, unless there are many
    // grids; what is beyond them counts as data, which nothing tolerates.
    Dependence bit = Dependence(1) << std::min(numBits, 63u);
    grid.axes.push_back(size == 1 ? 0 : bit);
    numBits += size != 1;
  }
  return grid;
}

Dependence GridAxes::get(StringRef name, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> axes) {
  Grid &grid = getGrid(name, shape);
  Dependence set = 0;
  for (int64_t axis : axes)
    set |= grid.axes[axis];
  return set;
}

Dependence GridAxes::getAll(StringRef name, ArrayRef<int64_t> shape) {
  Dependence set = 0;
  for (Dependence axis : getGrid(name, shape).axes)
    set |= axis;
  return set;
}

bool GridAxes::numbersTheSameRanks(ArrayRef<int64_t> shape) const {
  std::optional<int64_t> ranks = countRanks(shape);
  return ranks && llvm::all_of(grids, [&](const Grid &grid) {
           return countRanks(grid.shape) == ranks;
         });
}

std::string GridAxes::describeAxes(Dependence set) const {
  std::string text;
  for (const Grid &grid : grids) {
    SmallVector<std::string> members;
    for (auto [number, axis] : llvm::enumerate(grid.axes))
      if (axis & set & ~kDependsOnData)
        members.push_back(std::to_string(number));
    if (members.empty())
      continue;
    text += (text.empty() ? "" : " and ") +
            std::string(members.size() > 1 ? "axes " : "axis ") +
            llvm::join(members, " and ") + " of grid '" + grid.name + "'";
  }
  return text;
}

std::string GridAxes::describe(Dependence set) const {
  std::string text = describeAxes(set);
  if (!text.empty())
    text = "the rank's coordinate on " + text;
  if (set & kDependsOnData)
    text += text.empty() ? "data" : " and on data";
  return text;
}

//===----------------------------------------------------------------------===//
// Control flow between blocks
//===----------------------------------------------------------------------===//

const Uniformity::RegionFlow &Uniformity::getFlow(Region *region) {
  auto [it, isNew] = flows.try_emplace(region);
  RegionFlow &flow = it->second;
  if (!isNew || region->hasOneBlock())
    return flow;

  // A block is control dependent on a branch if it stands behind one of its
  // successors on every way to the end, but not behind the branch itself.
  auto &postTree = postDominance.getDomTree(region);
  for (Block &block : *region) {
    auto *node = postTree.getNode(&block);
    if (block.getNumSuccessors() < 2 || !node)
      continue;
    for (Block *successor : block.getSuccessors())
      for (auto *behind = postTree.getNode(successor);
           behind && behind != node->getIDom(); behind = behind->getIDom()) {
        SmallVector<Block *, 2> &deciders = flow.deciders[behind->getBlock()];
        if (deciders.empty() || deciders.back() != &block)
          deciders.push_back(&block);
      }
  }

  DominanceInfo &dom = dominance;
  CFGLoopInfo loops(dom.getDomTree(region));
  for (Block &block : *region)
    if (loops.getLoopFor(&block))
      flow.inLoop.insert(&block);

  // Reducible: whatever goes back goes to a block that dominates it.
  DenseMap<Block *, unsigned> order;
  llvm::ReversePostOrderTraversal<Block *> blocks(&region->front());
  for (Block *block : blocks)
    order[block] = order.size();
  for (Block *block : blocks)
    for (Block *successor : block->getSuccessors())
      if (order[successor] <= order[block] && !dom.dominates(successor, block))
        flow.isReducible = false;
  return flow;
}

bool Uniformity::isInLoopOfBlocks(Block *block) {
  if (!block->getParent() || block->getParent()->hasOneBlock())
    return false;
  const RegionFlow &flow = getFlow(block->getParent());
  return !flow.isReducible || flow.inLoop.contains(block);
}

SmallVector<Operation *> Uniformity::getBranches(Block *block) {
  SmallVector<Operation *> branches;
  if (block->isEntryBlock())
    return branches;
  const RegionFlow &flow = getFlow(block->getParent());
  llvm::SetVector<Block *> deciders;
  for (Block *next = block; next;) {
    for (Block *decider : flow.deciders.lookup(next))
      deciders.insert(decider);
    next =
        branches.size() < deciders.size() ? deciders[branches.size()] : nullptr;
    if (next)
      branches.push_back(next->getTerminator());
  }
  return branches;
}

bool Uniformity::reaches(Block *from, Block *to) {
  llvm::SetVector<Block *> reached;
  reached.insert(from);
  for (unsigned i = 0; i < reached.size(); ++i)
    for (Block *next : reached[i]->getSuccessors()) {
      if (next == to)
        return true;
      reached.insert(next);
    }
  return false;
}

SmallVector<SmallVector<Block *>> Uniformity::getWays(Operation *op) {
  SmallVector<SmallVector<Block *>> ways;
  if (auto regionOp = dyn_cast<RegionBranchOpInterface>(op)) {
    SmallVector<RegionSuccessor> successors;
    regionOp.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    for (const RegionSuccessor &successor : successors)
      if (Region *region = successor.getSuccessor())
        ways.push_back(llvm::to_vector(llvm::make_pointer_range(*region)));
    return ways;
  }
  Block *block = op->getBlock();
  auto &postTree = postDominance.getDomTree(block->getParent());
  auto *node = postTree.getNode(block);
  Block *end = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
  for (Block *successor : block->getSuccessors()) {
    llvm::SetVector<Block *> reached;
    if (successor != end)
      reached.insert(successor);
    for (unsigned i = 0; i < reached.size(); ++i)
      for (Block *next : reached[i]->getSuccessors())
        if (next != end)
          reached.insert(next);
    ways.push_back(reached.takeVector());
  }
  return ways;
}

//===----------------------------------------------------------------------===//
// The graph of what depends on what
//===----------------------------------------------------------------------===//

unsigned Uniformity::getNode(Key key) {
  auto [it, isNew] = numbers.try_emplace(key, nodes.size());
  if (isNew)
    nodes.emplace_back().key = key;
  return it->second;
}

void Uniformity::addEdge(unsigned node, Key dependsOn, Operation *via) {
  unsigned other = getNode(dependsOn);
  nodes[node].dependsOn.push_back({other, via});
  nodes[other].users.push_back(node);
}

void Uniformity::addDeciders(unsigned node, Operation *op, Operation *via) {
  for (Value value : getDeciders(op))
    addEdge(node, value, via);
}

void Uniformity::expand(unsigned node) {
  Key key = nodes[node].key;
  if (auto *block = dyn_cast<Block *>(key))
    return expandBlock(node, block);
  Value value = cast<Value>(key);
  if (isLiteral(value))
    return;
  if (auto result = dyn_cast<OpResult>(value))
    return expandResult(node, result);
  expandArgument(node, cast<BlockArgument>(value));
}

void Uniformity::expandBlock(unsigned node, Block *block) {
  Region *region = block->getParent();
  Operation *op = block->getParentOp();
  if (block->isEntryBlock()) {
    if (isa<FunctionOpInterface>(op)) {
      for (Operation *call : calls.getCalls(op))
        addEdge(node, call->getBlock(), call);
      if (calls.hasOtherUses(op))
        nodes[node].own |= kDependsOnData;
      return;
    }
    if (runsRegionsInOrder(op))
      addDeciders(node, op, op);
    if (op->getBlock())
      addEdge(node, op->getBlock());
    return;
  }
  // The nearest causes first: explanations follow this order.
  const RegionFlow &flow = getFlow(region);
  SmallVector<Block *, 2> deciders = flow.deciders.lookup(block);
  if (!flow.isReducible)
    nodes[node].own |= kDependsOnData;
  for (Block *decider : deciders) {
    Operation *branch = decider->getTerminator();
    if (!isa<BranchOpInterface>(branch))
      nodes[node].own |= kDependsOnData;
    addDeciders(node, branch, branch);
  }
  for (Block *decider : deciders)
    addEdge(node, decider);
  addEdge(node, &region->front());
}

void Uniformity::expandResult(unsigned node, OpResult result) {
  Operation *op = result.getOwner();
  auto addAxes = [&](FlatSymbolRefAttr name, auto getAxes) {
    auto grid = symbolTable.lookupNearestSymbolFrom<shard::GridOp>(op, name);
    if (!grid || !axes.numbersTheSameRanks(grid.getShape())) {
      nodes[node].own |= kDependsOnData;
      return;
    }
    nodes[node].own |=
        axes.get(name.getValue(), grid.getShape(), getAxes(grid));
  };
  auto allAxes = [](shard::GridOp grid) {
    return llvm::to_vector(llvm::seq<int64_t>(0, grid.getRank()));
  };
  if (auto index = dyn_cast<shard::ProcessLinearIndexOp>(op))
    return addAxes(index.getGridAttr(), allAxes);
  if (auto index = dyn_cast<shard::ProcessMultiIndexOp>(op))
    return addAxes(index.getGridAttr(), [&](shard::GridOp grid) {
      unsigned number = result.getResultNumber();
      return SmallVector<int64_t>{
          index.getAxes().empty() ? number : index.getAxes()[number]};
    });
  if (isa<shard::GridShapeOp>(op))
    return;
  if (isa<CallOpInterface>(op))
    return expandCall(node, result);
  if (runsRegionsInOrder(op))
    return expandForwarded(node, result, op);
  if (auto dim = dyn_cast<ShapedDimOpInterface>(op)) {
    auto type = dyn_cast<ShapedType>(dim.getShapedValue().getType());
    std::optional<int64_t> index = getConstantIntValue(dim.getDimension());
    if (type && type.hasRank() && index && *index >= 0 &&
        *index < type.getRank() && !type.isDynamicDim(*index))
      return;
    auto which = dyn_cast<Value>(dim.getDimension());
    if (type && type.hasStaticShape() && which)
      return addEdge(node, which);
  }
  if (!computesFromOperands(op)) {
    nodes[node].own |= kDependsOnData;
    return;
  }
  for (Value operand : op->getOperands())
    addEdge(node, operand);
}

void Uniformity::expandCall(unsigned node, OpResult result) {
  Operation *call = result.getOwner();
  auto callee = dyn_cast_or_null<FunctionOpInterface>(calls.getCallee(call));
  if (!callee) {
    nodes[node].own |= kDependsOnData;
    return;
  }
  for (Block &block : callee.getFunctionBody()) {
    Operation *terminator = block.getTerminator();
    if (terminator->getNumSuccessors())
      continue;
    if (!terminator->hasTrait<OpTrait::ReturnLike>() ||
        terminator->getNumOperands() != call->getNumResults()) {
      nodes[node].own |= kDependsOnData;
      continue;
    }
    addEdge(node, terminator->getOperand(result.getResultNumber()), call);
    if (!block.isEntryBlock())
      addEdge(node, &block);
  }
}

void Uniformity::expandArgument(unsigned node, BlockArgument argument) {
  Block *block = argument.getOwner();
  Operation *op = block->getParentOp();
  if (block->isEntryBlock()) {
    if (isa<FunctionOpInterface>(op))
      return expandFunctionArgument(node, argument);
    if (runsRegionsInOrder(op))
      return expandForwarded(node, argument, op);
    nodes[node].own |= kDependsOnData;
    return;
  }
  for (auto it = block->pred_begin(), end = block->pred_end(); it != end;
       ++it) {
    Operation *terminator = (*it)->getTerminator();
    Value forwarded;
    if (auto branch = dyn_cast<BranchOpInterface>(terminator))
      forwarded = branch.getSuccessorOperands(
          it.getSuccessorIndex())[argument.getArgNumber()];
    if (forwarded)
      addEdge(node, forwarded);
    else
      nodes[node].own |= kDependsOnData;
    if (terminator->getNumSuccessors() > 1)
      addDeciders(node, terminator, /*via=*/nullptr);
    addEdge(node, *it);
  }
}

void Uniformity::expandFunctionArgument(unsigned node, BlockArgument argument) {
  auto function = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  unsigned index = argument.getArgNumber();
  bool isMarked = function.getArgAttr(
                      index, FsdpDialect::getUniformAttrName()) != Attribute();
  if (calls.hasOtherUses(function) || (calls.isEntry(function) && !isMarked))
    nodes[node].own |= kDependsOnData;
  for (Operation *call : calls.getCalls(function))
    addEdge(node, cast<CallOpInterface>(call).getArgOperands()[index], call);
}

void Uniformity::expandForwarded(unsigned node, Value input, Operation *op) {
  auto regionOp = cast<RegionBranchOpInterface>(op);
  auto numberOf = [](Value value) {
    if (auto result = dyn_cast<OpResult>(value))
      return result.getResultNumber();
    return cast<BlockArgument>(value).getArgNumber();
  };
  Region *region = isa<OpResult>(input) ? nullptr : input.getParentRegion();
  for (RegionBranchPoint point : regionOp.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    regionOp.getSuccessorRegions(point, successors);
    Operation *terminator = point.getTerminatorPredecessorOrNull();
    for (const RegionSuccessor &successor : successors) {
      ValueRange inputs = successor.getSuccessorInputs();
      if (successor.getSuccessor() != region || inputs.empty())
        continue;
      // An induction variable is no input: only the deciders make it.
      unsigned first = numberOf(inputs.front()), number = numberOf(input);
      OperandRange operands = regionOp.getSuccessorOperands(point, successor);
      if (first <= number && number - first < operands.size())
        addEdge(node, operands[number - first]);
      if (terminator && !terminator->getBlock()->isEntryBlock())
        addEdge(node, terminator->getBlock());
    }
  }
  addDeciders(node, op, /*via=*/nullptr);
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

void Uniformity::solve() {
  SmallVector<unsigned> changed;
  for (unsigned node = 0; node < nodes.size(); ++node) {
    expand(node);
    nodes[node].all = nodes[node].own;
    if (nodes[node].own)
      changed.push_back(node);
  }
  while (!changed.empty()) {
    unsigned node = changed.pop_back_val();
    for (unsigned user : nodes[node].users) {
      Dependence joined = nodes[user].all | nodes[node].all;
      if (joined == nodes[user].all)
        continue;
      nodes[user].all = joined;
      changed.push_back(user);
    }
  }
}

Dependence Uniformity::getControl(Block *block) const {
  return nodes[numbers.at(Key(block))].all;
}

Dependence Uniformity::getDecision(Operation *op) const {
  Dependence set = 0;
  for (Value value : getDeciders(op))
    if (auto it = numbers.find(Key(value)); it != numbers.end())
      set |= nodes[it->second].all;
  if (op->getNumSuccessors() && !isa<BranchOpInterface>(op))
    set |= kDependsOnData;
  return set;
}

std::string Uniformity::describeSource(Key key) const {
  if (auto *block = dyn_cast<Block *>(key)) {
    auto function = dyn_cast<FunctionOpInterface>(block->getParentOp());
    if (function && block->isEntryBlock())
      return "function '" + function.getName().str() +
             "' is not only called by 'func.call', so that nothing is known "
             "about "
             "when it runs";
    return "the order of blocks is not known: a branch leads into a loop, or "
           "nothing is known about a branch";
  }
  Value value = cast<Value>(key);
  if (Operation *op = value.getDefiningOp())
    return "it comes from this '" + op->getName().getStringRef().str() + "'";
  auto argument = cast<BlockArgument>(value);
  std::string number = std::to_string(argument.getArgNumber());
  Operation *op = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return "it comes from argument #" + number + " of '" +
           function.getName().str() + "', which is not marked '" +
           FsdpDialect::getUniformAttrName().str() + "'";
  return "it comes from argument #" + number + " of a block in '" +
         op->getName().getStringRef().str() + "'";
}

Uniformity::Reason Uniformity::explain(Block *block, Dependence set) const {
  // The shortest way to a source of any one cause, over nodes that all depend
  // on it.
  unsigned node = numbers.at(Key(block));
  set &= nodes[node].all;
  set &= ~set + 1;
  struct Step {
    unsigned from;
    Operation *via;
  };
  llvm::MapVector<unsigned, Step> steps;
  steps.insert({node, Step{node, nullptr}});
  for (unsigned i = 0; !(nodes[node = steps.begin()[i].first].own & set); ++i)
    for (const Edge &edge : nodes[node].dependsOn)
      if (nodes[edge.node].all & set)
        steps.insert({edge.node, Step{node, edge.via}});

  // Back to the block: what decides there is the first step into a value.
  Key source = nodes[node].key;
  Reason reason{nullptr, {}, block->getParentOp()->getLoc(), ""};
  for (unsigned from; node != steps.begin()->first; node = from) {
    Operation *via = steps.find(node)->second.via;
    from = steps.find(node)->second.from;
    if (!via || !isa<Block *>(nodes[from].key))
      continue;
    if (isa<Block *>(nodes[node].key)) {
      reason.calls.push_back(via);
    } else {
      reason.decidingOp = via;
      reason.calls.clear();
    }
  }
  std::reverse(reason.calls.begin(), reason.calls.end());
  reason.source = describeSource(source);
  if (auto *sourceBlock = dyn_cast<Block *>(source))
    reason.loc = sourceBlock->getParentOp()->getLoc();
  else
    reason.loc = cast<Value>(source).getLoc();
  return reason;
}
