//===- BucketOps.cpp - buckets, and one verifier for all that use them ----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Dialect/Fsdp.h"

#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// ResolvedBucket
//===----------------------------------------------------------------------===//

FailureOr<ResolvedBucket>
ResolvedBucket::get(BucketOp bucket, SymbolTableCollection &symbolTable,
                    function_ref<InFlightDiagnostic()> emitError) {
  // Adds to the error if there is one to make; always fails.
  auto fail = [&](auto &&describe) -> LogicalResult {
    if (!emitError)
      return failure();
    InFlightDiagnostic diag = emitError();
    diag << "bucket '" << bucket.getSymName() << "' ";
    describe(diag);
    return failure();
  };

  // C3, C5: what the layout needs to be computed.
  Type wire = bucket.getWire();
  if (!isFloatDtype(wire) && !(bucket.isBytes() && bucket.isGather()))
    return fail([&](InFlightDiagnostic &diag) {
      diag << "has the wire type ";
      if (bucket.isBytes())
        diag << "bytes";
      else
        diag << wire;
      diag << ", expected the floating-point dtype f16, bf16, f32 or f64"
           << (bucket.isGather() ? ", or bytes" : "");
    });
  int64_t align = bucket.getAlignment();
  if (!isValidAlign(align))
    return fail([&](InFlightDiagnostic &diag) {
      diag << "has align " << align << ", expected a power of two from 1 to "
           << kMaxAlign;
    });
  // C1
  if (bucket.getMembers().empty())
    return fail([&](InFlightDiagnostic &diag) {
      diag << "has no member, expected at least one";
    });

  ResolvedBucket resolved;
  resolved.bucket = bucket;
  llvm::SmallDenseSet<Attribute> seen;
  std::vector<SegmentSize> sizes;
  sizes.reserve(bucket.getMembers().size());
  UnitOp lastUnit;
  for (auto name : bucket.getMembers().getAsRange<SymbolRefAttr>()) {
    // C1
    ParamOp param = lookupParam(bucket, name, symbolTable);
    if (!param)
      return fail([&](InFlightDiagnostic &diag) {
        diag << "has the unknown member " << name;
      });
    if (!seen.insert(name).second)
      return fail([&](InFlightDiagnostic &diag) {
        diag << "has the member " << name << " twice";
      });
    // C2: members of one unit stand together, so compare once per unit.
    UnitOp unit = param.getUnit();
    if (unit != lastUnit) {
      FailureOr<UnitGroup> group = unit.getGroup(symbolTable);
      if (failed(group))
        return fail([&](InFlightDiagnostic &diag) {
          diag << "has a member of unit '" << unit.getSymName()
               << "', whose grid or axes are not valid";
        });
      if (resolved.members.empty())
        resolved.group = *group;
      else if (*group != resolved.group)
        return fail([&](InFlightDiagnostic &diag) {
          diag << "has members on different grids or axes: '"
               << resolved.members.front().param.getSymName() << "' and '"
               << param.getSymName() << "'";
        });
      lastUnit = unit;
    }
    // C4
    if (!bucket.isGather() && param.getFrozen())
      return fail([&](InFlightDiagnostic &diag) {
        diag << "reduces the member '" << param.getSymName()
             << "', which is frozen and has no gradient";
      });
    if (param.isOpaque() && !bucket.isBytes())
      return fail([&](InFlightDiagnostic &diag) {
        diag << "has the wire type " << wire << ", but its member '"
             << param.getSymName() << "' of " << param.getStorageType()
             << " cannot be cast: expected bytes";
      });
    // C6
    std::optional<ParamLayout> layout =
        param.getLayout(resolved.group.shardSize());
    if (!layout)
      return fail([&](InFlightDiagnostic &diag) {
        diag << "has the member '" << param.getSymName()
             << "', which is too large";
      });
    Type memberWire = bucket.isBytes() ? param.getParamType() : wire;
    std::optional<int64_t> units =
        getStorageUnits(memberWire, layout->elements);
    if (!units)
      return fail([&](InFlightDiagnostic &diag) {
        diag << "has the member '" << param.getSymName() << "' of "
             << memberWire << ", whose shards are no whole bytes";
      });
    sizes.push_back({*units, getDtypeBytes(memberWire)});
    resolved.members.push_back({param, memberWire, *layout, Segment()});
  }
  std::optional<BucketLayout> layout = BucketLayout::get(
      sizes, resolved.group.shardSize(), getDtypeBytes(wire), align);
  if (!layout)
    return fail([&](InFlightDiagnostic &diag) {
      diag << "is too large: expected fewer than 2^62 bytes";
    });
  resolved.layout = std::move(*layout);
  for (auto [member, segment] :
       llvm::zip_equal(resolved.members, resolved.layout.segments))
    member.segment = segment;
  return resolved;
}

