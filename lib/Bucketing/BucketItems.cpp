//===- BucketItems.cpp - what forming buckets works on --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Bucketing/BucketItems.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

StringRef mlir::fsdp::stringifyRefusal(Refusal refusal) {
  switch (refusal) {
  case Refusal::OtherKind:
    return "other-kind";
  case Refusal::OtherBlock:
    return "other-block";
  case Refusal::OtherAxes:
    return "other-axes";
  case Refusal::OtherDtype:
    return "other-dtype";
  case Refusal::OtherReduction:
    return "other-reduction";
  case Refusal::OtherUnit:
    return "other-unit";
  case Refusal::OtherKey:
    return "other-key";
  case Refusal::Partial:
    return "partial";
  case Refusal::Depends:
    return "depends";
  case Refusal::UsedBefore:
    return "used-before";
  case Refusal::Oversize:
    return "oversize";
  case Refusal::SizeLimit:
    return "size-limit";
  }
  llvm_unreachable("unknown refusal");
}

std::optional<Refusal> BucketKey::differsFrom(const BucketKey &other) const {
  if (kind != other.kind)
    return Refusal::OtherKind;
  if (block != other.block)
    return Refusal::OtherBlock;
  if (grid != other.grid || shardAxes != other.shardAxes ||
      replicateAxes != other.replicateAxes)
    return Refusal::OtherAxes;
  if (dtype != other.dtype)
    return Refusal::OtherDtype;
  if (reduction != other.reduction)
    return Refusal::OtherReduction;
  if (unitOp != other.unitOp)
    return Refusal::OtherUnit;
  return std::nullopt;
}

SmallVector<Operation *, 4> BucketItem::getOps() const {
  SmallVector<Operation *, 4> ops;
  for (Operation *op : {pack, collective, allReduce, unpack})
    if (op)
      ops.push_back(op);
  return ops;
}

int64_t BucketItem::getInputBytes() const {
  return key.kind == BucketKind::gather ? rowBytes : ranks * rowBytes;
}

int64_t BucketItem::getOutputBytes() const {
  return key.kind == BucketKind::gather ? ranks * rowBytes : rowBytes;
}

int64_t BucketItem::getElements() const {
  int64_t sum = 0;
  for (const ItemMember &member : members)
    sum = addSizes(sum, ParamOp(member.param).getFullType().getNumElements());
  return sum;
}

Type BucketItem::getCommonDtype() const {
  Type common = members.front().wire;
  bool isOne = llvm::all_of(
      members, [&](const ItemMember &member) { return member.wire == common; });
  return isOne ? common : Type();
}

//===----------------------------------------------------------------------===//
// The ops of an item
//===----------------------------------------------------------------------===//

/// The only user of `value` if it is an `OpTy` of `bucket`, else null.
template <typename OpTy>
static OpTy getOnlyUser(Value value, FlatSymbolRefAttr bucket) {
  if (!value.hasOneUse())
    return {};
  auto user = dyn_cast<OpTy>(*value.getUsers().begin());
  return user && user.getBucketAttr() == bucket ? user : OpTy();
}

/// The `OpTy` of `bucket` that makes `value` for nobody else, else null.
template <typename OpTy>
static OpTy getOwnProducer(Value value, FlatSymbolRefAttr bucket) {
  auto producer = value.getDefiningOp<OpTy>();
  bool isOwn =
      producer && value.hasOneUse() && producer.getBucketAttr() == bucket;
  return isOwn ? producer : OpTy();
}

static void findGatherOps(BucketItem &item) {
  auto gather = dyn_cast<AllGatherOp>(item.collective);
  if (!gather)
    return;
  auto concat =
      getOwnProducer<ConcatOp>(gather.getFlat(), gather.getBucketAttr());
  auto unchunk =
      getOnlyUser<UnchunkOp>(gather.getPacked(), gather.getBucketAttr());
  if (!concat || !unchunk)
    return;
  item.pack = concat;
  item.unpack = unchunk;
}

static void findReduceOps(BucketItem &item) {
  auto scatter = dyn_cast<ReduceScatterOp>(item.collective);
  if (!scatter)
    return;
  FlatSymbolRefAttr bucket = scatter.getBucketAttr();
  auto chunkCat = getOwnProducer<ChunkCatOp>(scatter.getPacked(), bucket);
  Value flat = scatter.getFlat();
  auto allReduce = getOnlyUser<AllReduceOp>(flat, bucket);
  if (allReduce)
    flat = allReduce.getReduced();
  auto split = getOnlyUser<SplitOp>(flat, bucket);
  // Both collectives move together, so they stand in one block.
  if (!chunkCat || !split ||
      (allReduce && allReduce->getBlock() != scatter->getBlock()))
    return;
  item.pack = chunkCat;
  item.allReduce = allReduce;
  item.unpack = split;
}

