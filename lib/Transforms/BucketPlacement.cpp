//===- BucketPlacement.cpp - where merged buckets can stand ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BucketPlacement.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fsdp;

BucketPlacement::BucketPlacement(ArrayRef<BucketItem> items)
    : items(items), bounds(items.size()) {
  DenseMap<std::pair<Block *, unsigned>, unsigned> streamOf;
  for (auto [index, item] : llvm::enumerate(items)) {
    Block *block = item.key.block;
    number(block);
    auto [stream, isNew] = streamOf.try_emplace(
        {block, static_cast<unsigned>(item.key.kind)}, streams.size());
    if (isNew)
      streams.emplace_back();
    bounds[index].stream = stream->second;
    bounds[index].place = streams[stream->second].size();
    bounds[index].number = numbers.lookup(item.collective);
    streams[stream->second].push_back(index);
    for (Operation *op : item.getOps())
      if (op->getBlock() == block)
        movable.insert(op);
    movable.insert(item.casts.begin(), item.casts.end());
    if (item.isWhole())
      unpacks[item.unpack] = index;
  }
  for (unsigned index = 0; index < items.size(); ++index)
    findBounds(index);
}

void BucketPlacement::number(Block *block) {
  auto [list, isNew] = ops.try_emplace(block);
  if (!isNew)
    return;
  for (Operation &op : *block) {
    numbers[&op] = list->second.size();
    list->second.push_back(&op);
  }
}

void BucketPlacement::findBounds(unsigned index) {
  const BucketItem &item = items[index];
  Bounds &bound = bounds[index];
  Block *block = item.key.block;

  // What another item makes may move down, but stays above this user: see
  // below. So the operand exists at least where it is used now.
  bound.lowest = 0;
  auto needs = [&](Value operand, Operation *user) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || maker->getBlock() != block || user->getBlock() != block)
      return;
    int64_t slot = movable.contains(maker) ? numbers.lookup(user)
                                           : numbers.lookup(maker) + 1;
    bound.lowest = std::max(bound.lowest, slot);
  };
  // A user that moves itself keeps its distance: its new place is nowhere above
  // the old one, and this item's nowhere below the op in front of that.
  bound.highest = std::numeric_limits<int64_t>::max();
  auto isUsedBy = [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor) // in another block of the region
      return;
    int64_t slot = numbers.lookup(ancestor) - movable.contains(ancestor);
    bound.highest = std::min(bound.highest, slot);
  };

  if (!item.isWhole()) {
    for (Operation *user : item.collective->getUsers())
      isUsedBy(user);
    return;
  }
  for (Value operand : item.pack->getOperands())
    needs(operand, item.pack);
  if (auto split = dyn_cast<SplitOp>(item.unpack))
    for (Value old : split.getAdd())
      needs(old, split);
  if (item.unpack->getBlock() != block)
    isUsedBy(item.unpack);
  SmallPtrSet<Operation *, 8> casts(item.casts.begin(), item.casts.end());
  auto isUsed = [&](Operation *maker) {
    for (Operation *user : maker->getUsers())
      if (!casts.contains(user))
        isUsedBy(user);
  };
  isUsed(item.unpack);
  llvm::for_each(item.casts, isUsed);
}

/// The slot that a site asks for; one item alone is content with its place.
int64_t BucketPlacement::getWanted(const Site &site, BucketKind kind) const {
  if (site.size == 1)
    return site.first;
  return std::max(site.lowest,
                  kind == BucketKind::gather ? site.first : site.last);
}

/// The number of the first collective with which `item` shares a site.
int64_t BucketPlacement::getFirst(unsigned item) const {
  const Bounds &bound = bounds[item];
  return bound.site < 0 ? bound.number : sites[bound.site].first;
}

unsigned BucketPlacement::open(unsigned item) {
  Bounds &bound = bounds[item];
  bound.site = sites.size();
  sites.push_back({bound.number, bound.number, bound.lowest, bound.highest,
                   /*size=*/1, /*scanned=*/bound.place + 1,
                   std::numeric_limits<int64_t>::max()});
  members.push_back({item});
  return bound.site;
}

