//===- BucketPlacement.h - where merged buckets can stand -*- C++ -*- -----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A merged gather stands at its first member, or behind the definition of its
// last operand; a merged reduction at its last member. The collectives of one
// kind in one block stand in the order of their buckets' first members, so that
// the order of issue is a function of the payload alone: a bucket that comes to
// stand behind one with a later first member takes that one along. None may
// move below the first use of what it makes.
//
// A *slot* is a place in the original order of a block: slot n lies before op
// number n. Ops that belong to no item keep their places, so every item has a
// lowest slot at which its operands exist and a highest one at which nobody has
// used its results, and both are known before anything moves. A *site* is a set
// of items that will share a bucket (at first one). It *wants* a slot:
//
//   gather:    max(its first collective, its lowest slot)
//   reduction: max(its last collective, its lowest slot)
//
// and gets the largest of its own and those of all sites with an earlier first
// member. An item may join a site if afterwards no site gets a slot above the
// highest of any of its items. The check looks at the items between the site's
// first member and its slot only, each once per site: joining all items is
// linear in their number, apart from sites that overlap.
//
// Between items that use each other's results directly the bounds are such that
// the user's slot is always above the maker's: a chain of such waits cannot
// close.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_TRANSFORMS_BUCKETPLACEMENT_H
#define FSDP_LIB_TRANSFORMS_BUCKETPLACEMENT_H

#include "BucketItems.h"

#include <variant>

namespace mlir::fsdp {

class BucketPlacement {
public:
  /// `items` in program order; they must outlive this object.
  explicit BucketPlacement(ArrayRef<BucketItem> items);

  /// Gives `item` a site of its own and returns its number.
  unsigned open(unsigned item);

  /// The bounds of a site.
  struct Site {
    int64_t first, last; ///< numbers of the first and last collective
    int64_t lowest, highest;
    unsigned size;
    /// The first item (as a place in its stream) that was not looked at yet,
    /// and the smallest highest slot of those that were.
    unsigned scanned;
    int64_t highestOfOthers;
  };

  /// What `site` would become with `item`, which has no site yet; the refusal
  /// if it cannot join.
  std::variant<Site, Refusal> tryJoin(unsigned site, unsigned item) const;
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
  /// Where everything stands in the end, in an order in which it can be carried
  /// out: what goes before the same op, in order; what is used before its user.
  /// Every item has a site by now.
  SmallVector<Place, 0> getPlaces() const;

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
  };

  void number(Block *block);
  void findBounds(unsigned item);
  int64_t getWanted(const Site &site, BucketKind kind) const;
  int64_t getFirst(unsigned item) const;
  bool reaches(Operation *from, int64_t first,
               function_ref<bool(unsigned)> isTarget) const;
  Refusal getRefusal(unsigned site, unsigned item, int64_t first) const;

  ArrayRef<BucketItem> items;
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
  /// The item of every op that unpacks.
  DenseMap<Operation *, unsigned> unpacks;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_TRANSFORMS_BUCKETPLACEMENT_H
