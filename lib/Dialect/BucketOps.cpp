//===- BucketOps.cpp - buckets, and one verifier for all that use them ----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptionalError.h"
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
  auto fail = [&] {
    return OptionalError(emitError, "bucket", bucket.getSymName());
  };

  // C3, C5: what the layout needs to be computed.
  Type wire = bucket.getWire();
  if (!isFloatDtype(wire) && !(bucket.isBytes() && bucket.isGather())) {
    OptionalError error = fail();
    error << "has the wire type ";
    if (bucket.isBytes())
      error << "bytes";
    else
      error << wire;
    error << ", expected the floating-point dtype f16, bf16, f32 or f64"
          << (bucket.isGather() ? ", or bytes" : "");
    return error;
  }
  int64_t align = bucket.getAlignment();
  if (!isValidAlign(align))
    return fail() << "has align " << align
                  << ", expected a power of two from 1 to " << kMaxAlign;
  // C1
  if (bucket.getMembers().empty())
    return fail() << "has no member, expected at least one";

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
      return fail() << "has the unknown member " << name;
    if (!seen.insert(name).second)
      return fail() << "has the member " << name << " twice";
    // C2: members of one unit stand together, so compare once per unit.
    UnitOp unit = param.getUnit();
    if (unit != lastUnit) {
      FailureOr<UnitGroup> group = unit.getGroup(symbolTable);
      if (failed(group))
        return fail() << "has a member of unit '" << unit.getSymName()
                      << "', whose grid or axes are not valid";
      if (resolved.members.empty())
        resolved.group = *group;
      else if (*group != resolved.group)
        return fail() << "has members on different grids or axes: '"
                      << resolved.members.front().param.getSymName()
                      << "' and '" << param.getSymName() << "'";
      lastUnit = unit;
    }
    // C4
    if (!bucket.isGather() && param.getFrozen())
      return fail() << "reduces the member '" << param.getSymName()
                    << "', which is frozen and has no gradient";
    if (param.isOpaque() && !bucket.isBytes())
      return fail() << "has the wire type " << wire << ", but its member '"
                    << param.getSymName() << "' of " << param.getStorageType()
                    << " cannot be cast: expected bytes";
    // C6
    std::optional<ParamLayout> layout =
        param.getLayout(resolved.group.shardSize());
    if (!layout)
      return fail() << "has the member '" << param.getSymName()
                    << "', which is too large";
    Type memberWire = bucket.isBytes() ? param.getParamType() : wire;
    std::optional<int64_t> units =
        getStorageUnits(memberWire, layout->elements);
    if (!units)
      return fail() << "has the member '" << param.getSymName() << "' of "
                    << memberWire << ", whose shards are no whole bytes";
    sizes.push_back({*units, getDtypeBytes(memberWire)});
    resolved.members.push_back({param, memberWire, *layout, Segment()});
  }
  std::optional<BucketLayout> layout = BucketLayout::get(
      sizes, resolved.group.shardSize(), getDtypeBytes(wire), align);
  if (!layout)
    return fail() << "is too large: expected fewer than 2^62 bytes";
  resolved.layout = std::move(*layout);
  for (auto [member, segment] :
       llvm::zip_equal(resolved.members, resolved.layout.segments))
    member.segment = segment;
  return resolved;
}

