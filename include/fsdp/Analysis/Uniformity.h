//===- Uniformity.h - what may differ between ranks -------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks run one program, so a value can differ between two ranks only where
// it comes from a rank's coordinates on the grid or from data. For each value
// that decides about control flow, and for each block, this analysis computes
// the axes of the grid on whose coordinates it may depend, and whether it may
// depend on data. Two ranks that agree on these axes have the same value, or
// reach the block equally often and in the same order of blocks.
//
// It is a reachability problem. The nodes are SSA values and blocks; an edge
// leads from a node to each one that it may depend on:
//
//   a result             the operands, if nothing else enters the computation
//   a result or argument
//   of structured flow   what is forwarded to it, and the op's deciders: the
//                        operands of the op and of its terminators that are
//                        forwarded to nobody (conditions, bounds)
//   a block's argument   what the branches forward to it, their deciders, and
//                        the blocks in which they stand
//   a function's
//   argument or result   the operands of all its calls, or of its returns
//   a block              the deciders of the op around it, or of the branches
//                        on which it is control dependent; the block in which
//                        that op or branch stands; the calls of its function
//
// A value that is used behind a loop of blocks is that of the last iteration.
// It can only differ from one iteration to the next through the arguments of
// the loop's first block, and these depend on how often the loop runs.
//
// Sources of axes are `shard.process_multi_index` and
// `shard.process_linear_index`; axes of size 1 never matter. Everything that is
// not known to compute its results from its operands alone is a source of data:
// loads, arguments of entry functions without `fsdp.uniform`, external
// functions, undefined values, unknown ops.
//
// Only what a question leads to is visited, so a program without control flow
// costs nothing, whatever its size.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ANALYSIS_UNIFORMITY_H
#define FSDP_ANALYSIS_UNIFORMITY_H

#include "fsdp/Analysis/DirectCalls.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace mlir::fsdp {

/// A set of causes for which something may differ between ranks: one bit per
/// axis of a grid, and one for data.
using Dependence = uint64_t;
constexpr Dependence kDependsOnData = Dependence(1) << 63;

/// Numbers the axes of the grids of a module. Grids of one shape share their
/// axes, since all number the same ranks row-major.
class GridAxes {
public:
  /// The set of `axes` of a grid of `shape`, without those of size 1. `name` is
  /// the grid's in messages.
  Dependence get(StringRef name, ArrayRef<int64_t> shape,
                 ArrayRef<int64_t> axes);
  Dependence getAll(StringRef name, ArrayRef<int64_t> shape);
  /// Equal for grids of equal shape.
  unsigned getNumber(StringRef name, ArrayRef<int64_t> shape) {
    return &getGrid(name, shape) - grids.begin();
  }
  /// True if a grid of `shape` has as many ranks as all others here. Of other
  /// ranks than those that run the program nothing is known.
  bool numbersTheSameRanks(ArrayRef<int64_t> shape) const;
  /// "axes 0 and 1 of grid 'hsdp'".
  std::string describeAxes(Dependence set) const;
  /// "the rank's coordinate on axis 0 of grid 'dp' and data".
  std::string describe(Dependence set) const;

private:
  struct Grid {
    SmallVector<int64_t> shape;
    std::string name;
    SmallVector<Dependence> axes; ///< one bit each; none for an axis of size 1
  };
  Grid &getGrid(StringRef name, ArrayRef<int64_t> shape);

  SmallVector<Grid, 1> grids;
  unsigned numBits = 0;
};

/// True if `op` runs its regions itself, one after the other, as
/// RegionBranchOpInterface says.
bool runsRegionsInOrder(Operation *op);

class Uniformity {
public:
  Uniformity(GridAxes &axes, const DirectCalls &calls,
             SymbolTableCollection &symbolTable)
      : axes(axes), calls(calls), symbolTable(symbolTable) {}

  /// Asks what reaching `block` depends on. Ask everything, then solve once.
  void ask(Block *block) { getNode(block); }
  void solve();

  Dependence getControl(Block *block) const;
  /// What the decision of a branch or of an op with regions depends on.
  Dependence getDecision(Operation *op) const;
  /// The operands of an op with regions, of its terminators or of a branch that
  /// decide where control flows: those that are forwarded to nobody.
  static SmallVector<Value> getDeciders(Operation *op);
  /// The branches between the blocks of its region on which it depends whether
  /// `block` is reached, the nearest first.
  SmallVector<Operation *> getBranches(Block *block);
  bool isInLoopOfBlocks(Block *block);
  /// True if a way between the blocks of a region leads from `from` to `to`.
  static bool reaches(Block *from, Block *to);
  /// The ways that the control flow may take at a deciding op, until they meet
  /// again: the blocks of each.
  SmallVector<SmallVector<Block *>> getWays(Operation *op);

  /// Why reaching a block depends on something.
  struct Reason {
    Operation *decidingOp = nullptr; ///< null if there is none
    SmallVector<Operation *> calls;  ///< through which the block is reached
    Location loc;                    ///< of the source
    std::string source;
  };
  /// Why reaching `block` depends on a member of `set`.
  Reason explain(Block *block, Dependence set) const;

private:
  using Key = llvm::PointerUnion<Value, Block *>;
  struct Edge {
    unsigned node;
    Operation *via; ///< the deciding op, or the call
  };
  struct Node {
    Key key;
    Dependence own = 0, all = 0;
    SmallVector<Edge, 2> dependsOn;
    SmallVector<unsigned, 2> users;
  };
  /// The control flow between the blocks of one region.
  struct RegionFlow {
    /// The blocks on whose branch a block is control dependent.
    DenseMap<Block *, SmallVector<Block *, 2>> deciders;
    DenseSet<Block *> inLoop;
    bool isReducible = true;
  };

  unsigned getNode(Key key);
  void addEdge(unsigned node, Key dependsOn, Operation *via = nullptr);
  void expand(unsigned node);
  void expandBlock(unsigned node, Block *block);
  void expandResult(unsigned node, OpResult result);
  void expandArgument(unsigned node, BlockArgument argument);
  void expandFunctionArgument(unsigned node, BlockArgument argument);
  void expandForwarded(unsigned node, Value input, Operation *regionOp);
  void expandCall(unsigned node, OpResult result);
  void addDeciders(unsigned node, Operation *op, Operation *via);
  const RegionFlow &getFlow(Region *region);
  std::string describeSource(Key key) const;

  GridAxes &axes;
  const DirectCalls &calls;
  SymbolTableCollection &symbolTable;
  std::vector<Node> nodes;
  DenseMap<Key, unsigned> numbers;
  DenseMap<Region *, RegionFlow> flows;
  DominanceInfo dominance;
  PostDominanceInfo postDominance;
};

} // namespace mlir::fsdp

#endif // FSDP_ANALYSIS_UNIFORMITY_H
