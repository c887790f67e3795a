//===- FormBuckets.cpp - merge buckets, and so their collectives ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fsdp.bucket @a gather @u[@a] : bf16
//   fsdp.bucket @b gather @u[@b] : bf16
//   %fa = fsdp.concat %a into @a          %fb = fsdp.concat %b into @b
//   %ga = fsdp.all_gather %fa of @a       %gb = fsdp.all_gather %fb of @b
//   %wa = fsdp.unchunk %ga of @a          %wb = fsdp.unchunk %gb of @b
// becomes
//   fsdp.bucket @u_gather gather @u[@a, @b] : bf16
//   %f = fsdp.concat %a, %b into @u_gather
//   %g = fsdp.all_gather %f of @u_gather
//   %w:2 = fsdp.unchunk %g of @u_gather
// and the same for chunk_cat, reduce_scatter, all_reduce and split.
//
// Items (BucketItems.h) are visited in payload order, with one open bucket per
// key. An item joins it unless the packed tensor would pass the limit, which
// closes the bucket, or there is no place for the merged ops
// (BucketPlacement.h), which leaves it open; such an item is offered again when
// all others have found their buckets. Everything is decided before anything
// changes. No bit of any result changes: segments of a bucket do not interact.
//
//===----------------------------------------------------------------------===//

#include "BucketPlacement.h"
#include "fsdp/Transforms/Decisions.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMBUCKETSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

namespace {
/// A bucket to be formed. It has a site of the same number.
struct NewBucket {
  BucketLayout layout;
  unsigned lastPosition; ///< declaration index of the member packed last
  int64_t limit;
};

/// Why an item was not taken into the bucket that was open for it.
struct Refused {
  Refusal refusal;
  int64_t bytes = 0; ///< what would have been packed
  int64_t limit = 0;
};

class Grouping {
public:
  Grouping(ArrayRef<BucketItem> items, ArrayRef<int64_t> limits,
           bool byExecution);

  /// The items in payload order.
  ArrayRef<unsigned> getPayloadOrder() const { return order; }
  unsigned getBucket(unsigned item) const { return bucketOf[item]; }
  ArrayRef<unsigned> getItems(unsigned bucket) const {
    return placement.getItems(bucket);
  }
  const BucketPlacement &getPlacement() const { return placement; }
  /// Why two neighbours in payload order, in two buckets, did not merge.
  Refused getRefused(unsigned lhs, unsigned rhs) const;

private:
  struct OpenBucket {
    std::optional<unsigned> bucket; ///< nothing: closed
    unsigned count = 0;             ///< buckets of this key so far
  };

  bool offer(unsigned item, OpenBucket &open);
  unsigned openBucket(unsigned item, int64_t limit);
  std::optional<BucketLayout> getLayout(ArrayRef<unsigned> itemIds);
  int64_t getLimit(unsigned index) const;

  ArrayRef<BucketItem> items;
  ArrayRef<int64_t> limits;
  bool byExecution;
  BucketPlacement placement;
  SmallVector<unsigned, 0> order;
  SmallVector<NewBucket, 0> buckets;
  SmallVector<unsigned, 0> bucketOf;
  SmallVector<std::optional<Refused>, 0> refusedOf;
};
} // namespace

static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Members of `items` in the order in which they lie in a bucket.
static SmallVector<std::pair<unsigned, const ItemMember *>, 0>
getPayload(ArrayRef<BucketItem> items, ArrayRef<unsigned> ids,
           bool byExecution) {
  SmallVector<std::pair<unsigned, const ItemMember *>, 0> payload;
  for (unsigned id : ids)
    for (const ItemMember &member : items[id].members)
      payload.push_back({id, &member});
  // One bucket holds parameters of one unit only.
  if (!byExecution)
    llvm::stable_sort(payload, [](const auto &lhs, const auto &rhs) {
      return lhs.second->position < rhs.second->position;
    });
  return payload;
}

/// The place of an item's first parameter in the declaration.
static unsigned getFirstPosition(const BucketItem &item) {
  return llvm::min_element(item.members,
                           [](const ItemMember &lhs, const ItemMember &rhs) {
                             return lhs.position < rhs.position;
                           })
      ->position;
}

