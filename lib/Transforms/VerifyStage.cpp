//===- VerifyStage.cpp - the invariants of the stages ---------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A verifier sees one op and the symbols that it names. What only the whole
// module shows is checked here: which ops may occur, that names are unique over
// all units, that signatures fit the parameters that they name, and what the
// pass before should have achieved. Every check asks the same function that the
// pass asks, so the two cannot disagree.
//
// Nothing is changed, all violations are reported, and the time is linear in
// the IR: one walk, one layout per use of a bucket.
//
//===----------------------------------------------------------------------===//

#include "GatherInPlace.h"
#include "fsdp/Analysis/CastFolding.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYSTAGEPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static StringRef stringify(Stage stage) {
  switch (stage) {
  case Stage::Input:
    return "input";
  case Stage::Declared:
    return "declared";
  case Stage::Explicit:
    return "explicit";
  case Stage::Packed:
    return "packed";
  case Stage::Buffered:
    return "buffered";
  }
  llvm_unreachable("unknown stage");
}

namespace {
/// Checks one module against one stage.
class StageVerifier {
public:
  StageVerifier(Stage stage, bool mixed) : stage(stage), mixed(mixed) {}

  LogicalResult verify(ModuleOp module);

private:
  /// Starts the report of a violation.
  InFlightDiagnostic report(Operation *op) {
    isValid = false;
    return op->emitOpError();
  }

  void checkOp(Operation *op);
  void checkParam(ParamOp param);
  void checkPrecision(ParamOp param);
  void checkBucket(BucketOp bucket);
  void checkLocalOp(LocalOpInterface op);
  void checkAddition(arith::AddFOp add);
  void checkGather(AllGatherOp gather);
  void checkSignature(FunctionOpInterface function);
  void checkSignatureType(FunctionOpInterface function, const Twine &place,
                          Type type, DictionaryAttr attributes);

  /// True if the invariants of buckets hold from this stage on.
  bool hasBuckets() const {
    return stage != Stage::Input && stage != Stage::Declared;
  }
  /// True if `bucket` must look like what fsdp-expand-units makes.
  bool mustBeNaive() const { return stage == Stage::Explicit && !mixed; }

  Stage stage;
  bool mixed; ///< explicit, beside buckets of stage packed
  SymbolTableCollection symbolTable;
  bool isValid = true;
  /// First declaration of every name, by the module that holds the units.
  DenseMap<std::pair<Operation *, StringAttr>, ParamOp> paramsByName;
  /// The bucket that a sum of flat shards belongs to.
  DenseMap<Value, FlatSymbolRefAttr> bucketOfSum;
};
} // namespace

//===----------------------------------------------------------------------===//
// Ops that a stage forbids
//===----------------------------------------------------------------------===//

