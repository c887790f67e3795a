//===- FsdpOps.cpp - units, parameters and the unit ops -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptionalError.h"
#include "fsdp/Dialect/Fsdp.h"

#include "llvm/ADT/SmallBitVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Syntax: references to parameters
//===----------------------------------------------------------------------===//

/// Parses `@unit[@a, @b]`, and appends `@unit::@a`, `@unit::@b` to `refs`.
static ParseResult parseUnitAndParams(OpAsmParser &parser,
                                      FlatSymbolRefAttr &unit,
                                      SmallVectorImpl<Attribute> &refs) {
  if (parser.parseAttribute(unit))
    return failure();
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
        FlatSymbolRefAttr param;
        if (parser.parseAttribute(param))
          return failure();
        refs.push_back(SymbolRefAttr::get(unit.getRootReference(), {param}));
        return success();
      });
}

/// Prints the leaves of `refs`, which share a root, as `[@a, @b]`.
static void printParams(OpAsmPrinter &printer, ArrayRef<Attribute> refs) {
  printer << '[';
  llvm::interleaveComma(refs, printer, [&](Attribute ref) {
    printer.printSymbolName(
        cast<SymbolRefAttr>(ref).getLeafReference().getValue());
  });
  printer << ']';
}

/// One unit, possibly without parameters.
static ParseResult parseUnitParamRefs(OpAsmParser &parser,
                                      FlatSymbolRefAttr &unit,
                                      ArrayAttr &params) {
  SmallVector<Attribute> refs;
  if (parseUnitAndParams(parser, unit, refs))
    return failure();
  params = parser.getBuilder().getArrayAttr(refs);
  return success();
}

static void printUnitParamRefs(OpAsmPrinter &printer, Operation *,
                               FlatSymbolRefAttr unit, ArrayAttr params) {
  printer << unit;
  printParams(printer, params.getValue());
}

/// `@layer0[@norm, @wq], @layer1[@x]`: neighbours of one unit share brackets.
static ParseResult parseParamRefs(OpAsmParser &parser, ArrayAttr &members) {
  SmallVector<Attribute> refs;
  if (parser.parseCommaSeparatedList([&] {
        FlatSymbolRefAttr unit;
        return parseUnitAndParams(parser, unit, refs);
      }))
    return failure();
  members = parser.getBuilder().getArrayAttr(refs);
  return success();
}

static void printParamRefs(OpAsmPrinter &printer, Operation *,
                           ArrayAttr members) {
  ArrayRef<Attribute> rest = members.getValue();
  for (bool first = true; !rest.empty(); first = false) {
    StringAttr unit = cast<SymbolRefAttr>(rest.front()).getRootReference();
    ArrayRef<Attribute> ofUnit = rest.take_while([&](Attribute ref) {
      return cast<SymbolRefAttr>(ref).getRootReference() == unit;
    });
    printer << (first ? "" : ", ");
    printer.printSymbolName(unit);
    printParams(printer, ofUnit);
    rest = rest.drop_front(ofUnit.size());
  }
}

/// A byte bucket's wire type is written `bytes` and stored as i8.
static ParseResult parseWireType(OpAsmParser &parser, TypeAttr &wire) {
  Type type = parser.getBuilder().getI8Type();
  if (failed(parser.parseOptionalKeyword("bytes"))) {
    if (parser.parseType(type))
      return failure();
  }
  wire = TypeAttr::get(type);
  return success();
}

static void printWireType(OpAsmPrinter &printer, Operation *, TypeAttr wire) {
  if (wire.getValue().isSignlessInteger(8))
    printer << "bytes";
  else
    printer << wire.getValue();
}

/// `sum`, `avg` or `premul 0.25`.
static ParseResult parseReduceOp(OpAsmParser &parser, ReduceOpAttr &reduction,
                                 FloatAttr &multiplier) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<ReduceOp> value = symbolizeReduceOp(keyword);
  if (!value)
    return parser.emitError(loc, "expected 'sum', 'avg' or 'premul', but got '")
           << keyword << "'";
  reduction = ReduceOpAttr::get(parser.getContext(), *value);
  if (*value != ReduceOp::premul)
    return success();
  return parser.parseAttribute(multiplier, parser.getBuilder().getF64Type());
}