static unsigned getLastPosition(const BucketItem &item) {
  return llvm::max_element(item.members,
                           [](const ItemMember &lhs, const ItemMember &rhs) {
                             return lhs.position < rhs.position;
                           })
      ->position;
}

Grouping::Grouping(ArrayRef<BucketItem> items, ArrayRef<int64_t> limits,
                   bool byExecution)
    : items(items), limits(limits), byExecution(byExecution), placement(items),
      bucketOf(items.size()), refusedOf(items.size()) {
  // Unit ops in their order, inside each the declaration's, or the program's.
  SmallVector<unsigned, 0> positions;
  for (auto [index, item] : llvm::enumerate(items)) {
    order.push_back(index);
    positions.push_back(byExecution ? index : getFirstPosition(item));
  }
  llvm::stable_sort(order, [&](unsigned lhs, unsigned rhs) {
    return std::make_pair(items[lhs].key.origin, positions[lhs]) <
           std::make_pair(items[rhs].key.origin, positions[rhs]);
  });

  using Key = decltype(std::declval<BucketKey>().asTuple());
  DenseMap<Key, OpenBucket> openOf;
  SmallVector<unsigned, 0> round = order;
  while (!round.empty()) {
    SmallVector<unsigned, 0> again;
    for (unsigned item : round) {
      if (!items[item].isWhole())
        openBucket(item, kNoLimit);
      else if (!offer(item, openOf[items[item].key.asTuple()]))
        again.push_back(item);
    }
    // Closing all lets the first item that is left open a bucket of its own, so
    // that every round takes some in.
    for (unsigned item : again)
      openOf[items[item].key.asTuple()].bucket.reset();
    round = std::move(again);
  }
}

int64_t Grouping::getLimit(unsigned index) const {
  if (limits.empty())
    return kNoLimit;
  return limits[std::min<size_t>(index, limits.size() - 1)];
}

std::optional<BucketLayout> Grouping::getLayout(ArrayRef<unsigned> ids) {
  std::vector<SegmentSize> sizes;
  int64_t align = 1;
  for (auto [id, member] : getPayload(items, ids, byExecution)) {
    sizes.push_back(member->size);
    align = std::max(align, items[id].align);
  }
  // Sizes in bytes do not depend on the wire's.
  return BucketLayout::get(sizes, items[ids.front()].ranks, /*wireBytes=*/1,
                           align);
}

unsigned Grouping::openBucket(unsigned item, int64_t limit) {
  unsigned bucket = placement.open(item);
  // The item's own bucket has been laid out before.
  buckets.push_back({*getLayout({item}), getLastPosition(items[item]), limit});
  bucketOf[item] = bucket;
  return bucket;
}

/// Puts `item` into the open bucket of its key, or into a new one. False if it
/// has to wait for the next round.
bool Grouping::offer(unsigned id, OpenBucket &open) {
  const BucketItem &item = items[id];
  auto refuse = [&](Refused refused) {
    if (!refusedOf[id])
      refusedOf[id] = refused;
  };
  if (open.bucket) {
    NewBucket &bucket = buckets[*open.bucket];
    auto joined = placement.tryJoin(*open.bucket, id);
    if (auto *refusal = std::get_if<Refusal>(&joined)) {
      refuse({*refusal});
      return false;
    }
    // Usually the item comes last in the bucket: then do not lay out anew.
    size_t numSegments = bucket.layout.segments.size();
    int64_t rowBytes = bucket.layout.rowBytes;
    bool isLast = item.align <= bucket.layout.align &&
                  (byExecution || getFirstPosition(item) > bucket.lastPosition);
    std::optional<BucketLayout> relaid;
    bool fits = true;
    if (isLast) {
      for (const ItemMember &member : item.members)
        fits = fits && bucket.layout.append(member.size);
    } else {
      SmallVector<unsigned> ids(placement.getItems(*open.bucket));
      ids.push_back(id);
      relaid = getLayout(ids);
      fits = relaid.has_value();
    }
    const BucketLayout &layout = relaid ? *relaid : bucket.layout;
    if (fits && layout.packedBytes() <= bucket.limit) {
      placement.join(*open.bucket, id, std::get<BucketPlacement::Site>(joined));
      bucketOf[id] = *open.bucket;
      if (relaid)
        bucket.layout = std::move(*relaid);
      bucket.lastPosition =
          std::max(bucket.lastPosition, getLastPosition(item));
      return true;
    }
    refuse({Refusal::SizeLimit, fits ? layout.packedBytes() : kNoLimit,
            bucket.limit});
    bucket.layout.segments.resize(numSegments);
    bucket.layout.rowBytes = rowBytes;
  }
  int64_t limit = getLimit(open.count++);
  open.bucket = openBucket(id, limit);
  int64_t bytes = buckets[*open.bucket].layout.packedBytes();
  if (bytes > limit) {
    refusedOf[id] = Refused{Refusal::Oversize, bytes, limit};
    open.bucket.reset();
  }
  return true;
}

