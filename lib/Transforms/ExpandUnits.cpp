//===- ExpandUnits.cpp - one bucket and one collective per parameter ------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   %w = fsdp.unshard @u(%s) : (tensor<2x3xf32>) -> tensor<8x3xbf16>
// becomes
//   %0 = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
//   %1 = fsdp.concat %0 into @w_gather
//   %2 = fsdp.all_gather %1 of @w_gather
//   %w = fsdp.unchunk %2 of @w_gather
// and
//   %s = fsdp.reduce_grads @u[@w](%g) : (tensor<8x3xbf16>) -> tensor<2x3xf32>
// becomes
//   %0 = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
//   %1 = fsdp.chunk_cat %0 into @w_reduce_f32
//   %2 = fsdp.reduce_scatter avg %1 of @w_reduce_f32
//   %s = fsdp.split %2 of @w_reduce_f32
//
// with an all_reduce before the split on hybrid grids. This is the naive form,
// which defines the bits: a pass that merges or fuses is checked against it.
//
// Every unit op gets buckets of its own and a group number, so that two gathers
// of one unit stay two. Everything is in the order of declaration, so the plan
// is a function of the module's text and the options, the same on all ranks.
//
//===----------------------------------------------------------------------===//

#include "DivisionPlan.h"
#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::fsdp {
#define GEN_PASS_DEF_EXPANDUNITSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// One parameter of a reduce_grads and the place of its gradient and shard
/// among operands and results; none if it has no gradient. (Not the values: an
/// operand may be the result of a unit op that is replaced before.)
struct ReducedParam {
  ParamOp param;
  std::optional<unsigned> index;
};

/// A unit op, and the parameters that it moves in the order of declaration.
struct UnitOpPlan {
  Operation *op;
  UnitOp unit;
  UnitGroup group;
  SmallVector<ReducedParam> reduced; ///< of a reduce_grads

  bool isGather() const { return isa<UnshardOp>(op); }
};

/// What is asked for once for the whole module.
struct ExpandOptions {
  Unused unused;
  Accumulate accumulate;
  Average average;
  int64_t align;
};

/// Decides how every unit op will be expanded, and refuses what cannot be.
class ExpansionPlanner {
public:
  ExpansionPlanner(SymbolTableCollection &symbolTables,
                   const ExpandOptions &options)
      : symbolTables(symbolTables), options(options) {}

  /// Plans all unit ops of `module` in program order; fails after errors.
  FailureOr<SmallVector<UnitOpPlan, 0>> plan(ModuleOp module);

private:
  LogicalResult checkResolved(UnitOp unit);
  FailureOr<UnitOpPlan> planOp(UnitOpInterface op);
  LogicalResult planReduced(ReduceGradsOp op, UnitOpPlan &plan);
  LogicalResult checkSize(const UnitOpPlan &plan, ParamOp param, Type dtype);

  SymbolTableCollection &symbolTables;
  const ExpandOptions &options;
};

/// Carries plans out.
class Expander {
public:
  Expander(SymbolTableCollection &symbolTables, const ExpandOptions &options,
           int64_t firstGroup)
      : symbolTables(symbolTables), options(options), nextGroup(firstGroup) {}

  /// Replaces the planned op.
  void expand(const UnitOpPlan &plan);

private:
  Value gather(const UnitOpPlan &plan, ParamOp param, Value shard);
  Value reduce(const UnitOpPlan &plan, const ReducedParam &reduced);
  ResolvedBucket createBucket(const UnitOpPlan &plan, ParamOp param,
                              BucketKind kind, Type wire);

  SymbolTableCollection &symbolTables;
  const ExpandOptions &options;
  int64_t nextGroup;
  /// Behind which op the next bucket of a unit stands; for look-ups only.
  DenseMap<Operation *, Operation *> lastBucket;
};
} // namespace

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