static bool isCastIn(Operation *op, Block *block) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op) &&
         op->getBlock() == block;
}

static bool isBeforeInBlock(Operation *lhs, Operation *rhs) {
  return lhs->isBeforeInBlock(rhs);
}

/// Collects the casts of the item's unpacked tensors, and the casts of those.
static void findCasts(BucketItem &item) {
  SmallVector<Operation *> worklist = {item.unpack};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers())
      if (isCastIn(user, item.collective->getBlock())) {
        item.casts.push_back(user);
        worklist.push_back(user);
      }
  }
  llvm::sort(item.casts, isBeforeInBlock);
}

/// Collects the casts that make the item's operands, and the operands of those.
/// A chain that starts at a member of `follow` belongs to the item that it
/// follows.
static void findInputCasts(BucketItem &item,
                           const DenseSet<Operation *> &follow) {
  llvm::SetVector<Operation *> found;
  for (Value operand : item.pack->getOperands())
    for (Operation *op = operand.getDefiningOp();
         isCastIn(op, item.collective->getBlock()) && !follow.contains(op) &&
         found.insert(op);)
      op = op->getOperand(0).getDefiningOp();
  item.inputCasts.assign(found.begin(), found.end());
  llvm::sort(item.inputCasts, isBeforeInBlock);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// The part of the key that keeps dtypes apart. A reduction works in its wire
/// dtype, which is therefore a part. A gather moves bits: members in their
/// param dtypes may share a bucket, as bytes if the dtypes differ, unless one
/// bucket per dtype is wanted. A gather in any other dtype rounds, and stays
/// with its like.
static Type getKeyDtype(const BucketItem &item, bool perDtype) {
  bool isParamType = llvm::all_of(item.members, [](const ItemMember &member) {
    return member.wire == ParamOp(member.param).getParamType();
  });
  if (item.key.kind == BucketKind::gather && isParamType && !perDtype)
    return Type();
  Type common = item.getCommonDtype();
  return common ? common : NoneType::get(item.collective->getContext());
}

/// Everything that says how a reduction is carried out. Parts that are absent
/// take a place too.
static ArrayAttr getReductionKey(const BucketItem &item) {
  MLIRContext *context = item.collective->getContext();
  SmallVector<Attribute> parts;
  auto add = [&](Attribute part) {
    parts.push_back(part ? part : UnitAttr::get(context));
  };
  auto addCollective = [&](Operation *op) {
    CollectiveReduction reduction =
        *cast<CollectiveOpInterface>(op).getCollectiveReduction();
    add(ReduceOpAttr::get(context, reduction.op));
    add(reduction.multiplier);
    add(reduction.accumulate);
  };
  addCollective(item.collective);
  auto unpack = cast<LocalOpInterface>(item.unpack);
  add(cast<LocalOpInterface>(item.pack).getDivideAttr());
  add(unpack.getDivideAttr());
  add(BoolAttr::get(context, unpack.getAdd().empty()));
  if (item.allReduce)
    addCollective(item.allReduce);
  return ArrayAttr::get(context, parts);
}

namespace {
/// Numbers the unit ops that items come from, in program order. What one was
/// expanded from has one `group`; where that is not written (hand-written IR),
/// the unit and the block tell. Either way a parameter stands only once in
/// what comes from one unit op.
class Origins {
public:
  unsigned get(const BucketItem &item) {
    UnitOp unit = ParamOp(item.members.front().param).getUnit();
    bool isOneUnit = llvm::all_of(item.members, [&](const ItemMember &member) {
      return ParamOp(member.param).getUnit() == unit;
    });
    if (!isOneUnit)
      return count++;
    auto source = std::make_tuple(
        static_cast<unsigned>(item.key.kind), item.key.block,
        unit.getOperation(), Attribute(BucketOp(item.bucket).getGroupAttr()));
    DenseMap<Operation *, unsigned> &seen = timesSeen[source];
    unsigned turn = 0;
    for (const ItemMember &member : item.members)
      turn = std::max(turn, seen.lookup(member.param));
    for (const ItemMember &member : item.members)
      seen[member.param] = turn + 1;
    SmallVector<unsigned, 1> &turns = numbers[source];
    while (turns.size() <= turn)
      turns.push_back(count++);
    return turns[turn];
  }

private:
  using Source = std::tuple<unsigned, Block *, Operation *, Attribute>;
  unsigned count = 0;
  DenseMap<Source, DenseMap<Operation *, unsigned>> timesSeen;
  DenseMap<Source, SmallVector<unsigned, 1>> numbers;
};
} // namespace

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

namespace {
class Collector {
public:
  Collector(Operation *root, BucketKeyOptions options,
            SymbolTableCollection &symbolTables)
      : options(options), symbolTables(symbolTables) {
    unsigned position = 0;
    root->walk<WalkOrder::PreOrder>(
        [&](ParamOp param) { positions[param] = position++; });
  }

  LogicalResult add(BucketUserOpInterface op);
  BucketItems finish();

private:
  void addItem(Operation *collective, BucketOp bucket);

  BucketKeyOptions options;
  SymbolTableCollection &symbolTables;
  BucketItems result;
  DenseMap<Operation *, unsigned> positions; ///< of parameters, as declared
};
} // namespace

void Collector::addItem(Operation *collective, BucketOp bucket) {
  FailureOr<ResolvedBucket> resolved =
      ResolvedBucket::get(bucket, symbolTables);
  if (failed(resolved)) // a bucket that verified resolves
    return;
  MLIRContext *context = collective->getContext();
  const UnitGroup &group = resolved->group;
  BucketItem item{bucket,
                  {bucket.getKind(), collective->getBlock(),
                   DeviceGridOpInterface(group.gridOp).getOperation(),
                   DenseI64ArrayAttr::get(context, group.shardAxes),
                   DenseI64ArrayAttr::get(context, group.replicateAxes),
                   /*dtype=*/Type(), /*reduction=*/ArrayAttr(),
                   /*unitOp=*/std::nullopt},
                  /*members=*/{},
                  group.shardSize(),
                  group.replicateSize(),
                  bucket.getAlignment(),
                  resolved->layout.rowBytes,
                  collective->getLoc(),
                  collective};
  for (auto [index, name, member] : llvm::enumerate(
           bucket.getMembers().getAsRange<SymbolRefAttr>(), resolved->members))
    item.members.push_back(
        {name,
         member.param,
         positions.lookup(member.param),
         member.wire,
         {member.segment.elements, member.segment.elementBytes},
         static_cast<unsigned>(index)});
  if (bucket.isGather())
    findGatherOps(item);
  else
    findReduceOps(item);
  result.items.push_back(std::move(item));
}

LogicalResult Collector::add(BucketUserOpInterface op) {
  if (op.isBufferForm())
    return op.emitOpError("on bucket ")
           << op.getBucketAttr()
           << " is in its buffer form, expected tensors: fsdp-form-buckets "
              "runs before bufferization";
  BucketOp bucket = lookupBucket(op, symbolTables);
  ++result.numUsers[bucket];
  // An item is led by what goes over the shard group: its flat shards become
  // rows, or the reverse.
  if (auto collective = dyn_cast<CollectiveOpInterface>(op.getOperation()))
    switch (collective.getCollectiveKind()) {
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
      addItem(op, bucket);
      break;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Other:
      break;
    }
  return success();
}

BucketItems Collector::finish() {
  // A flat shard that leaves its chain has the layout of its bucket, and may
  // come back into another chain: then none of the bucket's chains is merged,
  // and all of them are one item.
  DenseSet<Operation *> partial;
  for (const BucketItem &item : result.items)
    if (!item.isWhole())
      partial.insert(item.bucket);
  DenseSet<Operation *> seen;
  Origins origins;
  SmallVector<BucketItem, 0> items;
  for (BucketItem &item : result.items) {
    if (partial.contains(item.bucket)) {
      if (!seen.insert(item.bucket).second)
        continue;
      item.pack = item.allReduce = item.unpack = nullptr;
    }
    if (item.isWhole())
      findCasts(item);
    item.key.dtype = getKeyDtype(item, options.perDtype);
    if (item.isWhole() && item.key.kind == BucketKind::reduce)
      item.key.reduction = getReductionKey(item);
    item.origin = origins.get(item);
    if (options.perUnitOp)
      item.key.unitOp = item.origin;
    items.push_back(std::move(item));
  }
  DenseSet<Operation *> follow;
  for (const BucketItem &item : items)
    follow.insert(item.casts.begin(), item.casts.end());
  for (BucketItem &item : items)
    if (item.isWhole())
      findInputCasts(item, follow);
  result.items = std::move(items);
  return std::move(result);
}

FailureOr<BucketItems>
mlir::fsdp::collectBucketItems(Operation *root, BucketKeyOptions options,
                               SymbolTableCollection &symbolTables) {
  Collector collector(root, options, symbolTables);
  WalkResult walked = root->walk<WalkOrder::PreOrder>(
      [&](BucketUserOpInterface op) { return WalkResult(collector.add(op)); });
  if (walked.wasInterrupted())
    return failure();
  return collector.finish();
}