static void printReduceOp(OpAsmPrinter &printer, Operation *,
                          ReduceOpAttr reduction, FloatAttr multiplier) {
  printer << stringifyReduceOp(reduction.getValue());
  if (multiplier) {
    printer << ' ';
    printer.printAttributeWithoutType(multiplier);
  }
}

#define GET_OP_CLASSES
#include "fsdp/Dialect/FsdpOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

/// Checks that the entries of `precision` are dtypes that can be reduced;
/// `opaque`, if given, is allowed as param dtype too.
static LogicalResult verifyPrecision(Operation *op, const Twine &what,
                                     PrecisionAttr precision,
                                     Type opaque = {}) {
  if (!precision)
    return success();
  std::pair<StringRef, Type> entries[] = {{"param", precision.getParam()},
                                          {"reduce", precision.getReduce()},
                                          {"grad", precision.getGrad()}};
  for (auto [name, type] : entries)
    if (type && !isFloatDtype(type) && !(name == "param" && type == opaque))
      return op->emitOpError()
             << what << " has the " << name << " dtype " << type
             << ", expected the floating-point dtype f16, bf16, f32 or f64";
  return success();
}

//===----------------------------------------------------------------------===//
// UnitOp
//===----------------------------------------------------------------------===//

bool UnitGroup::operator==(const UnitGroup &other) const {
  return gridOp == other.gridOp && shardAxes == other.shardAxes &&
         replicateAxes == other.replicateAxes;
}

/// Resolves the grid and the groups of `unit`: constraints C1 and C2. Where
/// that is impossible, fails after a call of `emitError` for the one error;
/// silently if none is given.
static FailureOr<UnitGroup>
resolveGroup(UnitOp unit, SymbolTableCollection &symbolTable,
             function_ref<InFlightDiagnostic()> emitError = nullptr) {
  auto fail = [&] {
    return OptionalError(emitError, "unit", unit.getSymName());
  };

  // C1. The unit is a symbol table itself, so the look-up starts at its parent.
  FlatSymbolRefAttr gridName = unit.getGridAttr();
  Operation *op =
      symbolTable.lookupNearestSymbolFrom(unit->getParentOp(), gridName);
  if (!op)
    return fail() << "is on the unknown grid " << gridName;
  UnitGroup group;
  group.gridOp = dyn_cast<DeviceGridOpInterface>(op);
  if (!group.gridOp) {
    OptionalError error = fail();
    error << "is on " << gridName << ", which is not a grid";
    error.attachNote(op->getLoc(),
                     "it is '" + op->getName().getStringRef() + "'");
    return error;
  }
  SmallVector<int64_t> shape = group.gridOp.getGridShape();
  for (auto [axis, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size) && size > 0)
      continue;
    OptionalError error = fail();
    error << "needs a grid of static, positive sizes, but axis " << axis
          << " of " << gridName << " is ";
    if (ShapedType::isDynamic(size))
      error << "dynamic";
    else
      error << size;
    error.attachNote(op->getLoc(), "the grid");
    return error;
  }
  if (!countRanks(shape))
    return fail() << "is on " << gridName << ", which has 2^31 ranks or more";

  group.grid.shape.assign(shape.begin(), shape.end());

  // C2. Without shard axes in the IR, they are all that are not replicate axes.
  int64_t gridRank = shape.size();
  if (auto axes = unit.getReplicateAxes())
    group.replicateAxes.assign(axes->begin(), axes->end());
  if (auto axes = unit.getShardAxes())
    group.shardAxes.assign(axes->begin(), axes->end());
  else
    for (int64_t axis = 0; axis < gridRank; ++axis)
      if (!llvm::is_contained(group.replicateAxes, axis))
        group.shardAxes.push_back(axis);
  llvm::SmallBitVector seen(gridRank);
  for (int64_t axis :
       llvm::concat<const int64_t>(group.shardAxes, group.replicateAxes)) {
    if (axis < 0 || axis >= gridRank)
      return fail() << "names axis " << axis << " in its axes, but " << gridName
                    << " has " << gridRank;
    if (seen.test(axis))
      return fail() << "names axis " << axis << " twice in its axes";
    seen.set(axis);
  }
  return group;
}

