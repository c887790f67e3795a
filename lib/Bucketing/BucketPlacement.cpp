//===- BucketPlacement.cpp - where merged buckets can stand ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Bucketing/BucketPlacement.h"

#include "mlir/Transforms/RegionUtils.h"

#include <set>

using namespace mlir;
using namespace mlir::fsdp;

BucketPlacement::BucketPlacement(ArrayRef<BucketItem> items, IssueOrder order)
    : items(items), order(order), bounds(items.size()) {
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
      if (op->getBlock() == block) {
        movable.insert(op);
        itemOf[op] = index;
      }
    movable.insert(item.casts.begin(), item.casts.end());
    for (Operation *cast : item.casts)
      itemOfCast[cast] = index;
  }
  hasFollowers.resize(streams.size());
  for (unsigned index = 0; index < items.size(); ++index)
    findBounds(index);
}

/// The item that `user`, an op of `item`, follows because it uses what `maker`
/// makes; nothing if the bounds keep the two apart.
std::optional<unsigned> BucketPlacement::getFollowed(unsigned item,
                                                     Operation *user,
                                                     Operation *maker) const {
  if (!items[item].isWhole() || user->getBlock() != items[item].key.block)
    return std::nullopt;
  auto found = itemOf.find(maker);
  if (found == itemOf.end()) {
    found = itemOfCast.find(maker);
    if (found == itemOfCast.end())
      return std::nullopt;
  }
  unsigned other = found->second;
  bool isInOrder = items[other].isWhole() &&
                   bounds[other].stream == bounds[item].stream &&
                   items[other].unpack->getBlock() == items[item].key.block;
  return isInOrder ? std::optional<unsigned>(other) : std::nullopt;
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
    if (std::optional<unsigned> other = getFollowed(index, user, maker)) {
      bound.makers.push_back({*other, numbers.lookup(maker)});
      bound.firstUse = std::min(bound.firstUse, numbers.lookup(user));
      bounds[*other].followers.push_back(index);
      hasFollowers.set(bound.stream);
      // All casts on the way have to be there too.
      for (Operation *cast = maker; itemOfCast.contains(cast);
           cast = cast->getOperand(0).getDefiningOp())
        followed.insert(cast);
      return;
    }
    int64_t slot = movable.contains(maker) ? numbers.lookup(user)
                                           : numbers.lookup(maker) + 1;
    bound.lowest = std::max(bound.lowest, slot);
  };
  // A user that moves itself keeps its distance: its new place is nowhere above
  // the old one, and this item's nowhere below the op in front of that.
  bound.highest = std::numeric_limits<int64_t>::max();
  auto isUsedBy = [&](Operation *user, Operation *maker) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor) // in another block of the region
      return;
    auto other = itemOf.find(user);
    if (other != itemOf.end() && getFollowed(other->second, user, maker))
      return;
    int64_t slot = numbers.lookup(ancestor) - movable.contains(ancestor);
    bound.highest = std::min(bound.highest, slot);
  };

  if (!item.isWhole()) {
    for (Operation *user : item.collective->getUsers())
      isUsedBy(user, item.collective);
    return;
  }
  // Casts in front of the item go where it goes.
  llvm::SmallDenseSet<Operation *> inputCasts(item.inputCasts.begin(),
                                              item.inputCasts.end());
  for (Value operand : item.pack->getOperands()) {
    Operation *user = item.pack;
    while (inputCasts.contains(operand.getDefiningOp())) {
      user = operand.getDefiningOp();
      operand = user->getOperand(0);
    }
    needs(operand, user);
  }
  for (Value old : cast<LocalOpInterface>(item.unpack).getAdd())
    needs(old, item.unpack);
  if (item.unpack->getBlock() != block)
    isUsedBy(item.unpack, item.collective);
  SmallPtrSet<Operation *, 8> casts(item.casts.begin(), item.casts.end());
  auto isUsed = [&](Operation *maker) {
    for (Operation *user : maker->getUsers())
      if (!casts.contains(user))
        isUsedBy(user, maker);
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

/// All items that share a site with `item`.
ArrayRef<unsigned> BucketPlacement::getSiteItems(unsigned item) const {
  int site = bounds[item].site;
  return site < 0 ? ArrayRef(streams[bounds[item].stream])
                        .slice(bounds[item].place, 1)
                  : ArrayRef<unsigned>(getItems(site));
}

/// The highest slot that the items in front of `site` leave to it; nothing if
/// one of those is an item of `site` itself, which would wait for itself.
std::optional<int64_t>
BucketPlacement::getLowestBehindMakers(ArrayRef<unsigned> site) const {
  int64_t lowest = 0;
  DenseSet<unsigned> seen(site.begin(), site.end());
  SmallVector<unsigned> worklist(site);
  llvm::SmallDenseSet<unsigned> own(site.begin(), site.end());
  while (!worklist.empty()) {
    unsigned item = worklist.pop_back_val();
    for (auto [maker, number] : bounds[item].makers) {
      ArrayRef<unsigned> others = getSiteItems(maker);
      if (llvm::any_of(others,
                       [&](unsigned other) { return own.contains(other); }))
        return std::nullopt;
      // What is alone may stay where it is.
      int64_t slot = number + 1;
      if (others.size() > 1)
        slot = getWanted(sites[bounds[maker].site], items[maker].key.kind);
      lowest = std::max(lowest, slot);
      for (unsigned other : others)
        if (seen.insert(other).second)
          worklist.push_back(other);
    }
  }
  return lowest;
}

/// The lowest slot that the items behind `site` leave to it.
int64_t BucketPlacement::getHighestOfFollowers(ArrayRef<unsigned> site) const {
  int64_t highest = std::numeric_limits<int64_t>::max();
  DenseSet<unsigned> seen(site.begin(), site.end());
  SmallVector<unsigned> worklist(site);
  while (!worklist.empty()) {
    unsigned item = worklist.pop_back_val();
    highest = std::min(highest, bounds[item].highest);
    for (unsigned follower : bounds[item].followers)
      for (unsigned other : getSiteItems(follower))
        if (seen.insert(other).second)
          worklist.push_back(other);
  }
  return highest;
}

unsigned BucketPlacement::open(unsigned item) {
  Bounds &bound = bounds[item];
  bound.site = sites.size();
  sites.push_back({bound.number, bound.number, bound.lowest, bound.highest,
                   /*size=*/1, /*firstPlace=*/bound.place,
                   /*scanned=*/bound.place + 1,
                   std::numeric_limits<int64_t>::max()});
  members.push_back({item});
  return bound.site;
}

std::optional<BucketPlacement::Site>
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
    joined.firstPlace = bound.place;
    joined.scanned = bound.place + 1;
    joined.highestOfOthers = std::numeric_limits<int64_t>::max();
  }
  int64_t wanted = getWanted(joined, items[item].key.kind);
  int64_t highest = joined.highest;
  if (hasFollowers.test(bound.stream)) {
    SmallVector<unsigned> all(getItems(site));
    all.push_back(item);
    std::optional<int64_t> lowest = getLowestBehindMakers(all);
    if (!lowest)
      return std::nullopt;
    wanted = std::max(wanted, *lowest);
    highest = getHighestOfFollowers(all);
  }
  if (wanted > highest)
    return std::nullopt;
  if (order != IssueOrder::FirstMembers)
    return joined;
  ArrayRef<unsigned> stream = streams[bound.stream];
  for (; joined.scanned < stream.size(); ++joined.scanned) {
    unsigned other = stream[joined.scanned];
    if (bounds[other].number >= wanted)
      break;
    if (other != item && getFirst(other) > joined.first)
      joined.highestOfOthers =
          std::min(joined.highestOfOthers, bounds[other].highest);
  }
  if (wanted > joined.highestOfOthers &&
      !pushesOnlyNeeded(joined, site, item, wanted))
    return std::nullopt;
  return joined;
}