FlatSymbolRefAttr ResolvedBucket::getSymbol() const {
  BucketOp op = bucket;
  return FlatSymbolRefAttr::get(op.getSymNameAttr());
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

// Constraints C1 to C3 of the local ops, C1 and C2 of the collectives.
LogicalResult mlir::fsdp::verifyBucketUse(BucketUserOpInterface op,
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

  auto local = dyn_cast<LocalOpInterface>(op.getOperation());
  if (!local)
    return success();
  SmallVector<Value> values = local.getMemberValues();
  if (values.size() != resolved->members.size()) {
    InFlightDiagnostic diag =
        op.emitOpError("expects ")
        << resolved->members.size() << " tensors for the members of bucket "
        << op.getBucketAttr() << ", but got " << values.size();
    return noteBucket(diag);
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    if (fitsMember(cast<ShapedType>(value.getType()), resolved->members[index],
                   local.getMemberForm()))
      continue;
    ParamOp param = resolved->members[index].param;
    RankedTensorType expected =
        resolved->getMemberType(index, local.getMemberForm());
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

LogicalResult mlir::fsdp::verifyBucketForm(BucketUserOpInterface op) {
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

void mlir::fsdp::getBucketUserEffects(
    BucketUserOpInterface op,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!op.isBufferForm()) {
    if (!isa<LocalOpInterface>(op.getOperation()))
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

Speculation::Speculatability
mlir::fsdp::getBucketUserSpeculatability(BucketUserOpInterface op) {
  return isa<LocalOpInterface>(op.getOperation()) && !op.isBufferForm()
             ? Speculation::Speculatable
             : Speculation::NotSpeculatable;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

StringRef StageRange::whyNotAt(Stage stage) const {
  if (stage == Stage::Input) // declared to packed
    return first > Stage::Packed ? early : StringRef();
  if (stage < first)
    return early;
  return stage > last ? late : StringRef();
}

StageRange mlir::fsdp::getBucketStages() {
  return {Stage::Explicit, Stage::Buffered,
          "buckets come later, from fsdp-expand-units", ""};
}

SmallVector<StageRange, 2>
mlir::fsdp::getBucketUserStages(BucketUserOpInterface op) {
  if (op.isBufferForm())
    return {getBucketStages(),
            {Stage::Buffered, Stage::Buffered, "buffer forms come later", ""}};
  return {getBucketStages(),
          {Stage::Explicit, Stage::Packed, "",
           "it works on tensors: bufferization should have replaced it"}};
}

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

bool ConcatOp::packs() { return true; }
SmallVector<Value> ConcatOp::getMemberValues() {
  return llvm::to_vector_of<Value>(getInputs());
}
void ConcatOp::build(OpBuilder &builder, OperationState &state,
                     const ResolvedBucket &bucket, ValueRange inputs) {
  build(builder, state, bucket.getFlatType(), inputs, bucket.getSymbol(),
        /*output=*/Value());
}
MemberForm ConcatOp::getMemberForm() { return MemberForm::Shard; }
BucketValues ConcatOp::getBucketValues() {
  return {{getResultOrOutput(*this), BucketForm::Flat}};
}
MutableOperandRange ConcatOp::getOutputOperandsMutable() {
  return getOutputMutable();
}

bool ChunkCatOp::packs() { return true; }
SmallVector<Value> ChunkCatOp::getMemberValues() {
  return llvm::to_vector_of<Value>(getInputs());
}
void ChunkCatOp::build(OpBuilder &builder, OperationState &state,
                       const ResolvedBucket &bucket, ValueRange inputs,
                       FloatAttr divide) {
  build(builder, state, bucket.getPackedType(), inputs, bucket.getSymbol(),
        divide, /*output=*/Value());
}
MemberForm ChunkCatOp::getMemberForm() { return MemberForm::Full; }
BucketValues ChunkCatOp::getBucketValues() {
  return {{getResultOrOutput(*this), BucketForm::Packed}};
}
MutableOperandRange ChunkCatOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
LogicalResult ChunkCatOp::verify() {
  return verifyPositive(*this, "divide", getDivide()); // C4
}

//===----------------------------------------------------------------------===//
// Unpacking ops: unchunk and split
//===----------------------------------------------------------------------===//

/// `types`, or the members' types in their wire dtypes.
static SmallVector<Type> getMemberTypes(const ResolvedBucket &bucket,
                                        MemberForm form, TypeRange types) {
  SmallVector<Type> result(types);
  if (types.empty())
    for (size_t index = 0; index < bucket.members.size(); ++index)
      result.push_back(bucket.getMemberType(index, form));
  return result;
}

void UnchunkOp::build(OpBuilder &builder, OperationState &state,
                      const ResolvedBucket &bucket, Value packed,
                      TypeRange types) {
  build(builder, state, getMemberTypes(bucket, MemberForm::Full, types), packed,
        bucket.getSymbol(), /*outputs=*/ValueRange());
}
bool UnchunkOp::packs() { return false; }
SmallVector<Value> UnchunkOp::getMemberValues() {
  return getResultsOrOutputs(*this);
}
MemberForm UnchunkOp::getMemberForm() { return MemberForm::Full; }
BucketValues UnchunkOp::getBucketValues() {
  return {{getPacked(), BucketForm::Packed}};
}
MutableOperandRange UnchunkOp::getOutputOperandsMutable() {
  return getOutputsMutable();
}

void SplitOp::build(OpBuilder &builder, OperationState &state,
                    const ResolvedBucket &bucket, Value flat, FloatAttr divide,
                    ValueRange add, TypeRange types) {
  build(builder, state, getMemberTypes(bucket, MemberForm::Shard, types), flat,
        bucket.getSymbol(), divide, add, /*outputs=*/ValueRange());
}
bool SplitOp::packs() { return false; }
SmallVector<Value> SplitOp::getMemberValues() {
  return getResultsOrOutputs(*this);
}
MemberForm SplitOp::getMemberForm() { return MemberForm::Shard; }
BucketValues SplitOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat}};
}
MutableOperandRange SplitOp::getOutputOperandsMutable() {
  return getOutputsMutable();
}
LogicalResult SplitOp::verify() {
  if (failed(verifyPositive(*this, "divide", getDivide()))) // C4
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

LogicalResult mlir::fsdp::verifyCollectiveKind(CollectiveOpInterface op) {
  CollectiveKind kind = op.getCollectiveKind();
  bool reduces = op.getCollectiveReduction().has_value();
  if (kind == CollectiveKind::Other ||
      reduces == (kind != CollectiveKind::AllGather))
    return success();
  return op->emitOpError("on bucket ")
         << op.getBucketAttr()
         << (reduces ? " gathers and has a reduction, expected none"
                     : " reduces and has no reduction, expected one");
}

void AllGatherOp::build(OpBuilder &builder, OperationState &state,
                        const ResolvedBucket &bucket, Value flat) {
  build(builder, state, bucket.getPackedType(), flat, bucket.getSymbol(),
        /*output=*/Value());
}
CollectiveKind AllGatherOp::getCollectiveKind() {
  return CollectiveKind::AllGather;
}
SmallVector<int64_t> AllGatherOp::getGroupAxes(const UnitGroup &group) {
  return group.shardAxes;
}
BucketValues AllGatherOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat},
          {getResultOrOutput(*this), BucketForm::Packed}};
}
MutableOperandRange AllGatherOp::getOutputOperandsMutable() {
  return getOutputMutable();
}

/// Constraints C3 and C4 of the reducing collectives.
template <typename OpTy>
static LogicalResult verifyReduction(OpTy op) {
  if (failed(verifyPositive(op, "premul", op.getMultiplier())))
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

void ReduceScatterOp::build(OpBuilder &builder, OperationState &state,
                            const ResolvedBucket &bucket, Value packed,
                            const CollectiveReduction &reduction) {
  build(builder, state, bucket.getFlatType(),
        ReduceOpAttr::get(builder.getContext(), reduction.op),
        reduction.multiplier, reduction.accumulate, packed, bucket.getSymbol(),
        /*output=*/Value());
}
CollectiveKind ReduceScatterOp::getCollectiveKind() {
  return CollectiveKind::ReduceScatter;
}
SmallVector<int64_t> ReduceScatterOp::getGroupAxes(const UnitGroup &group) {
  return group.shardAxes;
}
std::optional<CollectiveReduction> ReduceScatterOp::getCollectiveReduction() {
  return CollectiveReduction{getReduction(), getMultiplierAttr(),
                             getAccumulateAttr()};
}
BucketValues ReduceScatterOp::getBucketValues() {
  return {{getPacked(), BucketForm::Packed},
          {getResultOrOutput(*this), BucketForm::Flat}};
}
MutableOperandRange ReduceScatterOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
LogicalResult ReduceScatterOp::verify() { return verifyReduction(*this); }

void AllReduceOp::build(OpBuilder &builder, OperationState &state,
                        const ResolvedBucket &bucket, Value flat,
                        const CollectiveReduction &reduction) {
  build(builder, state, bucket.getFlatType(),
        ReduceOpAttr::get(builder.getContext(), reduction.op),
        reduction.multiplier, reduction.accumulate, flat, bucket.getSymbol(),
        /*output=*/Value());
}
CollectiveKind AllReduceOp::getCollectiveKind() {
  return CollectiveKind::AllReduce;
}
SmallVector<int64_t> AllReduceOp::getGroupAxes(const UnitGroup &group) {
  return group.replicateAxes;
}
std::optional<CollectiveReduction> AllReduceOp::getCollectiveReduction() {
  return CollectiveReduction{getReduction(), getMultiplierAttr(),
                             getAccumulateAttr()};
}
BucketValues AllReduceOp::getBucketValues() {
  return {{getFlat(), BucketForm::Flat},
          {getResultOrOutput(*this), BucketForm::Flat}};
}
MutableOperandRange AllReduceOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
LogicalResult AllReduceOp::verify() { return verifyReduction(*this); }
