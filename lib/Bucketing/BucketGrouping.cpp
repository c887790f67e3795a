//===- BucketGrouping.cpp - which items share a bucket --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Bucketing/BucketGrouping.h"

using namespace mlir;
using namespace mlir::fsdp;

BucketGrouping::BucketGrouping(ArrayRef<BucketItem> items,
                               const BucketPolicy &policy)
    : items(items), policy(policy), placement(items, policy.getIssueOrder()),
      bucketOf(items.size()), refusedOf(items.size()) {
  findKeys();
  for (const BucketItem &item : items) {
    UnitOp unit = ParamOp(item.members.front().param).getUnit();
    isOfOneUnit.push_back(
        llvm::all_of(item.members, [&](const ItemMember &member) {
          return ParamOp(member.param).getUnit() == unit;
        }));
  }
  for (unsigned item = 0; item < items.size(); ++item)
    order.push_back(item);
  policy.sortWalk(items, order);
  for (unsigned item : order)
    if (items[item].isWhole())
      walk.push_back(item);
  policy.form(*this);
  for (unsigned item : order)
    if (!bucketOf[item])
      open(item);
}

void BucketGrouping::findKeys() {
  using Key = decltype(std::declval<BucketKey>().asTuple());
  DenseMap<std::pair<Key, Attribute>, unsigned> numbers;
  for (const BucketItem &item : items) {
    policyKeys.push_back(item.isWhole() ? policy.getKey(item) : Attribute());
    auto [entry, isNew] = numbers.try_emplace(
        {item.key.asTuple(), policyKeys.back()}, numbers.size());
    keyOf.push_back(entry->second);
  }
  bucketsOfKey.assign(numbers.size(), 0);
}

//===----------------------------------------------------------------------===//
// Members and their layout
//===----------------------------------------------------------------------===//

/// What the members of a bucket are sorted by.
std::pair<unsigned, unsigned>
BucketGrouping::getRank(const BucketItem &item,
                        const ItemMember &member) const {
  switch (policy.getMemberOrder(item.key.kind)) {
  case MemberOrder::Registration:
    // A bucket of several units, from an earlier run, stays in its order.
    return {item.origin, isOfOneUnit[&item - items.begin()] ? member.position
                                                            : member.index};
  case MemberOrder::Declaration:
    return {0, member.position};
  case MemberOrder::Walk:
    return {0, 0};
  }
  llvm_unreachable("unknown order");
}

SmallVector<PayloadEntry, 0>
BucketGrouping::getPayload(ArrayRef<unsigned> ids) const {
  SmallVector<PayloadEntry, 0> payload;
  for (unsigned id : ids)
    for (const ItemMember &member : items[id].members)
      payload.push_back({id, &member});
  llvm::stable_sort(payload, [&](PayloadEntry lhs, PayloadEntry rhs) {
    return getRank(items[lhs.first], *lhs.second) <
           getRank(items[rhs.first], *rhs.second);
  });
  return payload;
}

int64_t BucketGrouping::getAlignment(ArrayRef<unsigned> ids) const {
  int64_t align = 1;
  for (unsigned id : ids)
    align = std::max(align, items[id].align);
  return policy.getAlignment().value_or(align);
}

std::optional<BucketLayout>
BucketGrouping::getLayout(ArrayRef<unsigned> ids) const {
  std::vector<SegmentSize> sizes;
  for (auto [id, member] : getPayload(ids))
    sizes.push_back(member->size);
  // Sizes in bytes do not depend on the wire's.
  return BucketLayout::get(sizes, items[ids.front()].ranks, /*wireBytes=*/1,
                           getAlignment(ids));
}

BucketGrouping::Trial &BucketGrouping::tryLayout(unsigned id, unsigned item) {
  ArrayRef<unsigned> ids = getItems(id);
  if (trial.bucket == id && trial.item == item && trial.numItems == ids.size())
    return trial;
  Bucket &bucket = buckets[id];
  trial = Trial();
  trial.bucket = id;
  trial.item = item;
  trial.numItems = ids.size();
  // Usually the item comes last in the bucket: then do not lay out anew.
  bool isLast =
      policy.getAlignment() || items[item].align <= bucket.layout.align;
  for (const ItemMember &member : items[item].members)
    isLast &= getRank(items[item], member) >= bucket.last;
  if (isLast) {
    size_t numSegments = bucket.layout.segments.size();
    int64_t rowBytes = bucket.layout.rowBytes;
    trial.fits =
        llvm::all_of(items[item].members, [&](const ItemMember &member) {
          return bucket.layout.append(member.size);
        });
    trial.packedBytes = bucket.layout.packedBytes();
    bucket.layout.segments.resize(numSegments);
    bucket.layout.rowBytes = rowBytes;
    return trial;
  }
  SmallVector<unsigned> with(ids);
  with.push_back(item);
  trial.relaid = getLayout(with);
  trial.fits = trial.relaid.has_value();
  if (trial.fits)
    trial.packedBytes = trial.relaid->packedBytes();
  return trial;
}

//===----------------------------------------------------------------------===//
// What the policy asks and does
//===----------------------------------------------------------------------===//