void BucketPlacement::join(unsigned site, unsigned item, const Site &joined) {
  bounds[item].site = site;
  sites[site] = joined;
  members[site].push_back(item);
}

/// Visits the items that `roots` need through any chain of ops, until `isLast`
/// holds for one, and tells whether it did. Items that share a site are one
/// node: who needs one of them waits for what all of them need. An op that
/// stays where it is cannot need what is made below it, so that ops in front of
/// number `cutoff` are not looked at.
bool BucketPlacement::needs(ArrayRef<unsigned> roots, int64_t cutoff,
                            function_ref<bool(unsigned)> isLast) const {
  Block *block = items[roots.front()].key.block;
  SmallVector<Operation *> worklist;
  DenseSet<unsigned> seenItems;
  auto follow = [&](unsigned item) {
    seenItems.insert(item);
    for (Operation *op : items[item].getOps())
      if (op->getBlock() == block)
        worklist.push_back(op);
  };
  llvm::for_each(roots, follow);
  DenseSet<Operation *> seen;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), operands);
    for (Value operand : operands) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || maker->getBlock() != block)
        continue;
      auto item = itemOf.find(maker);
      if (item == itemOf.end()) {
        bool isTooEarly =
            numbers.lookup(maker) < cutoff && !movable.contains(maker);
        if (!isTooEarly && seen.insert(maker).second)
          worklist.push_back(maker);
        continue;
      }
      int site = bounds[item->second].site;
      for (unsigned other :
           site < 0 ? ArrayRef(item->second) : getItems(site)) {
        if (seenItems.contains(other))
          continue;
        if (isLast(other))
          return true;
        follow(other);
      }
    }
  }
  return false;
}