LogicalResult ExpansionPlanner::checkResolved(UnitOp unit) {
  for (ParamOp param : unit.getParams()) {
    PrecisionAttr precision = param.getPrecisionAttr();
    bool isResolved = param.isOpaque() ? precision && precision.getParam()
                                       : param.getReduceType() != nullptr;
    if (isResolved)
      continue;
    InFlightDiagnostic diag =
        unit.emitError() << "unit '" << unit.getSymName()
                         << "' is not resolved: run fsdp-resolve-precision "
                            "before fsdp-expand-units";
    diag.attachNote(param.getLoc())
        << "parameter '" << param.getSymName() << "' lacks dtypes";
    return diag;
  }
  return success();
}

/// Refuses a parameter that no bucket can hold in `dtype`.
LogicalResult ExpansionPlanner::checkSize(const UnitOpPlan &plan, ParamOp param,
                                          Type dtype) {
  int64_t ranks = plan.group.shardSize();
  std::optional<ParamLayout> layout = param.getLayout(ranks);
  int64_t bytes = getDtypeBytes(dtype);
  std::optional<int64_t> units =
      layout ? getStorageUnits(dtype, layout->elements) : std::nullopt;
  if (units &&
      BucketLayout::get({{*units, bytes}}, ranks, bytes, options.align))
    return success();
  UnitOp unit = plan.unit;
  InFlightDiagnostic diag =
      plan.op->emitOpError("moves parameter '")
      << param.getSymName() << "' of unit '" << unit.getSymName() << "' in "
      << dtype << " over " << ranks
      << " ranks, but such a bucket is too large: expected fewer than 2^62 "
         "bytes";
  diag.attachNote(param.getLoc()) << "it is " << param.getFullType();
  return diag;
}

/// The trainable parameters of the reduction that have a gradient, or all of
/// them with `unused=zero`, in the order of declaration.
LogicalResult ExpansionPlanner::planReduced(ReduceGradsOp op,
                                            UnitOpPlan &plan) {
  // Without names there is nothing to reduce, whatever the options say: such
  // an op has no results, and would be erased as dead anyway.
  if (op.getParams().empty())
    return success();
  DenseMap<StringAttr, unsigned> indices;
  for (auto [index, name] :
       llvm::enumerate(op.getParams().getAsRange<SymbolRefAttr>()))
    indices[name.getLeafReference()] = index;
  for (ParamOp param : plan.unit.getParams()) {
    auto found = indices.find(param.getSymNameAttr());
    if (found != indices.end())
      plan.reduced.push_back({param, found->second});
    else if (options.unused == Unused::Zero && !param.getFrozen())
      plan.reduced.push_back({param, std::nullopt});
  }
  SmallPtrSet<Type, 4> checked;
  for (const ReducedParam &reduced : plan.reduced) {
    ParamOp param = reduced.param;
    Type wire = param.getReduceType();
    if (failed(checkSize(plan, param, wire)))
      return failure();
    if (!checked.insert(wire).second)
      continue;
    if (failed(DivisionPlan::get(plan.unit, plan.group, wire, options.average)))
      return plan.unit.emitError()
             << "unit '" << plan.unit.getSymName() << "' has the divide factor "
             << plan.unit.getDivideFactorAttr()
             << ", which is no positive finite number when it divides in "
             << wire;
  }
  return success();
}

FailureOr<UnitOpPlan> ExpansionPlanner::planOp(UnitOpInterface op) {
  // Verified: the unit exists and its group is valid.
  auto unit =
      symbolTables.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  FailureOr<UnitGroup> group = unit.getGroup(symbolTables);
  if (failed(group))
    return failure();
  UnitOpPlan plan{op, unit, std::move(*group), {}};
  if (auto reduce = dyn_cast<ReduceGradsOp>(op.getOperation())) {
    if (failed(planReduced(reduce, plan)))
      return failure();
    return plan;
  }
  for (ParamOp param : unit.getParams())
    if (failed(checkSize(plan, param, param.getParamType())))
      return failure();
  return plan;
}