void StageVerifier::checkOp(Operation *op) {
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return checkSignature(function);
  if (auto param = dyn_cast<ParamOp>(op))
    return checkParam(param);
  if (auto add = dyn_cast<arith::AddFOp>(op))
    return checkAddition(add);
  if (auto staged = dyn_cast<StagedOpInterface>(op))
    for (const StageRange &range : staged.getStages())
      if (StringRef reason = range.whyNotAt(stage); !reason.empty()) {
        InFlightDiagnostic diag =
            report(op) << "on " << staged.describeSubject()
                       << " is not allowed at stage " << stringify(stage);
        diag.attachNote() << reason;
        return;
      }
  if (auto bucket = dyn_cast<BucketOp>(op))
    return checkBucket(bucket);
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return checkGather(gather);
  if (auto local = dyn_cast<LocalOpInterface>(op))
    checkLocalOp(local);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

void StageVerifier::checkParam(ParamOp param) {
  UnitOp unit = param.getUnit();
  auto [place, isNew] = paramsByName.try_emplace(
      {unit->getParentOp(), param.getSymNameAttr()}, param);
  if (!isNew) {
    ParamOp first = place->second;
    InFlightDiagnostic diag = report(param)
                              << "parameter '" << param.getSymName()
                              << "' is declared in two units, '"
                              << first.getUnit().getSymName() << "' and '"
                              << unit.getSymName() << "'";
    diag.attachNote(first.getLoc()) << "declared here first";
  }
  if (hasBuckets())
    checkPrecision(param);
}

void StageVerifier::checkPrecision(ParamOp param) {
  PrecisionAttr precision = param.getPrecisionAttr();
  std::pair<StringRef, Type> entries[] = {
      {"param", precision ? precision.getParam() : Type()},
      {"reduce", precision ? precision.getReduce() : Type()},
      {"grad", precision ? precision.getGrad() : Type()}};
  for (auto [name, type] : entries) {
    // Opaque storage is gathered as it is: it has a param dtype alone.
    bool isExpected = !param.isOpaque() || name == "param";
    if (isExpected == bool(type))
      continue;
    InFlightDiagnostic diag =
        report(param) << "parameter '" << param.getSymName() << "' of unit '"
                      << param.getUnit().getSymName() << "' has "
                      << (isExpected ? "no " : "a ") << name
                      << " dtype, expected <"
                      << (param.isOpaque() ? "param" : "param, reduce, grad")
                      << "> at stage " << stringify(stage);
    diag.attachNote() << "fsdp-resolve-precision writes it";
    return;
  }
}

void StageVerifier::checkBucket(BucketOp bucket) {
  if (mustBeNaive() && bucket.getMembers().size() != 1)
    report(bucket) << "bucket '" << bucket.getSymName() << "' has "
                   << bucket.getMembers().size()
                   << " members, expected 1 at stage explicit";
  if (bucket.isGather())
    return;
  for (auto name : bucket.getMembers().getAsRange<SymbolRefAttr>()) {
    ParamOp param = lookupParam(bucket, name, symbolTable);
    Type reduce = param.getReduceType(); // null: reported by checkPrecision
    if (!reduce || reduce == bucket.getWire())
      continue;
    InFlightDiagnostic diag = report(bucket)
                              << "bucket '" << bucket.getSymName()
                              << "' reduces in " << bucket.getWire()
                              << ", but its member '" << param.getSymName()
                              << "' has the reduce dtype " << reduce;
    diag.attachNote(param.getLoc()) << "parameter declared here";
  }
}

//===----------------------------------------------------------------------===//
// Local ops and collectives
//===----------------------------------------------------------------------===//

void StageVerifier::checkLocalOp(LocalOpInterface op) {
  if (stage != Stage::Explicit && stage != Stage::Packed)
    return;
  SmallVector<Value> values = op.getMemberValues();
  BucketOp bucket = lookupBucket(op, symbolTable);
  if (stage == Stage::Explicit && mixed)
    return;
  // Everything that verifies resolves.
  FailureOr<ResolvedBucket> resolved = ResolvedBucket::get(bucket, symbolTable);
  for (auto [value, member] : llvm::zip_equal(values, resolved->members)) {
    ParamOp param = member.param;
    if (stage == Stage::Explicit) {
      if (getElementTypeOrSelf(value.getType()) == member.wire)
        continue;
      InFlightDiagnostic diag =
          report(op) << "casts member '" << param.getSymName()
                     << "' of bucket '" << bucket.getSymName() << "' between "
                     << value.getType() << " and the wire dtype " << member.wire
                     << ", but at stage explicit casts are ops of their own";
      diag.attachNote(param.getLoc()) << "parameter declared here";
      continue;
    }
    std::optional<AdjacentCast> cast = getAdjacentCast(op, value, member);
    if (!cast || !cast->isFoldable())
      continue;
    Operation *first = cast->casts.front();
    InFlightDiagnostic diag =
        report(op) << "is beside '" << first->getName() << "' of member '"
                   << param.getSymName() << "' of bucket '"
                   << bucket.getSymName()
                   << "', but at stage packed no cast is left that can be "
                      "folded into a local op";
    diag.attachNote(first->getLoc()) << "fsdp-fuse-casts would fold this cast";
  }
}

void StageVerifier::checkAddition(arith::AddFOp add) {
  if (stage != Stage::Explicit && stage != Stage::Packed)
    return;
  // The walk meets a sum before the sums that read it, so one step back is
  // enough. What comes from elsewhere has no bucket that can be seen.
  auto getBucket = [&](Value value) -> FlatSymbolRefAttr {
    Operation *source = value.getDefiningOp();
    if (auto user = dyn_cast_or_null<BucketUserOpInterface>(source))
      if (llvm::is_contained(user.getBucketValues(),
                             std::make_pair(value, BucketForm::Flat)))
        return user.getBucketAttr();
    return bucketOfSum.lookup(value);
  };
  FlatSymbolRefAttr lhs = getBucket(add.getLhs());
  FlatSymbolRefAttr rhs = getBucket(add.getRhs());
  if (lhs && rhs && lhs != rhs)
    report(add) << "adds flat shards of two buckets, " << lhs << " and " << rhs
                << ", expected a partial sum of the same bucket";
  if (FlatSymbolRefAttr bucket = lhs ? lhs : rhs)
    bucketOfSum[add.getResult()] = bucket;
}

void StageVerifier::checkGather(AllGatherOp gather) {
  if (stage != Stage::Buffered || !whyNotInPlace(gather).empty())
    return;
  InFlightDiagnostic diag =
      report(gather) << "on bucket '" << gather.getBucket()
                     << "' reads a packed buffer of its own, expected this "
                        "rank's row of its output at stage buffered";
  diag.attachNote() << "fsdp-gather-in-place would pack it there";
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

void StageVerifier::checkSignature(FunctionOpInterface function) {
  for (unsigned i = 0, end = function.getNumArguments(); i < end; ++i)
    checkSignatureType(function, "argument " + Twine(i),
                       function.getArgumentTypes()[i],
                       function.getArgAttrDict(i));
  for (unsigned i = 0, end = function.getNumResults(); i < end; ++i)
    checkSignatureType(function, "result " + Twine(i),
                       function.getResultTypes()[i],
                       function.getResultAttrDict(i));
}

void StageVerifier::checkSignatureType(FunctionOpInterface function,
                                       const Twine &place, Type type,
                                       DictionaryAttr attributes) {
  StringRef role;
  SymbolRefAttr name;
  for (StringRef candidate :
       {FsdpDialect::getShardAttrName(), FsdpDialect::getFullAttrName(),
        FsdpDialect::getShardGradAttrName(),
        FsdpDialect::getFullGradAttrName()}) {
    if (!attributes || !attributes.contains(candidate))
      continue;
    if (name) {
      report(function) << place << " is both '" << role << "' and '"
                       << candidate << "', expected one of them";
      return;
    }
    role = candidate;
    name = attributes.getAs<SymbolRefAttr>(candidate);
  }
  if (!name)
    return;
  ParamOp param = lookupParam(function, name, symbolTable);
  if (!param) {
    report(function) << place << " is '" << role
                     << "' of the unknown parameter " << name;
    return;
  }
  bool isGrad = role == FsdpDialect::getShardGradAttrName() ||
                role == FsdpDialect::getFullGradAttrName();
  bool isShard = role == FsdpDialect::getShardAttrName() ||
                 role == FsdpDialect::getShardGradAttrName();
  auto describeType = [&](InFlightDiagnostic &diag) -> InFlightDiagnostic & {
    diag << place << " is " << type << ", but '" << role << "' of " << name
         << " expects ";
    diag.attachNote(param.getLoc()) << "parameter declared here";
    return diag;
  };
  if (isGrad && param.isOpaque()) {
    InFlightDiagnostic diag = report(function);
    describeType(diag) << "a parameter with a gradient, not storage of "
                       << param.getStorageType();
    return;
  }
  FailureOr<UnitGroup> group = param.getUnit().getGroup(symbolTable);
  RankedTensorType expected =
      isShard ? param.getShardType(group->shardSize()) : param.getFullType();
  auto shaped = dyn_cast<ShapedType>(type);
  bool fits =
      isa<RankedTensorType, MemRefType>(type) &&
      shaped.getShape() == expected.getShape() &&
      (param.isOpaque() ? shaped.getElementType() == param.getStorageType()
                        : isFloatDtype(shaped.getElementType()));
  if (fits)
    return;
  InFlightDiagnostic diag = report(function);
  describeType(diag) << "the shape of " << expected << " and "
                     << (param.isOpaque() ? "that dtype"
                                          : "a floating-point dtype");
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult StageVerifier::verify(ModuleOp module) {
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { checkOp(op); });
  return success(isValid);
}

namespace {
struct VerifyStagePass : fsdp::impl::VerifyStagePassBase<VerifyStagePass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(StageVerifier(stage, mixed).verify(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
