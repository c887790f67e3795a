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
// Which items (BucketItems.h) share a bucket is a policy's decision
// (BucketPolicy.h). Everything is decided before anything changes; this file
// carries it out and says why. No bit of any result changes: segments of a
// bucket do not interact.
//
// What the pass has formed stays as it is when it runs again. Mostly that is so
// by itself, but a bucket that was closed is an item like any other to the next
// run, and a walk in program order takes another way through a program in which
// collectives have moved. So the pass looks whether it would change its own
// result, and leaves a fingerprint of that on the module if it would.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Bucketing/BucketGrouping.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_FORMBUCKETSPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Acting
//===----------------------------------------------------------------------===//

namespace {
/// Carries out what was decided.
class Merger {
public:
  Merger(BucketItems &items, const BucketGrouping &grouping,
         SymbolTableCollection &symbolTables)
      : items(items.items), numUsers(items.numUsers), grouping(grouping),
        symbolTables(symbolTables) {}

  void run();
  /// True if there is nothing to carry out.
  bool isIdle() const;
  /// The symbol of a bucket that was merged.
  StringRef getName(unsigned bucket) const { return names.lookup(bucket); }
  int64_t getPackedBytes(unsigned bucket) const {
    return packedBytes.lookup(bucket);
  }

private:
  using Payload = ArrayRef<PayloadEntry>;

  BucketOp createBucket(ArrayRef<unsigned> ids, Payload payload);
  Operation *createOps(const ResolvedBucket &bucket, Payload payload,
                       OpBuilder &builder);
  bool isMadeAnew(ArrayRef<unsigned> ids) const;
  void merge(const BucketPlacement::Place &place);
  void move(const BucketPlacement::Place &place);
  void moveInputCasts(const BucketItem &item, Operation *before);
  void moveCasts(const BucketItem &item, Operation *before, bool up);

  ArrayRef<BucketItem> items;
  DenseMap<Operation *, int64_t> &numUsers;
  const BucketGrouping &grouping;
  SymbolTableCollection &symbolTables;
  SmallVector<Operation *, 0> dead;
  DenseSet<Operation *> raised;        ///< casts that have moved up
  DenseMap<unsigned, StringRef> names; ///< of attributes, which outlive us
  DenseMap<unsigned, int64_t> packedBytes;
};
} // namespace

/// The units of a bucket's members: of one, both of two, or from and to.
static std::string getUnitNames(ArrayRef<PayloadEntry> payload) {
  llvm::SetVector<StringRef> units;
  for (auto [id, member] : payload)
    units.insert(ParamOp(member->param).getUnit().getSymName());
  std::string names = units.front().str();
  if (units.size() > 1)
    names += (units.size() > 2 ? "_to_" : "_") + units.back().str();
  return names;
}

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
  for (unsigned id : ids)
    locs.push_back(BucketOp(items[id].bucket).getLoc());
  // What comes from one unit op only, and its number.
  IntegerAttr group = first.getGroupAttr();
  for (unsigned id : ids)
    if (items[id].origin != items[ids.front()].origin)
      group = {};
  std::string name = first.getSymName().str();
  if (ids.size() > 1) {
    name = getUnitNames(payload);
    llvm::raw_string_ostream stream(name);
    stream << '_' << stringifyBucketKind(first.getKind());
    if (!first.isGather())
      stream << '_' << wire;
  }
  int64_t align = grouping.getAlignment(ids);
  IntegerAttr alignAttr =
      align == kDefaultAlign ? IntegerAttr() : builder.getI64IntegerAttr(align);
  auto bucket = BucketOp::create(
      builder, FusedLoc::get(builder.getContext(), locs), name, first.getKind(),
      builder.getArrayAttr(members), wire, alignAttr, group);

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
  SmallVector<Value> inputs, added;
  SmallVector<Type> types;
  SmallVector<Location> locs;
  for (auto [id, member] : payload) {
    const BucketItem &item = items[id];
    locs.push_back(item.loc);
    inputs.push_back(item.pack->getOperand(member->index));
    types.push_back(item.unpack->getResult(member->index).getType());
    OperandRange add = cast<LocalOpInterface>(item.unpack).getAdd();
    if (!add.empty())
      added.push_back(add[member->index]);
  }
  Location loc = FusedLoc::get(builder.getContext(), locs);
  if (like.key.kind == BucketKind::gather) {
    Value flat = ConcatOp::create(builder, loc, bucket, inputs).getFlat();
    Value packed = AllGatherOp::create(builder, loc, bucket, flat).getPacked();
    return UnchunkOp::create(builder, loc, bucket, packed, types);
  }
  auto getDivide = [](Operation *op) {
    return cast<LocalOpInterface>(op).getDivideAttr();
  };
  auto getReduction = [](Operation *op) {
    return *cast<CollectiveOpInterface>(op).getCollectiveReduction();
  };
  Value packed =
      ChunkCatOp::create(builder, loc, bucket, inputs, getDivide(like.pack))
          .getPacked();
  Value flat = ReduceScatterOp::create(builder, loc, bucket, packed,
                                       getReduction(like.collective))
                   .getFlat();
  if (like.allReduce)
    flat = AllReduceOp::create(builder, loc, bucket, flat,
                               getReduction(like.allReduce))
               .getReduced();
  return SplitOp::create(builder, loc, bucket, flat, getDivide(like.unpack),
                         added, types);
}

