//===- BucketGrouping.h - which items share a bucket -*- C++ -*- ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A policy decides which items should share a bucket (BucketPolicy.h), the
// placement whether they can (BucketPlacement.h). This class stands between
// them: it keeps the layout of every bucket, what every item was refused for,
// and holds what no policy may break. Nothing in the module changes yet.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_BUCKETING_BUCKETGROUPING_H
#define FSDP_BUCKETING_BUCKETGROUPING_H

#include "fsdp/Bucketing/BucketPlacement.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::fsdp {

/// Why an item was not taken into the bucket that was open for it.
struct Refused {
  Refusal refusal;
  std::optional<SizeLimit> limit;
};

/// A member of a bucket to be formed, and its item.
using PayloadEntry = std::pair<unsigned, const ItemMember *>;

class BucketGrouping final : public BucketFormer {
public:
  BucketGrouping(ArrayRef<BucketItem> items, const BucketPolicy &policy);

  // For the policy.
  ArrayRef<unsigned> getWalk() const override { return walk; }
  const BucketItem &getItem(unsigned item) const override {
    return items[item];
  }
  unsigned getKey(unsigned item) const override { return keyOf[item]; }
  bool isOfKey(unsigned bucket, unsigned item) const override {
    return keyOf[getItems(bucket).front()] == keyOf[item];
  }
  unsigned open(unsigned item) override;
  Answer check(unsigned bucket, unsigned item) override;
  void add(unsigned bucket, unsigned item) override;
  void close(unsigned bucket) override { closed.push_back(bucket); }
  BucketSize getSize(unsigned bucket) const override;
  BucketSize getSizeWith(std::optional<unsigned> bucket,
                         unsigned item) override;
  void refuse(unsigned item, Refusal refusal, SizeLimit limit) override;

  // For the pass.
  /// All items, in the policy's order.
  ArrayRef<unsigned> getOrder() const { return order; }
  unsigned getBucket(unsigned item) const { return *bucketOf[item]; }
  ArrayRef<unsigned> getItems(unsigned bucket) const {
    return placement.getItems(bucket);
  }
  /// The members of a bucket in the order in which they lie in it.
  SmallVector<PayloadEntry, 0> getPayload(ArrayRef<unsigned> ids) const;
  int64_t getAlignment(ArrayRef<unsigned> ids) const;
  SmallVector<BucketPlacement::Place, 0> getPlaces() const {
    return placement.getPlaces(closed);
  }
  bool isAbove(Operation *op, Operation *before) const {
    return placement.isAbove(op, before);
  }
  bool isFollowed(Operation *cast) const { return placement.isFollowed(cast); }
  /// Why two neighbours in the policy's order, in two buckets, did not merge.
  Refused getRefused(unsigned lhs, unsigned rhs) const;

private:
  /// A bucket to be formed. It has a site of the same number.
  struct Bucket {
    BucketSize size;
    BucketLayout layout;
    std::pair<unsigned, unsigned> last = {
        0, 0}; ///< rank of the member packed last
    /// The unit op from which the bucket takes what it has of a unit.
    llvm::SmallDenseMap<Operation *, unsigned, 2> unitOps;
  };
  /// A bucket with one item more. The last one is kept, since the same question
  /// is asked for the size, for the check and for the item to join.
  struct Trial {
    unsigned bucket = ~0u, item = ~0u, numItems = 0;
    bool fits = false; ///< false: no layout is that large
    int64_t packedBytes = 0;
    std::optional<BucketLayout> relaid; ///< nothing: the item comes last
    std::optional<BucketPlacement::Site> site;
  };

  void findKeys();
  std::pair<unsigned, unsigned> getRank(const BucketItem &item,
                                        const ItemMember &member) const;
  std::optional<BucketLayout> getLayout(ArrayRef<unsigned> ids) const;
  Trial &tryLayout(unsigned bucket, unsigned item);
  void remember(unsigned item, Refused refused);

  ArrayRef<BucketItem> items;
  const BucketPolicy &policy;
  BucketPlacement placement;
  SmallVector<unsigned, 0> order, walk;
  SmallVector<bool, 0> isOfOneUnit; ///< by item
  SmallVector<unsigned, 0> keyOf;
  SmallVector<unsigned, 0> bucketsOfKey; ///< how many were opened
  SmallVector<Attribute, 0> policyKeys;  ///< of the items
  SmallVector<Bucket, 0> buckets;
  Trial trial;
  SmallVector<unsigned, 0> closed;
  SmallVector<std::optional<unsigned>, 0> bucketOf;
  SmallVector<std::optional<Refused>, 0> refusedOf;
};

} // namespace mlir::fsdp

#endif // FSDP_BUCKETING_BUCKETGROUPING_H