FailureOr<SmallVector<UnitOpPlan, 0>> ExpansionPlanner::plan(ModuleOp module) {
  if (!isValidAlign(options.align))
    return module.emitError()
           << "option align is " << options.align
           << ", expected a power of two from 1 to " << kMaxAlign;
  bool refused = false;
  module.walk([&](UnitOp unit) { refused |= failed(checkResolved(unit)); });
  if (refused)
    return failure();

  SmallVector<UnitOpPlan, 0> plans;
  module.walk([&](UnitOpInterface op) {
    // Another dialect's op is its own lowering's to replace.
    if (!isa_and_nonnull<FsdpDialect>(op->getDialect()))
      return;
    FailureOr<UnitOpPlan> plan = planOp(op);
    if (succeeded(plan))
      plans.push_back(std::move(*plan));
    refused |= failed(plan);
  });
  if (refused)
    return failure();
  return plans;
}

//===----------------------------------------------------------------------===//
// Acting
//===----------------------------------------------------------------------===//

/// `value` with the element type `to`, rounded at most once. Between f16 and
/// bf16 the way leads through f32, since arith refuses equal widths.
static Value castElements(OpBuilder &builder, Location loc, Value value,
                          Type to) {
  auto type = cast<RankedTensorType>(value.getType());
  Type from = type.getElementType();
  if (from == to)
    return value;
  unsigned width = from.getIntOrFloatBitWidth();
  if (width == to.getIntOrFloatBitWidth()) {
    Type wide = type.clone(builder.getF32Type());
    value = arith::ExtFOp::create(builder, loc, wide, value);
  } else if (width < to.getIntOrFloatBitWidth()) {
    return arith::ExtFOp::create(builder, loc, type.clone(to), value);
  }
  return arith::TruncFOp::create(builder, loc, type.clone(to), value);
}

/// Where everything for `param` comes from: `op`, under the parameter's name,
/// so that messages of later passes say which parameter they mean.
static Location getParamLoc(Operation *op, ParamOp param) {
  return NameLoc::get(param.getSymNameAttr(), op->getLoc());
}

/// "layers.0.wq_gather", or "layers.0.wq_reduce_bf16": for the reader only.
static std::string getBucketName(ParamOp param, BucketKind kind, Type wire) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  stream << param.getSymName() << '_' << stringifyBucketKind(kind);
  if (kind == BucketKind::reduce)
    stream << '_' << wire;
  return name;
}

/// Declares the bucket of one parameter behind its unit, and behind the unit's
/// buckets that stand there already.
ResolvedBucket Expander::createBucket(const UnitOpPlan &plan, ParamOp param,
                                      BucketKind kind, Type wire) {
  UnitOp unit = plan.unit;
  OpBuilder builder(unit.getContext());
  auto member = SymbolRefAttr::get(unit.getSymNameAttr(),
                                   {FlatSymbolRefAttr::get(param)});
  auto bucket = BucketOp::create(
      builder, getParamLoc(plan.op, param), getBucketName(param, kind, wire),
      kind, builder.getArrayAttr({member}), wire,
      options.align == kDefaultAlign ? IntegerAttr()
                                     : builder.getI64IntegerAttr(options.align),
      builder.getI64IntegerAttr(nextGroup));
  Operation *&last = lastBucket.try_emplace(unit, unit).first->second;
  symbolTables.getSymbolTable(unit->getParentOp())
      .insert(bucket, std::next(last->getIterator()));
  last = bucket;
  // Cannot fail: the unit is verified, and the wire is a dtype of the member.
  return *ResolvedBucket::get(bucket, symbolTables);
}

Value Expander::gather(const UnitOpPlan &plan, ParamOp param, Value shard) {
  Type wire = param.isOpaque() ? IntegerType::get(param.getContext(), 8)
                               : param.getParamType();
  ResolvedBucket bucket = createBucket(plan, param, BucketKind::gather, wire);
  OpBuilder builder(plan.op);
  Location loc = getParamLoc(plan.op, param);
  Value cast = castElements(builder, loc, shard, param.getParamType());
  Value flat = ConcatOp::create(builder, loc, bucket, cast).getFlat();
  Value packed = AllGatherOp::create(builder, loc, bucket, flat).getPacked();
  return UnchunkOp::create(builder, loc, bucket, packed).getFull().front();
}