Refused Grouping::getRefused(unsigned lhs, unsigned rhs) const {
  const BucketItem &left = items[lhs], &right = items[rhs];
  BucketKey leftKey = left.key;
  bool isPartial = !left.isWhole() || !right.isWhole();
  if (isPartial) // whose reduction is not known in full
    leftKey.reduction = right.key.reduction;
  if (std::optional<Refusal> difference = leftKey.differsFrom(right.key))
    return {*difference};
  if (isPartial)
    return {Refusal::Partial};
  // Equal keys: one of the two was refused by a bucket.
  std::optional<Refused> refused = refusedOf[rhs];
  if (!refused ||
      (refusedOf[lhs] && refusedOf[lhs]->refusal < refused->refusal))
    refused = refusedOf[lhs];
  assert(refused && "items of one key part only where one is refused");
  return *refused;
}

//===----------------------------------------------------------------------===//
// Acting
//===----------------------------------------------------------------------===//

namespace {
/// Carries out what a Grouping decided.
class Merger {
public:
  Merger(BucketItems &items, const Grouping &grouping, bool byExecution,
         SymbolTableCollection &symbolTables)
      : items(items.items), numUsers(items.numUsers), grouping(grouping),
        byExecution(byExecution), symbolTables(symbolTables) {}

  void run();
  /// The symbol of a bucket that was merged.
  StringRef getName(unsigned bucket) const { return names.lookup(bucket); }
  int64_t getPackedBytes(unsigned bucket) const {
    return packedBytes.lookup(bucket);
  }

private:
  using Payload = ArrayRef<std::pair<unsigned, const ItemMember *>>;

  BucketOp createBucket(ArrayRef<unsigned> ids, Payload payload);
  Operation *createOps(const ResolvedBucket &bucket, Payload payload,
                       OpBuilder &builder);
  void merge(const BucketPlacement::Place &place);
  void move(const BucketPlacement::Place &place);
  void moveCasts(const BucketItem &item, Operation *before);

  ArrayRef<BucketItem> items;
  DenseMap<Operation *, int64_t> &numUsers;
  const Grouping &grouping;
  bool byExecution;
  SymbolTableCollection &symbolTables;
  SmallVector<Operation *, 0> dead;
  DenseMap<unsigned, StringRef> names; ///< of attributes, which outlive us
  DenseMap<unsigned, int64_t> packedBytes;
};
} // namespace

/// Declares the bucket that holds `payload` at the place of the first item's,
/// and drops the buckets that nobody will use any more.
BucketOp Merger::createBucket(ArrayRef<unsigned> ids, Payload payload) {
  BucketOp first = items[ids.front()].bucket;
  OpBuilder builder(first);

  Type wire = payload.front().second->wire;
  SmallVector<Attribute> members;
  SmallVector<Location> locs;
  for (auto [id, member] : payload) {
    members.push_back(member->name);
    if (member->wire != wire || !isFloatDtype(wire))
      wire = builder.getI8Type(); // bytes
  }
  BucketOp widest = first;
  for (unsigned id : ids) {
    BucketOp bucket = items[id].bucket;
    locs.push_back(bucket.getLoc());
    if (bucket.getAlignment() > widest.getAlignment())
      widest = bucket;
  }
  std::string name;
  llvm::raw_string_ostream stream(name);
  stream << ParamOp(payload.front().second->param).getUnit().getSymName() << '_'
         << stringifyBucketKind(first.getKind());
  if (!first.isGather())
    stream << '_' << wire;
  auto bucket =
      BucketOp::create(builder, FusedLoc::get(builder.getContext(), locs), name,
                       first.getKind(), builder.getArrayAttr(members), wire,
                       widest.getAlignAttr(), first.getGroupAttr());

  // Old symbols go first, so that their names are free again.
  SymbolTable &table = symbolTables.getSymbolTable(first->getParentOp());
  for (unsigned id : ids) {
    int64_t &users = numUsers[items[id].bucket];
    users -= items[id].getOps().size();
    if (users == 0)
      table.erase(items[id].bucket);
  }
  table.insert(bucket);
  return bucket;
}