std::variant<BucketPlacement::Site, Refusal>
BucketPlacement::tryJoin(unsigned site, unsigned item) const {
  const Bounds &bound = bounds[item];
  Site joined = sites[site];
  ++joined.size;
  joined.last = std::max(joined.last, bound.number);
  joined.lowest = std::max(joined.lowest, bound.lowest);
  joined.highest = std::min(joined.highest, bound.highest);
  if (bound.number < joined.first) {
    // Items that were in front of the site are now among those to push.
    joined.first = bound.number;
    joined.scanned = bound.place + 1;
    joined.highestOfOthers = std::numeric_limits<int64_t>::max();
  }
  int64_t wanted = getWanted(joined, items[item].key.kind);
  if (wanted > joined.highest)
    return getRefusal(site, item, joined.first);
  ArrayRef<unsigned> stream = streams[bound.stream];
  for (; joined.scanned < stream.size(); ++joined.scanned) {
    unsigned other = stream[joined.scanned];
    if (bounds[other].number >= wanted)
      break;
    if (other != item && getFirst(other) > joined.first)
      joined.highestOfOthers =
          std::min(joined.highestOfOthers, bounds[other].highest);
  }
  if (wanted > joined.highestOfOthers)
    return getRefusal(site, item, joined.first);
  return joined;
}

void BucketPlacement::join(unsigned site, unsigned item, const Site &joined) {
  bounds[item].site = site;
  sites[site] = joined;
  members[site].push_back(item);
}

/// True if `from` needs, through any chain of ops, what an item makes for which
/// `isTarget` holds. Ops in front of number `first` cannot.
bool BucketPlacement::reaches(Operation *from, int64_t first,
                              function_ref<bool(unsigned)> isTarget) const {
  DenseSet<Operation *> seen;
  SmallVector<Operation *> worklist = {from};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), operands);
    for (Value operand : operands) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || maker->getBlock() != from->getBlock() ||
          numbers.lookup(maker) < first || !seen.insert(maker).second)
        continue;
      auto unpack = unpacks.find(maker);
      if (unpack != unpacks.end() && isTarget(unpack->second))
        return true;
      worklist.push_back(maker);
    }
  }
  return false;
}

/// Names the reason why `item` cannot stand with `site`: one waits for the
/// other, or somebody uses a result too early.
Refusal BucketPlacement::getRefusal(unsigned site, unsigned item,
                                    int64_t first) const {
  if (reaches(items[item].pack, first, [&](unsigned other) {
        return bounds[other].site == static_cast<int>(site);
      }))
    return Refusal::Depends;
  if (bounds[item].number < sites[site].last)
    for (unsigned member : members[site])
      if (reaches(items[member].pack, first,
                  [&](unsigned other) { return other == item; }))
        return Refusal::Depends;
  return Refusal::UsedBefore;
}

SmallVector<BucketPlacement::Place, 0> BucketPlacement::getPlaces() const {
  // Per stream, in the order of first members, push down what has to be.
  SmallVector<SmallVector<unsigned, 0>> sitesOf(streams.size());
  for (auto [index, ids] : llvm::enumerate(members))
    sitesOf[bounds[ids.front()].stream].push_back(index);
  struct Slot {
    unsigned site;
    int64_t slot;
    bool moves;
  };
  // Streams of one block are carried out together. They are listed in program
  // order of their first items, so that blocks are, too.
  SmallVector<Block *> blocks;
  DenseMap<Block *, SmallVector<Slot, 0>> slots;
  DenseSet<Operation *> moved;
  for (SmallVector<unsigned, 0> &stream : sitesOf) {
    llvm::sort(stream, [&](unsigned lhs, unsigned rhs) {
      return sites[lhs].first < sites[rhs].first;
    });
    const BucketKey &key = items[members[stream.front()].front()].key;
    Block *block = key.block;
    auto [list, isNew] = slots.try_emplace(block);
    if (isNew)
      blocks.push_back(block);
    int64_t pushed = 0;
    for (unsigned index : stream) {
      const Site &site = sites[index];
      pushed = std::max(pushed, getWanted(site, key.kind));
      bool moves = site.size > 1 || pushed > site.first;
      list->second.push_back({index, pushed, moves});
      if (!moves)
        continue;
      for (unsigned item : members[index]) {
        for (Operation *op : items[item].getOps())
          moved.insert(op);
        moved.insert(items[item].casts.begin(), items[item].casts.end());
      }
    }
  }

  SmallVector<Place, 0> places;
  for (Block *block : blocks) {
    SmallVector<Slot, 0> &list = slots[block];
    llvm::stable_sort(list, [&](const Slot &lhs, const Slot &rhs) {
      return std::make_pair(lhs.slot, sites[lhs.site].first) <
             std::make_pair(rhs.slot, sites[rhs.site].first);
    });
    // What moves itself is no landmark: take the next op that stays.
    ArrayRef<Operation *> all = ops.find(block)->second;
    SmallVector<Operation *, 0> landmarks(all.begin(), all.end());
    for (size_t index = all.size() - 1; index-- > 0;)
      if (moved.contains(all[index]))
        landmarks[index] = landmarks[index + 1];
    for (const Slot &slot : list)
      places.push_back({slot.site,
                        slot.moves ? landmarks[slot.slot] : all[slot.slot],
                        slot.moves});
  }
  return places;
}