FailureOr<UnitGroup> UnitOp::getGroup(SymbolTableCollection &symbolTable) {
  return resolveGroup(*this, symbolTable);
}

LogicalResult UnitOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  FailureOr<UnitGroup> group =
      resolveGroup(*this, symbolTable, [&] { return emitOpError(); });
  if (failed(group))
    return failure();
  // C7 of the parameters, where the cut goes through their rows.
  for (ParamOp param : getParams()) {
    RankedTensorType shard = param.getShardType(group->shardSize());
    if (!getStorageUnits(shard.getElementType(), shard.getShape().back()))
      return param.emitOpError()
             << "parameter '" << param.getSymName() << "' has shards of "
             << shard << " on " << group->shardSize()
             << " ranks, expected rows of whole bytes";
  }
  return success();
}

LogicalResult UnitOp::verifyRegions() {
  if (failed(verifyName(*this, "unit", getSymName()))) // C6
    return failure();
  auto name = [&] { return "unit '" + getSymName().str() + "'"; };
  // C5
  for (Operation &op : *getBody().begin())
    if (!isa<ParamOp>(op))
      return (emitOpError() << name() << " may hold fsdp.param ops only")
                 .attachNote(op.getLoc())
             << "but holds '" << op.getName() << "'";
  if (getSymName().empty())
    return emitOpError("has no name");
  if (getParams().empty())
    return emitOpError() << name() << " has no parameter";
  // C3
  if (failed(verifyPrecision(*this, name(), getPrecisionAttr())))
    return failure();
  // C7
  if (getReduction() == ReduceOp::premul)
    return emitOpError() << name() << " has the reduction premul, expected sum "
                         << "or avg: a divide_factor says by what it divides";
  // C4
  if (std::optional<APFloat> factor = getDivideFactor())
    if (!factor->isFinite() || factor->isNegative() || factor->isZero())
      return emitOpError() << name() << " has the divide factor "
                           << getDivideFactorAttr()
                           << ", expected a positive finite one";
  return success();
}

//===----------------------------------------------------------------------===//
// ParamOp
//===----------------------------------------------------------------------===//

UnitOp ParamOp::getUnit() { return cast<UnitOp>((*this)->getParentOp()); }

bool ParamOp::isOpaque() { return isOpaqueDtype(getStorageType()); }

/// The first of `own`'s and the unit's entry that is given, else `otherwise`.
static Type inherit(ParamOp param, Type (PrecisionAttr::*entry)() const,
                    Type otherwise) {
  for (PrecisionAttr precision :
       {param.getPrecisionAttr(), param.getUnit().getPrecisionAttr()})
    if (precision)
      if (Type type = (precision.*entry)())
        return type;
  return otherwise;
}

Type ParamOp::getParamType() {
  if (isOpaque())
    return getStorageType();
  return inherit(*this, &PrecisionAttr::getParam, getStorageType());
}

Type ParamOp::getGradType() {
  if (isOpaque())
    return {};
  return inherit(*this, &PrecisionAttr::getGrad, getStorageType());
}

Type ParamOp::getReduceType() {
  PrecisionAttr precision = getPrecisionAttr();
  if (isOpaque() || !precision || !precision.getParam() || !precision.getGrad())
    return {};
  return precision.getReduce();
}

std::optional<ParamLayout> ParamOp::getLayout(int64_t ranks) {
  return ParamLayout::get(getFullType().getShape().vec(), getShardDimension(),
                          ranks);
}

