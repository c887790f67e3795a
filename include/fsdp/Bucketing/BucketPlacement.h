//===- BucketPlacement.h - where merged buckets can stand -*- C++ -*- -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A merged gather stands at its first member, or behind the definition of its
// last operand; a merged reduction at its last member. None may move below the
// first use of what it makes. The collectives of one kind in one block stand in
// an order that is a function of the module's text alone: by default that of
// the buckets' first members, so that a bucket that comes to stand behind one
// with a later first member takes that one along.
//
// One exception: a bucket may come after a bucket with a later first member
// that it needs. With a (k), b (j), c (k, needs b), the bucket {a,c} can only
// stand behind b; without the exception c could never join a.
//
// A *slot* is a place in the original order of a block: slot n lies before op
// number n. Ops that belong to no item keep their places, and an item takes the
// casts of its operands along, so every item has a lowest slot at which what it
// is made of exists, and a highest one at which nobody has
// used its results, and both are known before anything moves. A *site* is a set
// of items that will share a bucket (at first one). It *wants* a slot:
//
//   gather:    max(its first collective, its lowest slot)
//   reduction: max(its last collective, its lowest slot)
//
// and gets the largest of its own and those of all sites in front of it. Sites
// are placed in their order; those whose highest slot would be passed by the
// next one are placed before it. With IssueOrder::FirstMembers an item may join
// a site only if all those are sites that it needs. The check looks at the
// items between the site's first member and its slot only, each once per site:
// joining all items is linear in their number, apart from sites that overlap.
//
// Between items of two streams that use each other's results directly the
// bounds are such that the user's slot is always below the maker's: a chain of
// such waits cannot close. Within one stream there are no such bounds, or
// chains of gathers could not be merged link by link: the user only has to
// stand behind the maker, wherever that comes to stand. A site then *follows*
// others, directly or not. It can be placed no higher than they want to be,
// they no lower than it may be, and an item does not join a site that it
// follows, or that follows it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_BUCKETING_BUCKETPLACEMENT_H
#define FSDP_BUCKETING_BUCKETPLACEMENT_H

#include "fsdp/Bucketing/BucketPolicy.h"

namespace mlir::fsdp {

class BucketPlacement {
public:
  /// `items` in program order; they must outlive this object.
  BucketPlacement(ArrayRef<BucketItem> items, IssueOrder order);

  /// Gives `item` a site of its own and returns its number.
  unsigned open(unsigned item);

  /// The bounds of a site.
  struct Site {
    int64_t first, last; ///< numbers of the first and last collective
    int64_t lowest, highest;
    unsigned size;
    unsigned firstPlace; ///< of the first collective in its stream
    /// The first item (as a place in its stream) that was not looked at yet,
    /// and the smallest highest slot of those that were. Without those that
    /// the site needs.
    unsigned scanned;
    int64_t highestOfOthers;
  };

  /// What `site` would become with `item`, which has no site yet; nothing if it
  /// cannot join.
  std::optional<Site> tryJoin(unsigned site, unsigned item) const;
  /// Why not: one needs the other, or somebody uses a result too early.
  Refusal getRefusal(unsigned site, unsigned item) const;
  /// Lets `item` join, after tryJoin has returned `joined`.
  void join(unsigned site, unsigned item, const Site &joined);

  /// In the order in which they joined.
  ArrayRef<unsigned> getItems(unsigned site) const { return members[site]; }

  /// One site at its place.
  struct Place {
    unsigned site;
    Operation *before; ///< the op of the original order before which it stands
    bool moves;        ///< false: a site of one item that can stay as it is
  };
  /// True if an item of the same kind uses what `cast`, behind an item, makes:
  /// then it moves up with the item.
  bool isFollowed(Operation *cast) const { return followed.contains(cast); }
  /// Where everything stands in the end, in an order in which it can be carried
  /// out: what goes before the same op, in order; what is used before its user.
  /// Every item has a site by now. `closed` are sites in the order in which
  /// they were closed.
  SmallVector<Place, 0> getPlaces(ArrayRef<unsigned> closed) const;

  /// True if `op`, in the block of `item`, stands above `before`.
  bool isAbove(Operation *op, Operation *before) const {
    return numbers.lookup(op) < numbers.lookup(before);
  }

private:
  /// What is known of one item.
  struct Bounds {
    unsigned stream; ///< index of its block and kind in `streams`
    unsigned place;  ///< in the stream
    int64_t number;  ///< of the collective in its block
    int64_t lowest;  ///< slot from which on all operands exist
    int64_t highest; ///< slot down to which no result was used
    int site = -1;
    /// Items of the stream whose results this one uses, each with the number of
    /// the op that makes them, and the lowest number of an op that does so.
    SmallVector<std::pair<unsigned, int64_t>, 0> makers;
    int64_t firstUse = std::numeric_limits<int64_t>::max();
    /// Items of the stream that use results of this one.
    SmallVector<unsigned, 0> followers;
  };

  void number(Block *block);
  void findBounds(unsigned item);
  int64_t getWanted(const Site &site, BucketKind kind) const;
  int64_t getFirst(unsigned item) const;
  std::optional<unsigned> getFollowed(unsigned item, Operation *user,
                                      Operation *maker) const;
  ArrayRef<unsigned> getSiteItems(unsigned item) const;
  std::optional<int64_t> getLowestBehindMakers(ArrayRef<unsigned> site) const;
  int64_t getHighestOfFollowers(ArrayRef<unsigned> site) const;
  bool needs(ArrayRef<unsigned> roots, int64_t cutoff,
             function_ref<bool(unsigned)> isLast) const;
  bool pushesOnlyNeeded(Site &joined, unsigned site, unsigned item,
                        int64_t wanted) const;
  struct Slot {
    unsigned site;
    int64_t slot;
    bool moves;
  };
  SmallVector<Slot, 0> schedule(ArrayRef<unsigned> order) const;

  ArrayRef<BucketItem> items;
  IssueOrder order;
  SmallVector<Bounds, 0> bounds;
  SmallVector<Site, 0> sites;
  SmallVector<SmallVector<unsigned, 1>, 0> members; ///< of the sites
  /// Items of one block and kind, in program order.
  SmallVector<SmallVector<unsigned, 0>> streams;
  /// The ops of the blocks that hold items, and their numbers.
  DenseMap<Block *, SmallVector<Operation *, 0>> ops;
  DenseMap<Operation *, int64_t> numbers;
  /// Ops that may move: those of items in their collective's block, and casts.
  DenseSet<Operation *> movable;
  /// The item of every op that belongs to one and stands in its block.
  DenseMap<Operation *, unsigned> itemOf;
  /// The item of every cast behind one.
  DenseMap<Operation *, unsigned> itemOfCast;
  DenseSet<Operation *> followed;
  BitVector hasFollowers; ///< of the streams: an item follows another
};

} // namespace mlir::fsdp

#endif // FSDP_BUCKETING_BUCKETPLACEMENT_H