RankedTensorType ResolvedBucket::getPackedType() const {
  BucketOp op = bucket;
  return RankedTensorType::get({layout.ranks, layout.rowElements()},
                               op.getWire());
}

RankedTensorType ResolvedBucket::getFlatType() const {
  BucketOp op = bucket;
  return RankedTensorType::get({layout.rowElements()}, op.getWire());
}

RankedTensorType ResolvedBucket::getMemberType(size_t index,
                                               MemberForm form) const {
  ParamOp param = members[index].param;
  if (form == MemberForm::Shard)
    return param.getShardType(layout.ranks, members[index].wire);
  return param.getFullType().clone(members[index].wire);
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  if (failed(verifyName(*this, "bucket", getSymName()))) // C7
    return failure();
  return ResolvedBucket::get(*this, symbolTable, [&] { return emitOpError(); });
}

BucketOp mlir::fsdp::lookupBucket(BucketUserOpInterface op,
                                  SymbolTableCollection &symbolTable) {
  return symbolTable.lookupNearestSymbolFrom<BucketOp>(op, op.getBucketAttr());
}

//===----------------------------------------------------------------------===//
// The shared verifier of the ops that use a bucket
//===----------------------------------------------------------------------===//

// Types are made for messages only. In a module of a whole model they are
// looked up in a table that no cache holds, for each op after each pass.

/// True if `type` is the packed tensor or the flat shard of `resolved`.
static bool fitsBucket(ShapedType type, const ResolvedBucket &resolved,
                       BucketForm form) {
  int64_t shape[] = {resolved.layout.ranks, resolved.layout.rowElements()};
  BucketOp bucket = resolved.bucket;
  return type.getElementType() == bucket.getWire() &&
         type.getShape() ==
             ArrayRef(shape).drop_front(form == BucketForm::Packed ? 0 : 1);
}

/// True if `type` (tensor or memref) has the shape of the member's shard or
/// full tensor, and an element type that a cast on the way can reach.
static bool fitsMember(ShapedType type, const BucketMember &member,
                       MemberForm form) {
  ParamOp param = member.param;
  ArrayRef<int64_t> shape = type.getShape();
  ArrayRef<int64_t> full = param.getFullType().getShape();
  if (shape.size() != full.size())
    return false;
  for (auto [dim, size] : llvm::enumerate(full)) {
    bool isCut = form == MemberForm::Shard &&
                 static_cast<int64_t>(dim) == member.layout.dim;
    if (shape[dim] != (isCut ? member.layout.chunk : size))
      return false;
  }
  if (param.isOpaque())
    return type.getElementType() == param.getStorageType();
  return isFloatDtype(type.getElementType());
}

/// Checks everything about `op` that depends on its bucket: constraints C1 to
/// C3 of the local ops, C1 and C2 of the collectives.
static LogicalResult verifyBucketUse(BucketUserOpInterface op,
                                     SymbolTableCollection &symbolTable) {
  BucketOp bucket = lookupBucket(op, symbolTable);
  if (!bucket)
    return op.emitOpError("uses the unknown bucket ") << op.getBucketAttr();
  FailureOr<ResolvedBucket> resolved = ResolvedBucket::get(bucket, symbolTable);
  if (failed(resolved))
    return op.emitOpError("uses bucket ")
           << op.getBucketAttr() << ", which is not valid";
  auto noteBucket = [&](InFlightDiagnostic &diag) -> InFlightDiagnostic & {
    diag.attachNote(bucket.getLoc()) << "bucket declared here";
    return diag;
  };
  if (bucket.getKind() != op.getRequiredKind()) {
    InFlightDiagnostic diag =
        op.emitOpError("uses the ")
        << stringifyBucketKind(bucket.getKind()) << " bucket "
        << op.getBucketAttr() << ", expected a "
        << stringifyBucketKind(op.getRequiredKind()) << " bucket";
    return noteBucket(diag);
  }

  for (auto [value, form] : op.getBucketValues()) {
    auto type = cast<ShapedType>(value.getType());
    if (fitsBucket(type, *resolved, form))
      continue;
    RankedTensorType expected = form == BucketForm::Packed
                                    ? resolved->getPackedType()
                                    : resolved->getFlatType();
    InFlightDiagnostic diag =
        op.emitOpError() << "has the "
                         << (form == BucketForm::Packed ? "packed tensor"
                                                        : "flat shard")
                         << " " << type << " for bucket " << op.getBucketAttr()
                         << ", expected the shape and element type of "
                         << expected;
    return noteBucket(diag);
  }

  SmallVector<Value> values = op.getMemberValues();
  bool isCollective =
      isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op.getOperation());
  if (isCollective)
    return success();
  if (values.size() != resolved->members.size()) {
    InFlightDiagnostic diag =
        op.emitOpError("expects ")
        << resolved->members.size() << " tensors for the members of bucket "
        << op.getBucketAttr() << ", but got " << values.size();
    return noteBucket(diag);
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    if (fitsMember(cast<ShapedType>(value.getType()), resolved->members[index],
                   op.getMemberForm()))
      continue;
    ParamOp param = resolved->members[index].param;
    RankedTensorType expected =
        resolved->getMemberType(index, op.getMemberForm());
    InFlightDiagnostic diag =
        op.emitOpError() << "has " << value.getType() << " for member '"
                         << param.getSymName() << "' of bucket "
                         << op.getBucketAttr() << ", expected the shape of "
                         << expected << " and "
                         << (param.isOpaque() ? "that dtype"
                                              : "a floating-point dtype");
    diag.attachNote(param.getLoc()) << "parameter declared here";
    return diag;
  }
  return success();
}