/// Creates the local ops and collectives of `bucket` and returns the last.
Operation *Merger::createOps(const ResolvedBucket &bucket, Payload payload,
                             OpBuilder &builder) {
  const BucketItem &like = items[payload.front().first];
  auto name = FlatSymbolRefAttr::get(bucket.bucket);
  SmallVector<Value> inputs, added;
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (auto [id, member] : payload) {
    const BucketItem &item = items[id];
    locs.push_back(item.loc);
    inputs.push_back(item.pack->getOperand(member->index));
    types.push_back(item.unpack->getResult(member->index).getType());
    if (auto split = dyn_cast<SplitOp>(item.unpack))
      if (!split.getAdd().empty())
        added.push_back(split.getAdd()[member->index]);
  }
  Location loc = FusedLoc::get(builder.getContext(), locs);
  Type flatType = bucket.getFlatType(), packedType = bucket.getPackedType();

  if (like.key.kind == BucketKind::gather) {
    Value flat = ConcatOp::create(builder, loc, flatType, inputs, name,
                                  /*output=*/Value())
                     .getFlat();
    Value packed = AllGatherOp::create(builder, loc, packedType, flat, name,
                                       /*output=*/Value())
                       .getPacked();
    return UnchunkOp::create(builder, loc, types, packed, name,
                             /*outputs=*/ValueRange());
  }
  auto scatter = cast<ReduceScatterOp>(like.collective);
  Value packed = ChunkCatOp::create(builder, loc, packedType, inputs, name,
                                    cast<ChunkCatOp>(like.pack).getDivideAttr(),
                                    /*output=*/Value())
                     .getPacked();
  Value flat = ReduceScatterOp::create(
                   builder, loc, flatType, scatter.getReductionAttr(),
                   scatter.getMultiplierAttr(), scatter.getAccumulateAttr(),
                   packed, name,
                   /*output=*/Value())
                   .getFlat();
  if (auto allReduce = cast_or_null<AllReduceOp>(like.allReduce))
    flat = AllReduceOp::create(
               builder, loc, flatType, allReduce.getReductionAttr(),
               allReduce.getMultiplierAttr(), allReduce.getAccumulateAttr(),
               flat, name, /*output=*/Value())
               .getReduced();
  return SplitOp::create(builder, loc, types, flat, name,
                         cast<SplitOp>(like.unpack).getDivideAttr(), added,
                         /*outputs=*/ValueRange());
}

/// Takes the casts behind `item` along to the place in front of `before`.
void Merger::moveCasts(const BucketItem &item, Operation *before) {
  for (Operation *cast : item.casts)
    if (grouping.getPlacement().isAbove(cast, before))
      cast->moveBefore(before);
}

void Merger::merge(const BucketPlacement::Place &place) {
  ArrayRef<unsigned> ids = grouping.getItems(place.site);
  auto payload = getPayload(items, ids, byExecution);
  BucketOp bucket = createBucket(ids, payload);
  // Cannot fail: the members are valid, and the layout was computed before.
  ResolvedBucket resolved = *ResolvedBucket::get(bucket, symbolTables);
  OpBuilder builder(place.before);
  Operation *unpack = createOps(resolved, payload, builder);
  for (auto [result, entry] : llvm::zip_equal(unpack->getResults(), payload))
    items[entry.first]
        .unpack->getResult(entry.second->index)
        .replaceAllUsesWith(result);
  for (unsigned id : ids) {
    moveCasts(items[id], place.before);
    SmallVector<Operation *, 4> ops = items[id].getOps();
    dead.append(ops.rbegin(), ops.rend());
  }
  names[place.site] = bucket.getSymName();
  packedBytes[place.site] = resolved.layout.packedBytes();
}