/// True if `site` with `item`, at slot `wanted`, needs all the sites that it
/// would push too far down. They stay above it.
bool BucketPlacement::pushesOnlyNeeded(Site &joined, unsigned site,
                                       unsigned item, int64_t wanted) const {
  ArrayRef<unsigned> stream = streams[bounds[item].stream];
  DenseSet<unsigned> pushed;
  int64_t cutoff = wanted;
  joined.highestOfOthers = std::numeric_limits<int64_t>::max();
  for (unsigned other : stream.slice(joined.firstPlace + 1)) {
    const Bounds &bound = bounds[other];
    if (bound.number >= wanted)
      break;
    if (other == item || getFirst(other) <= joined.first)
      continue;
    if (bound.highest >= wanted) {
      joined.highestOfOthers = std::min(joined.highestOfOthers, bound.highest);
      continue;
    }
    pushed.insert(other);
    cutoff = std::min(cutoff, bound.number);
  }
  SmallVector<unsigned> roots(getItems(site));
  roots.push_back(item);
  return pushed.empty() || needs(roots, cutoff, [&](unsigned other) {
           pushed.erase(other);
           return pushed.empty();
         });
}

Refusal BucketPlacement::getRefusal(unsigned site, unsigned item) const {
  auto isInSite = [&](unsigned other) {
    return bounds[other].site == static_cast<int>(site);
  };
  if (needs({item}, sites[site].first, isInSite) ||
      needs(getItems(site), bounds[item].number,
            [&](unsigned other) { return other == item; }))
    return Refusal::Depends;
  return Refusal::UsedBefore;
}

/// Gives the sites of one stream, in the order in which they should stand,
/// their slots, in the order in which they will.
SmallVector<BucketPlacement::Slot, 0>
BucketPlacement::schedule(ArrayRef<unsigned> order) const {
  unsigned stream = bounds[members[order.front()].front()].stream;
  BucketKind kind = items[members[order.front()].front()].key.kind;
  // Sites without a slot, by their highest one; as indices into `order`.
  std::set<std::pair<int64_t, unsigned>> waiting;
  SmallVector<int64_t, 0> highest;
  DenseMap<unsigned, unsigned> indexOf;
  for (auto [index, site] : llvm::enumerate(order)) {
    highest.push_back(hasFollowers.test(stream)
                          ? getHighestOfFollowers(members[site])
                          : sites[site].highest);
    waiting.insert({highest.back(), index});
    indexOf[site] = index;
  }
  SmallVector<Slot, 0> slots;
  SmallVector<unsigned> stack;
  BitVector placed(order.size());
  SmallVector<int64_t, 0> slotOf(order.size());
  int64_t reached = 0;
  for (unsigned next = 0; next < order.size(); ++next) {
    if (!placed.test(next))
      stack.push_back(next);
    while (!stack.empty()) {
      unsigned index = stack.back();
      const Site &site = sites[order[index]];
      // Those that it follows go first.
      int64_t behindMakers = 0, firstUse = std::numeric_limits<int64_t>::max();
      std::optional<unsigned> maker;
      for (unsigned item : members[order[index]]) {
        firstUse = std::min(firstUse, bounds[item].firstUse);
        for (auto [other, number] : bounds[item].makers) {
          unsigned otherSite = bounds[other].site;
          unsigned otherIndex = indexOf.lookup(otherSite);
          if (!placed.test(otherIndex))
            maker = otherIndex;
          behindMakers = std::max(behindMakers, slotOf[otherIndex]);
          if (sites[otherSite].size == 1)
            behindMakers = std::max(behindMakers, number + 1);
        }
      }
      if (maker) {
        stack.push_back(*maker);
        continue;
      }
      int64_t slot = std::max({reached, getWanted(site, kind), behindMakers});
      bool moves =
          site.size > 1 || slot > site.first || behindMakers > firstUse;
      int64_t end = moves ? slot : slot + 1; // behind the op that stays
      // Behind this one they would stand too low. They are content with less,
      // so that none of them waits for what is on the stack.
      unsigned urgent = order.size();
      for (auto [limit, other] : waiting) {
        if (limit >= end)
          break;
        if (other != index)
          urgent = std::min(urgent, other);
      }
      if (urgent < order.size()) {
        stack.push_back(urgent);
        continue;
      }
      reached = end;
      slotOf[index] = slot;
      slots.push_back({order[index], slot, moves});
      waiting.erase({highest[index], index});
      placed.set(index);
      stack.pop_back();
    }
  }
  return slots;
}