/// Takes the casts in front of `item` along to the place in front of `before`,
/// unless they are above it, or another item has taken them higher up: places
/// come from top to bottom.
void Merger::moveInputCasts(const BucketItem &item, Operation *before) {
  for (Operation *cast : item.inputCasts)
    if (!grouping.isAbove(cast, before) && raised.insert(cast).second)
      cast->moveBefore(before);
}

/// Takes the casts behind `item` along to the place in front of `before`. Those
/// that stand below it stay, unless the item moves `up` and an item that
/// follows needs them.
void Merger::moveCasts(const BucketItem &item, Operation *before, bool up) {
  for (Operation *cast : item.casts)
    if (grouping.isAbove(cast, before) || (up && grouping.isFollowed(cast)))
      cast->moveBefore(before);
}

void Merger::merge(const BucketPlacement::Place &place) {
  ArrayRef<unsigned> ids = grouping.getItems(place.site);
  SmallVector<PayloadEntry, 0> payload = grouping.getPayload(ids);
  BucketOp bucket = createBucket(ids, payload);
  // Cannot fail: the members are valid, and the layout was computed before.
  ResolvedBucket resolved = *ResolvedBucket::get(bucket, symbolTables);
  for (unsigned id : ids)
    moveInputCasts(items[id], place.before);
  OpBuilder builder(place.before);
  Operation *unpack = createOps(resolved, payload, builder);
  for (auto [result, entry] : llvm::zip_equal(unpack->getResults(), payload))
    items[entry.first]
        .unpack->getResult(entry.second->index)
        .replaceAllUsesWith(result);
  for (unsigned id : ids) {
    moveCasts(items[id], place.before, /*up=*/true);
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
    if (op->getBlock() == item.key.block && grouping.isAbove(op, place.before))
      op->moveBefore(place.before);
  moveCasts(item, place.before, /*up=*/false);
}

/// True if a bucket does not stay as it is: it gets members, or another
/// alignment.
bool Merger::isMadeAnew(ArrayRef<unsigned> ids) const {
  const BucketItem &first = items[ids.front()];
  return ids.size() > 1 ||
         (first.isWhole() && first.align != grouping.getAlignment(ids));
}

bool Merger::isIdle() const {
  return llvm::none_of(
      grouping.getPlaces(), [&](const BucketPlacement::Place &place) {
        return place.moves || isMadeAnew(grouping.getItems(place.site));
      });
}

void Merger::run() {
  for (const BucketPlacement::Place &place : grouping.getPlaces()) {
    if (isMadeAnew(grouping.getItems(place.site)))
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
      if (value.empty() || llvm::is_contained(expected, value))
        return success();
      return emitError(UnknownLoc::get(context))
             << getArgument() << ": option " << option << " is '" << value
             << "', expected " << llvm::join(expected, " or ");
    };
    auto checkLimits = [&](StringRef option,
                           ArrayRef<int64_t> limits) -> LogicalResult {
      for (int64_t limit : limits)
        if (limit <= 0)
          return emitError(UnknownLoc::get(context))
                 << getArgument() << ": option " << option << " is " << limit
                 << ", expected a positive number";
      return success();
    };
    // An empty option is one that was not given: then the policy decides.
    SmallVector<int64_t> bytes = llvm::to_vector(ArrayRef<int64_t>(maxBytes));
    SmallVector<int64_t> elements =
        llvm::to_vector(ArrayRef<int64_t>(maxElements));
    if (failed(check("scope", scope, {"unit", "global"})) ||
        failed(check("gather", gather, {"bytes", "per-dtype"})) ||
        failed(check("order", order, {"registration", "execution"})) ||
        failed(checkLimits("max-bytes", bytes)) ||
        failed(checkLimits("max-elements", elements)))
      return failure();
    rules = createBucketPolicy(
        policy, {scope == "global", gather, order, bytes, elements}, [&] {
          return emitError(UnknownLoc::get(context)) << getArgument() << ": ";
        });
    return success(rules != nullptr);
  }

  FailureOr<BucketItems> collect(SymbolTableCollection &symbolTables) {
    return collectBucketItems(getOperation(),
                              {/*perDtype=*/rules->isGatherPerDtype(),
                               /*perUnitOp=*/scope != "global"},
                              symbolTables);
  }

  /// Of the buckets, of the order in which they are used, and of the options.
  std::string getFingerprint() {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << scope.getValue() << ',' << gather.getValue() << ','
       << order.getValue() << ',' << policy.getValue();
    for (const auto *limits : {&maxBytes, &maxElements}) {
      os << ';';
      llvm::interleaveComma(ArrayRef<int64_t>(*limits), os);
    }
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<BucketOp>(op))
        os << '\n' << *op;
      else if (auto user = dyn_cast<BucketUserOpInterface>(op))
        os << '\n' << op->getName() << ' ' << user.getBucketAttr();
    });
    return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true,
                           /*Width=*/16);
  }

  /// Says on the module that another run has nothing to do, where it would find
  /// something.
  LogicalResult markFormed() {
    getOperation()->removeDiscardableAttr(FsdpDialect::getFormedAttrName());
    SymbolTableCollection symbolTables;
    FailureOr<BucketItems> items = collect(symbolTables);
    if (failed(items))
      return failure();
    BucketGrouping grouping(items->items, *rules);
    if (!Merger(*items, grouping, symbolTables).isIdle())
      getOperation()->setDiscardableAttr(
          FsdpDialect::getFormedAttrName(),
          StringAttr::get(&getContext(), getFingerprint()));
    return success();
  }

  void runOnOperation() override {
    auto formed =
        getOperation()->getDiscardableAttr(FsdpDialect::getFormedAttrName());
    if (formed && cast<StringAttr>(formed) == getFingerprint())
      return markAllAnalysesPreserved();
    SymbolTableCollection symbolTables;
    FailureOr<BucketItems> items = collect(symbolTables);
    if (failed(items))
      return signalPassFailure();

    SmallVector<ItemNote, 0> notes;
    for (BucketItem &item : items->items)
      notes.push_back({item.loc, item.bucket.getSymName().str()});
    BucketGrouping grouping(items->items, *rules);
    Merger merger(*items, grouping, symbolTables);
    merger.run();

    auto &log = getAnalysis<DecisionLog>();
    ArrayRef<unsigned> order = grouping.getOrder();
    for (size_t index = 0; index < order.size(); ++index) {
      unsigned item = order[index];
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
      if (index == 0 || grouping.getBucket(order[index - 1]) == bucket)
        continue;
      unsigned previous = order[index - 1];
      Refused refused = grouping.getRefused(previous, item);
      Decision decision{"FormBuckets",
                        /*passed=*/false,
                        "refused",
                        stringifyRefusal(refused.refusal).str(),
                        {notes[previous].name, notes[item].name},
                        {}};
      if (refused.limit)
        decision.metrics = {{refused.limit->what, refused.limit->size},
                            {"limit", refused.limit->limit}};
      log.add(notes[item].loc, std::move(decision));
    }
    if (failed(markFormed()))
      return signalPassFailure();
  }

  /// Made anew from the options; has no state, so that copies may share it.
  std::shared_ptr<const BucketPolicy> rules;
};
} // namespace