RankedTensorType ParamOp::getShardType(int64_t ranks, Type elementType) {
  SmallVector<int64_t> shape = llvm::to_vector(getFullType().getShape());
  int64_t &size = shape[getShardDimension()];
  size = size / ranks + (size % ranks != 0);
  return RankedTensorType::get(shape,
                               elementType ? elementType : getStorageType());
}

LogicalResult ParamOp::verify() {
  if (failed(verifyName(*this, "parameter", getSymName()))) // C8
    return failure();
  auto name = [&] { return "parameter '" + getSymName().str() + "'"; };
  RankedTensorType type = getFullType();
  if (getSymName().empty())
    return emitOpError("has no name, which files and messages need");
  // C1
  if (type.getRank() == 0)
    return emitOpError() << name() << " has rank 0, expected rank 1 or more: "
                         << "declare it as "
                         << RankedTensorType::get({1}, type.getElementType());
  if (!type.hasStaticShape())
    return emitOpError() << name() << " has the type " << type
                         << ", expected a static shape";
  if (type.getEncoding())
    return emitOpError() << name() << " has the type " << type
                         << ", expected no encoding";
  // C2
  Type storage = type.getElementType();
  if (!isFloatDtype(storage) && !isOpaqueDtype(storage))
    return emitOpError() << name() << " has the element type " << storage
                         << ", expected " << listDtypes();
  // C3
  int64_t dim = getShardDimension();
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << name() << " has shard_dim " << dim
                         << ", expected a dimension of " << type;
  // C4
  if (isOpaque() && !getFrozen())
    return emitOpError() << name() << " has the element type " << storage
                         << ", which cannot be reduced, expected it to be "
                            "frozen";
  // C5
  if (failed(verifyPrecision(*this, name(), getPrecisionAttr(),
                             isOpaque() ? storage : Type())))
    return failure();
  // C7, as far as it does not depend on the grid.
  if (!getStorageUnits(storage, type.getShape().back()))
    return emitOpError() << name() << " has rows of " << type.getShape().back()
                         << " elements of " << storage
                         << ", expected rows of whole bytes";
  // C6: the layout over one rank counts the elements.
  if (!getLayout(1))
    return emitOpError() << name() << " has the type " << type
                         << ", which is too large: expected fewer than 2^62 "
                            "elements";
  return success();
}

ParamOp mlir::fsdp::lookupParam(Operation *from, SymbolRefAttr name,
                                SymbolTableCollection &symbolTable) {
  auto unit = symbolTable.lookupNearestSymbolFrom<UnitOp>(
      from, name.getRootReference());
  if (!unit || name.getNestedReferences().size() != 1)
    return {};
  return dyn_cast_or_null<ParamOp>(
      symbolTable.lookupSymbolIn(unit, name.getLeafReference()));
}

//===----------------------------------------------------------------------===//
// UnshardOp and ReduceGradsOp
//===----------------------------------------------------------------------===//

/// An op that makes its results by communication: dead when unused, but never
/// merged, hoisted or sunk.
static void
addAllocateEffects(Operation *op,
                   SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpResult result : op->getResults())
    effects.emplace_back(MemoryEffects::Allocate::get(), result);
}

SmallVector<SmallVector<int64_t>> UnshardOp::getGroups(const UnitGroup &group) {
  return {group.shardAxes};
}

SmallVector<SmallVector<int64_t>>
ReduceGradsOp::getGroups(const UnitGroup &group) {
  return {group.shardAxes, group.replicateAxes};
}

void UnshardOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addAllocateEffects(*this, effects);
}

void ReduceGradsOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addAllocateEffects(*this, effects);
}

/// The unit that `op` names, with its group; fails with an error.
template <typename OpTy>
static FailureOr<std::pair<UnitOp, UnitGroup>>
resolveUnit(OpTy op, SymbolTableCollection &symbolTable) {
  auto unit = symbolTable.lookupNearestSymbolFrom<UnitOp>(op, op.getUnitAttr());
  if (!unit)
    return op.emitOpError("names the unknown unit ") << op.getUnitAttr();
  FailureOr<UnitGroup> group = unit.getGroup(symbolTable);
  if (failed(group))
    return op.emitOpError("names the unit ")
           << op.getUnitAttr() << ", whose grid or axes are not valid";
  return std::make_pair(unit, *group);
}