/// Checks that `op` is wholly in one form: tensors and results, or memrefs,
/// `outs` and no result.
static LogicalResult verifyForm(BucketUserOpInterface op) {
  bool isBuffer = op.isBufferForm();
  if (isBuffer == op.getOutputOperands().empty())
    return op.emitOpError("on bucket ")
           << op.getBucketAttr()
           << (isBuffer ? " has neither results nor outs"
                        : " has results and outs, expected one of them");
  for (Type type : llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                      llvm::to_vector(op->getResultTypes())))
    if (isa<MemRefType>(type) != isBuffer)
      return op.emitOpError("on bucket ")
             << op.getBucketAttr() << " has the type " << type
             << ", expected a "
             << (isBuffer ? "memref beside outs" : "tensor beside results");
  return success();
}

/// Checks a constant that divides or multiplies.
static LogicalResult verifyPositive(BucketUserOpInterface op, StringRef what,
                                    std::optional<APFloat> value) {
  if (!value || (value->isFinite() && !value->isNegative() && !value->isZero()))
    return success();
  SmallString<32> text;
  value->toString(text);
  return op.emitOpError("on bucket ")
         << op.getBucketAttr() << " has " << what << " " << text
         << ", expected a positive finite number";
}

//===----------------------------------------------------------------------===//
// Shared effects
//===----------------------------------------------------------------------===//

/// A buffer form reads its inputs and writes its outputs. In the value form a
/// local op has no effect; a collective allocates, which keeps it where it is
/// and lets an unused one die.
static void
getBucketUseEffects(BucketUserOpInterface op, bool isCollective,
                    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!op.isBufferForm()) {
    if (isCollective)
      for (OpResult result : op->getResults())
        effects.emplace_back(MemoryEffects::Allocate::get(), result);
    return;
  }
  OperandRange outputs = op.getOutputOperands();
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    bool isOutput = !outputs.empty() &&
                    index >= outputs.getBeginOperandIndex() &&
                    index < outputs.getBeginOperandIndex() + outputs.size();
    if (isOutput)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