/// Moves a bucket that stays as it is behind one with an earlier first member.
void Merger::move(const BucketPlacement::Place &place) {
  const BucketItem &item = items[grouping.getItems(place.site).front()];
  for (Operation *op : item.getOps())
    if (op->getBlock() == item.key.block &&
        grouping.getPlacement().isAbove(op, place.before))
      op->moveBefore(place.before);
  moveCasts(item, place.before);
}

void Merger::run() {
  for (const BucketPlacement::Place &place :
       grouping.getPlacement().getPlaces()) {
    if (grouping.getItems(place.site).size() > 1)
      merge(place);
    else if (place.moves)
      move(place);
  }
  for (Operation *op : dead)
    op->erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
/// What the remarks say about an item, taken before anything changes.
struct ItemNote {
  Location loc;
  std::string name;
};

struct FormBucketsPass
    : mlir::fsdp::impl::FormBucketsPassBase<FormBucketsPass> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    auto check = [&](StringRef option, StringRef value,
                     ArrayRef<StringRef> expected) -> LogicalResult {
      if (llvm::is_contained(expected, value))
        return success();
      return emitError(UnknownLoc::get(context))
             << getArgument() << ": option " << option << " is '" << value
             << "', expected " << llvm::join(expected, " or ");
    };
    if (!policy.empty())
      return emitError(UnknownLoc::get(context))
             << getArgument() << ": unknown policy '" << policy << "'";
    for (int64_t limit : maxBytes)
      if (limit <= 0)
        return emitError(UnknownLoc::get(context))
               << getArgument() << ": option max-bytes is " << limit
               << ", expected a positive number";
    return success(
        succeeded(check("scope", scope, {"unit"})) &&
        succeeded(check("gather", gather, {"bytes", "per-dtype"})) &&
        succeeded(check("order", order, {"registration", "execution"})));
  }

  void runOnOperation() override {
    SymbolTableCollection symbolTables;
    FailureOr<BucketItems> items =
        collectBucketItems(getOperation(), gather == "per-dtype", symbolTables);
    if (failed(items))
      return signalPassFailure();

    SmallVector<ItemNote, 0> notes;
    for (BucketItem &item : items->items)
      notes.push_back({item.loc, item.bucket.getSymName().str()});
    bool byExecution = order == "execution";
    SmallVector<int64_t> limits(maxBytes.begin(), maxBytes.end());
    Grouping grouping(items->items, limits, byExecution);
    Merger merger(*items, grouping, byExecution, symbolTables);
    merger.run();

    auto &log = getAnalysis<DecisionLog>();
    ArrayRef<unsigned> payload = grouping.getPayloadOrder();
    for (size_t index = 0; index < payload.size(); ++index) {
      unsigned item = payload[index];
      unsigned bucket = grouping.getBucket(item);
      ArrayRef<unsigned> members = grouping.getItems(bucket);
      if (members.size() > 1 && members.front() == item) {
        Decision decision{"FormBuckets",
                          /*passed=*/true,
                          "merged",
                          "formed " + merger.getName(bucket).str(),
                          {},
                          {{"bytes", merger.getPackedBytes(bucket)}}};
        for (unsigned member : members)
          decision.items.push_back(notes[member].name);
        log.add(notes[item].loc, std::move(decision));
      }
      if (index == 0 || grouping.getBucket(payload[index - 1]) == bucket)
        continue;
      unsigned previous = payload[index - 1];
      Refused refused = grouping.getRefused(previous, item);
      Decision decision{"FormBuckets",
                        /*passed=*/false,
                        "refused",
                        stringifyRefusal(refused.refusal).str(),
                        {notes[previous].name, notes[item].name},
                        {}};
      if (refused.refusal >= Refusal::Oversize)
        decision.metrics = {{"bytes", refused.bytes}, {"limit", refused.limit}};
      log.add(notes[item].loc, std::move(decision));
    }
  }
};
} // namespace