/// "parameter 'wq' of unit 'layer0'".
static std::string describe(ParamOp param) {
  return "parameter '" + param.getSymName().str() + "' of unit '" +
         param.getUnit().getSymName().str() + "'";
}

/// Checks that the `what` (operand or result) for `param` is of type
/// `expected`.
static LogicalResult verifyType(Operation *op, StringRef what, ParamOp param,
                                Type actual, Type expected) {
  if (actual == expected)
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << what << " for " << describe(param) << " is "
                            << actual << ", expected " << expected;
  diag.attachNote(param.getLoc()) << "declared here";
  return diag;
}

/// Checks that there are `expected` operands and results.
static LogicalResult verifyCounts(Operation *op, UnitOp unit, size_t expected) {
  if (op->getNumOperands() == expected && op->getNumResults() == expected)
    return success();
  return op->emitOpError("expects ")
         << expected << " operands and results for unit '" << unit.getSymName()
         << "', but got " << op->getNumOperands() << " and "
         << op->getNumResults();
}

LogicalResult UnshardOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // C1
  auto resolved = resolveUnit(*this, symbolTable);
  if (failed(resolved))
    return failure();
  auto [unit, group] = *resolved;
  // C2
  SmallVector<ParamOp> params = llvm::to_vector(unit.getParams());
  if (failed(verifyCounts(*this, unit, params.size())))
    return failure();
  int64_t ranks = group.shardSize();
  for (auto [param, shard, full] :
       llvm::zip_equal(params, getShards(), getFull())) {
    // C3
    if (failed(verifyType(*this, "operand", param, shard.getType(),
                          param.getShardType(ranks))))
      return failure();
    // C4
    if (failed(verifyType(*this, "result", param, full.getType(),
                          param.getFullType().clone(param.getParamType()))))
      return failure();
  }
  return success();
}

LogicalResult
ReduceGradsOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // C1
  auto resolved = resolveUnit(*this, symbolTable);
  if (failed(resolved))
    return failure();
  auto [unit, group] = *resolved;
  SmallVector<ParamOp> params;
  DenseSet<Attribute> seen;
  for (auto name : getParams().getAsRange<SymbolRefAttr>()) {
    ParamOp param;
    if (name.getNestedReferences().size() == 1 &&
        name.getRootReference() == unit.getSymNameAttr())
      param = dyn_cast_or_null<ParamOp>(
          symbolTable.lookupSymbolIn(unit, name.getLeafReference()));
    if (!param)
      return emitOpError("names '")
             << name.getLeafReference().getValue() << "', but unit '"
             << unit.getSymName() << "' has no parameter of that name";
    // C2
    if (!seen.insert(name).second)
      return emitOpError("names ") << describe(param) << " twice";
    if (param.getFrozen())
      return (emitOpError("names ")
              << describe(param) << ", which is frozen and has no gradient")
                 .attachNote(param.getLoc())
             << "declared here";
    params.push_back(param);
  }
  // C3
  if (failed(verifyCounts(*this, unit, params.size())))
    return failure();
  int64_t ranks = group.shardSize();
  for (auto [param, gradient, shard] :
       llvm::zip_equal(params, getGradients(), getShards())) {
    // C4
    auto type = cast<RankedTensorType>(gradient.getType());
    if (!isFloatDtype(type.getElementType()))
      return emitOpError("gradient for ")
             << describe(param) << " is " << type
             << ", expected a floating-point dtype: f16, bf16, f32 or f64";
    if (failed(verifyType(*this, "gradient", param, type,
                          param.getFullType().clone(type.getElementType()))))
      return failure();
    // C5
    if (failed(verifyType(*this, "result", param, shard.getType(),
                          param.getShardType(ranks, param.getGradType()))))
      return failure();
  }
  return success();
}