/// What all users of a bucket have in common.
#define FSDP_BUCKET_USER(OpTy, kind, isCollective)                             \
  BucketKind OpTy::getRequiredKind() { return BucketKind::kind; }              \
  LogicalResult OpTy::verifySymbolUses(SymbolTableCollection &symbolTable) {   \
    return verifyBucketUse(*this, symbolTable);                                \
  }                                                                            \
  void OpTy::getEffects(                                                       \
      SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {               \
    getBucketUseEffects(*this, isCollective, effects);                         \
  }                                                                            \
  Speculation::Speculatability OpTy::getSpeculatability() {                    \
    return isCollective || isBufferForm() ? Speculation::NotSpeculatable       \
                                          : Speculation::Speculatable;         \
  }

FSDP_BUCKET_USER(ConcatOp, gather, false)
FSDP_BUCKET_USER(UnchunkOp, gather, false)
FSDP_BUCKET_USER(AllGatherOp, gather, true)
FSDP_BUCKET_USER(ChunkCatOp, reduce, false)
FSDP_BUCKET_USER(SplitOp, reduce, false)
FSDP_BUCKET_USER(ReduceScatterOp, reduce, true)
FSDP_BUCKET_USER(AllReduceOp, reduce, true)

#undef FSDP_BUCKET_USER

//===----------------------------------------------------------------------===//
// Packing ops: concat and chunk_cat
//===----------------------------------------------------------------------===//

/// The one result, or the one output of the buffer form.
static Value getResultOrOutput(BucketUserOpInterface op) {
  return op.isBufferForm() ? op.getOutputOperands().front()
                           : Value(op->getResult(0));
}

static SmallVector<Value> getResultsOrOutputs(BucketUserOpInterface op) {
  if (op.isBufferForm())
    return llvm::to_vector_of<Value>(op.getOutputOperands());
  return llvm::to_vector_of<Value>(op->getResults());
}

using BucketValues = SmallVector<std::pair<Value, BucketForm>>;

SmallVector<Value> ConcatOp::getMemberValues() {
  return llvm::to_vector_of<Value>(getInputs());
}
MemberForm ConcatOp::getMemberForm() { return MemberForm::Shard; }
BucketValues ConcatOp::getBucketValues() {
  return {{getResultOrOutput(*this), BucketForm::Flat}};
}
OperandRange ConcatOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult ConcatOp::verify() { return verifyForm(*this); }

SmallVector<Value> ChunkCatOp::getMemberValues() {
  return llvm::to_vector_of<Value>(getInputs());
}
MemberForm ChunkCatOp::getMemberForm() { return MemberForm::Full; }
BucketValues ChunkCatOp::getBucketValues() {
  return {{getResultOrOutput(*this), BucketForm::Packed}};
}
OperandRange ChunkCatOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult ChunkCatOp::verify() {
  if (failed(verifyForm(*this)))
    return failure();
  return verifyPositive(*this, "divide", getDivide()); // C4
}

//===----------------------------------------------------------------------===//
// Unpacking ops: unchunk and split
//===----------------------------------------------------------------------===//

SmallVector<Value> UnchunkOp::getMemberValues() {
  return getResultsOrOutputs(*this);
}
MemberForm UnchunkOp::getMemberForm() { return MemberForm::Full; }
BucketValues UnchunkOp::getBucketValues() {
  return {{getPacked(), BucketForm::Packed}};
}
OperandRange UnchunkOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult UnchunkOp::verify() { return verifyForm(*this); }

SmallVector<Value> SplitOp::getMemberValues() {
  return getResultsOrOutputs(*this);
}
MemberForm SplitOp::getMemberForm() { return MemberForm::Shard; }
BucketValues SplitOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat}};
}
OperandRange SplitOp::getOutputOperands() { return getODSOperands(2); }
LogicalResult SplitOp::verify() {
  if (failed(verifyForm(*this)) ||
      failed(verifyPositive(*this, "divide", getDivide()))) // C4
    return failure();
  // C5
  SmallVector<Value> shards = getMemberValues();
  if (getAdd().empty())
    return success();
  if (getAdd().size() != shards.size())
    return emitOpError("on bucket ")
           << getBucketAttr() << " adds " << getAdd().size()
           << " tensors, expected " << shards.size();
  for (auto [index, old, shard] : llvm::enumerate(getAdd(), shards)) {
    auto added = cast<ShapedType>(old.getType());
    auto type = cast<ShapedType>(shard.getType());
    if (added.getShape() != type.getShape() ||
        added.getElementType() != type.getElementType())
      return emitOpError("on bucket ")
             << getBucketAttr() << " adds " << added << " to member " << index
             << ", expected " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

SmallVector<Value> AllGatherOp::getMemberValues() { return {}; }
MemberForm AllGatherOp::getMemberForm() { return MemberForm::Shard; }
BucketValues AllGatherOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat},
          {getResultOrOutput(*this), BucketForm::Packed}};
}
OperandRange AllGatherOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult AllGatherOp::verify() { return verifyForm(*this); }

/// Constraints C3 and C4 of the reducing collectives.
template <typename OpTy>
static LogicalResult verifyReduction(OpTy op) {
  if (failed(verifyForm(op)) ||
      failed(verifyPositive(op, "premul", op.getMultiplier())))
    return failure();
  if ((op.getReduction() == ReduceOp::premul) != op.getMultiplier().has_value())
    return op.emitOpError("on bucket ")
           << op.getBucketAttr() << " has the reduction "
           << stringifyReduceOp(op.getReduction())
           << (op.getMultiplier() ? " with" : " without")
           << " a multiplier: expected premul with one, or another without";
  if (op.getAccumulate() && !op.getAccumulate()->isF32())
    return op.emitOpError("on bucket ")
           << op.getBucketAttr() << " accumulates in " << *op.getAccumulate()
           << ", expected f32";
  return success();
}

SmallVector<Value> ReduceScatterOp::getMemberValues() { return {}; }
MemberForm ReduceScatterOp::getMemberForm() { return MemberForm::Shard; }
BucketValues ReduceScatterOp::getBucketValues() {
  return {{getPacked(), BucketForm::Packed},
          {getResultOrOutput(*this), BucketForm::Flat}};
}
OperandRange ReduceScatterOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult ReduceScatterOp::verify() { return verifyReduction(*this); }

SmallVector<Value> AllReduceOp::getMemberValues() { return {}; }
MemberForm AllReduceOp::getMemberForm() { return MemberForm::Shard; }
BucketValues AllReduceOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat},
          {getResultOrOutput(*this), BucketForm::Flat}};
}
OperandRange AllReduceOp::getOutputOperands() { return getODSOperands(1); }
LogicalResult AllReduceOp::verify() { return verifyReduction(*this); }