SmallVector<BucketPlacement::Place, 0>
BucketPlacement::getPlaces(ArrayRef<unsigned> closed) const {
  SmallVector<int64_t, 0> ranks;
  for (const Site &site : sites)
    ranks.push_back(order == IssueOrder::ClosingIfPossible
                        ? static_cast<int64_t>(closed.size() + ranks.size())
                        : site.first);
  if (order == IssueOrder::ClosingIfPossible)
    for (auto [rank, site] : llvm::enumerate(closed))
      ranks[site] = rank;

  SmallVector<SmallVector<unsigned, 0>> sitesOf(streams.size());
  for (auto [index, ids] : llvm::enumerate(members))
    sitesOf[bounds[ids.front()].stream].push_back(index);
  // Streams of one block are carried out together. They are listed in program
  // order of their first items, so that blocks are, too.
  SmallVector<Block *> blocks;
  DenseMap<Block *, SmallVector<Slot, 0>> slots;
  DenseSet<Operation *> moved;
  for (SmallVector<unsigned, 0> &stream : sitesOf) {
    llvm::sort(stream, [&](unsigned lhs, unsigned rhs) {
      return ranks[lhs] < ranks[rhs];
    });
    Block *block = items[members[stream.front()].front()].key.block;
    auto [list, isNew] = slots.try_emplace(block);
    if (isNew)
      blocks.push_back(block);
    SmallVector<Slot, 0> scheduled = schedule(stream);
    for (const Slot &slot : scheduled) {
      if (!slot.moves)
        continue;
      for (unsigned item : members[slot.site]) {
        for (Operation *op : items[item].getOps())
          moved.insert(op);
        for (ArrayRef<Operation *> casts :
             {ArrayRef(items[item].inputCasts), ArrayRef(items[item].casts)})
          moved.insert(casts.begin(), casts.end());
      }
    }
    // Each stream keeps its order; between two it is that of first members.
    SmallVector<Slot, 0> merged;
    Slot *other = list->second.begin();
    for (const Slot &slot : scheduled) {
      auto isInFront = [&](const Slot &lhs) {
        return std::make_pair(lhs.slot, sites[lhs.site].first) <
               std::make_pair(slot.slot, sites[slot.site].first);
      };
      for (; other != list->second.end() && isInFront(*other); ++other)
        merged.push_back(*other);
      merged.push_back(slot);
    }
    merged.append(other, list->second.end());
    list->second = std::move(merged);
  }

  SmallVector<Place, 0> places;
  for (Block *block : blocks) {
    // What moves itself is no landmark: take the next op that stays.
    ArrayRef<Operation *> all = ops.find(block)->second;
    SmallVector<Operation *, 0> landmarks(all.begin(), all.end());
    for (size_t index = all.size() - 1; index-- > 0;)
      if (moved.contains(all[index]))
        landmarks[index] = landmarks[index + 1];
    for (const Slot &slot : slots[block])
      places.push_back({slot.site,
                        slot.moves ? landmarks[slot.slot] : all[slot.slot],
                        slot.moves});
  }
  return places;
}