Value Expander::reduce(const UnitOpPlan &plan, const ReducedParam &reduced) {
  ParamOp param = reduced.param;
  Type wire = param.getReduceType();
  ResolvedBucket bucket = createBucket(plan, param, BucketKind::reduce, wire);
  DivisionPlan division =
      *DivisionPlan::get(plan.unit, plan.group, wire, options.average);
  OpBuilder builder(plan.op);
  Location loc = getParamLoc(plan.op, param);
  auto number = [&](std::optional<double> value) {
    return value ? builder.getF64FloatAttr(*value) : FloatAttr();
  };
  // A wider sum means nothing for wide wires.
  TypeAttr accumulate;
  if (options.accumulate == Accumulate::F32 && (wire.isF16() || wire.isBF16()))
    accumulate = TypeAttr::get(builder.getF32Type());

  Value gradient;
  if (reduced.index) {
    gradient = plan.op->getOperand(*reduced.index);
  } else {
    RankedTensorType type = param.getFullType().clone(wire);
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(wire));
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), wire);
    gradient = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }
  gradient = castElements(builder, loc, gradient, wire);
  Value packed = ChunkCatOp::create(builder, loc, bucket, gradient,
                                    number(division.divide))
                     .getPacked();
  CollectiveReduction scatter = {division.reduceScatter,
                                 number(division.premul), accumulate};
  Value flat =
      ReduceScatterOp::create(builder, loc, bucket, packed, scatter).getFlat();
  if (division.allReduce) {
    CollectiveReduction reduction = {*division.allReduce, FloatAttr(),
                                     accumulate};
    flat =
        AllReduceOp::create(builder, loc, bucket, flat, reduction).getReduced();
  }
  auto shards =
      SplitOp::create(builder, loc, bucket, flat, number(division.splitDivide));
  if (!reduced.index) // dropped
    return {};
  return castElements(builder, loc, shards.getShards().front(),
                      param.getGradType());
}