static BucketSize addItem(BucketSize size, const BucketItem &item) {
  ++size.items;
  size.inputBytes = addSizes(size.inputBytes, item.getInputBytes());
  size.outputBytes = addSizes(size.outputBytes, item.getOutputBytes());
  size.elements = addSizes(size.elements, item.getElements());
  return size;
}

BucketSize BucketGrouping::getSize(unsigned bucket) const {
  return buckets[bucket].size;
}

BucketSize BucketGrouping::getSizeWith(std::optional<unsigned> bucket,
                                       unsigned id) {
  const BucketItem &item = items[id];
  BucketSize size{item.key.kind, bucketsOfKey[keyOf[id]]};
  size.ranks = item.ranks;
  size.replicas = item.replicas;
  if (bucket) {
    size = addItem(buckets[*bucket].size, item);
    const Trial &result = tryLayout(*bucket, id);
    size.packedBytes =
        result.fits ? result.packedBytes : std::numeric_limits<int64_t>::max();
    return size;
  }
  size = addItem(size, item);
  // Its own bucket has been laid out before.
  size.packedBytes = getLayout({id})->packedBytes();
  return size;
}

unsigned BucketGrouping::open(unsigned id) {
  const BucketItem &item = items[id];
  BucketSize size = getSizeWith(std::nullopt, id);
  ++bucketsOfKey[keyOf[id]];
  unsigned number = placement.open(id);
  Bucket &bucket = buckets.emplace_back();
  bucket.size = size;
  bucket.layout = *getLayout({id});
  for (const ItemMember &member : item.members) {
    bucket.last = std::max(bucket.last, getRank(item, member));
    bucket.unitOps[ParamOp(member.param).getUnit()] = item.origin;
  }
  bucketOf[id] = number;
  return number;
}

BucketFormer::Answer BucketGrouping::check(unsigned bucket, unsigned id) {
  const BucketItem &item = items[id];
  // Unit ops of one unit are independent: parameters of the second one are
  // gathered, or reduced, once more on purpose. So none stands in a bucket
  // twice either.
  auto isOtherOp = [&](const ItemMember &member) {
    auto found = buckets[bucket].unitOps.find(ParamOp(member.param).getUnit());
    return found != buckets[bucket].unitOps.end() &&
           found->second != item.origin;
  };
  if (llvm::any_of(item.members, isOtherOp)) {
    remember(id, {Refusal::OtherUnit, std::nullopt});
    return Answer::Full;
  }
  std::optional<BucketPlacement::Site> site = placement.tryJoin(bucket, id);
  if (!site) {
    if (!refusedOf[id]) // finding the reason takes longer
      remember(id, {placement.getRefusal(bucket, id), std::nullopt});
    return Answer::Waits;
  }
  Trial &result = tryLayout(bucket, id);
  result.site = site;
  if (result.fits)
    return Answer::Joins;
  remember(id, {Refusal::SizeLimit,
                SizeLimit{"bytes", std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::max()}});
  return Answer::Full;
}

void BucketGrouping::add(unsigned number, unsigned id) {
  const BucketItem &item = items[id];
  Bucket &bucket = buckets[number];
  bucket.size = getSizeWith(number, id);
  Trial &result = tryLayout(number, id);
  assert(result.site && "only what was checked can join");
  placement.join(number, id, *result.site);
  if (result.relaid)
    bucket.layout = std::move(*result.relaid);
  else
    for (const ItemMember &member : item.members)
      bucket.layout.append(member.size);
  for (const ItemMember &member : item.members) {
    bucket.last = std::max(bucket.last, getRank(item, member));
    bucket.unitOps[ParamOp(member.param).getUnit()] = item.origin;
  }
  bucketOf[id] = number;
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

void BucketGrouping::remember(unsigned item, Refused refused) {
  if (!refusedOf[item])
    refusedOf[item] = refused;
}

void BucketGrouping::refuse(unsigned item, Refusal refusal, SizeLimit limit) {
  // That an item is too large for any bucket says more than that it was for
  // one.
  if (refusal == Refusal::Oversize)
    refusedOf[item] = Refused{refusal, limit};
  else
    remember(item, {refusal, limit});
}

Refused BucketGrouping::getRefused(unsigned lhs, unsigned rhs) const {
  const BucketItem &left = items[lhs], &right = items[rhs];
  BucketKey leftKey = left.key;
  bool isPartial = !left.isWhole() || !right.isWhole();
  if (isPartial) // whose reduction is not known in full
    leftKey.reduction = right.key.reduction;
  if (std::optional<Refusal> difference = leftKey.differsFrom(right.key))
    return {*difference, std::nullopt};
  if (isPartial)
    return {Refusal::Partial, std::nullopt};
  if (policyKeys[lhs] != policyKeys[rhs])
    return {policy.getKeyRefusal(), std::nullopt};
  // Equal keys: one of the two was refused by a bucket.
  std::optional<Refused> refused = refusedOf[rhs];
  if (!refused ||
      (refusedOf[lhs] && refusedOf[lhs]->refusal < refused->refusal))
    refused = refusedOf[lhs];
  // Or the policy ended the bucket for a reason of its own.
  return refused.value_or(Refused{Refusal::OtherKey, std::nullopt});
}