void Expander::expand(const UnitOpPlan &plan) {
  UnitOp unit = plan.unit;
  if (auto unshard = dyn_cast<UnshardOp>(plan.op)) {
    for (auto [param, shard, full] : llvm::zip_equal(
             unit.getParams(), unshard.getShards(), unshard.getFull()))
      full.replaceAllUsesWith(gather(plan, param, shard));
  } else {
    for (const ReducedParam &reduced : plan.reduced)
      if (Value shard = reduce(plan, reduced))
        plan.op->getResult(*reduced.index).replaceAllUsesWith(shard);
  }
  plan.op->erase();
  ++nextGroup;
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

/// What was done with one unit op.
static void remarkExpanded(const UnitOpPlan &plan, Unused unused,
                           DecisionLog &log) {
  UnitOp unit = plan.unit;
  Decision decision{"ExpandUnits",
                    /*passed=*/true,
                    "expanded",
                    "one collective per parameter",
                    {unit.getSymName().str()},
                    {}};
  if (plan.isGather()) {
    decision.metrics = {{"all_gathers", plan.op->getNumResults()}};
    return log.add(plan.op->getLoc(), std::move(decision));
  }
  int64_t count = plan.reduced.size();
  decision.metrics = {{"reduce_scatters", count}};
  if (!plan.group.replicateAxes.empty())
    decision.metrics.push_back({"all_reduces", count});
  log.add(plan.op->getLoc(), std::move(decision));

  // Trainable parameters without a gradient take part in nothing, or as zeros.
  SmallVector<std::string> absent;
  auto reduce = cast<ReduceGradsOp>(plan.op);
  DenseSet<StringAttr> named;
  for (auto name : reduce.getParams().getAsRange<SymbolRefAttr>())
    named.insert(name.getLeafReference());
  for (ParamOp param : unit.getParams())
    if (!param.getFrozen() && !named.contains(param.getSymNameAttr()))
      absent.push_back(param.getSymName().str());
  if (absent.empty())
    return;
  bool zero = unused == Unused::Zero && !named.empty();
  log.add(plan.op->getLoc(), {"ExpandUnits",
                              /*passed=*/true,
                              zero ? "zero-filled" : "skipped",
                              zero ? "no gradient: reduced as zeros"
                                   : "no gradient: in no collective",
                              std::move(absent),
                              {}});
}

/// Why the mean of gradients in `wire` is not what one division of their exact
/// sum would give, and what avoids it; empty if there is nothing to say.
static std::string describeRisk(UnitOp unit, const UnitGroup &group, Type wire,
                                Average average) {
  DivisionPlan division = *DivisionPlan::get(unit, group, wire, average);
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  if (auto bias = division.getBias(group, wire)) {
    stream << llvm::format("the mean is biased by %+.2g %%, 1/%g is not exact "
                           "in ",
                           100 * bias->share, bias->divisor)
           << wire
           << llvm::format(": 'average=after' or 'reduction sum divide_factor "
                           "%g' divides exactly",
                           division.divisor);
  } else if (average == Average::After && wire.isF16()) {
    auto before = DivisionPlan::get(unit, group, wire, Average::Before);
    if (succeeded(before) && before->divide)
      stream << llvm::format(
          "the sum of %lld ranks in f16 overflows above "
          "65504: 'average=before' divides by %g first",
          (long long)(group.shardSize() * group.replicateSize()),
          *before->divide);
  }
  return reason;
}

/// Says so once for the unit.
static void remarkRisk(const UnitOpPlan &plan, Average average,
                       DecisionLog &log) {
  UnitOp unit = plan.unit;
  for (const ReducedParam &reduced : plan.reduced) {
    ParamOp param = reduced.param;
    Type wire = param.getReduceType();
    std::string reason = describeRisk(unit, plan.group, wire, average);
    if (reason.empty())
      continue;
    return log.add(unit->getLoc(), {"ExpandUnits",
                                    /*passed=*/false,
                                    wire.isF16() ? "overflow" : "biased",
                                    std::move(reason),
                                    {unit.getSymName().str()},
                                    {}});
  }
}

/// The first of `count` numbers in a row that no group of `module` has: above
/// them all, unless one is at the end of the integers.
static int64_t getFirstGroup(ModuleOp module, int64_t count) {
  SmallVector<int64_t> used;
  module.walk([&](BucketOp bucket) {
    if (std::optional<int64_t> group = bucket.getGroup())
      used.push_back(*group);
  });
  llvm::sort(used);
  int64_t first = 0;
  if (!used.empty() &&
      used.back() < std::numeric_limits<int64_t>::max() - count)
    return std::max(first, used.back() + 1);
  for (int64_t group : used) {
    if (group >= first && group - first >= count)
      break;
    first = std::max(first, group + 1);
  }
  return first;
}

namespace {
struct ExpandUnitsPass
    : mlir::fsdp::impl::ExpandUnitsPassBase<ExpandUnitsPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTableCollection symbolTables;
    ExpandOptions options{unused, accumulate, average, align};
    FailureOr<SmallVector<UnitOpPlan, 0>> plans =
        ExpansionPlanner(symbolTables, options).plan(getOperation());
    if (failed(plans))
      return signalPassFailure();
    FailureOr<int64_t> firstGroup =
        getFirstGroup(getOperation(), plans->size());
    if (failed(firstGroup))
      return signalPassFailure();

    auto &log = getAnalysis<DecisionLog>();
    DenseSet<Operation *> remarked;
    Expander expander(symbolTables, options,
                      getFirstGroup(getOperation(), plans->size()));
    for (const UnitOpPlan &plan : *plans) {
      remarkExpanded(plan, unused, log);
      if (!plan.isGather() && remarked.insert(plan.unit).second)
        remarkRisk(plan, average, log);
      expander.expand(plan);
    }
  }
};
} // namespace
