//===- BucketPolicy.h - which buckets merge: rules to choose -*- C++ -*- --===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `fsdp-form-buckets{policy=NAME}` asks a BucketPolicy which items share a
// bucket. A policy decides about key, walk, size and order; it cannot make a
// wrong program: items that differ in what a collective does, that wait for
// each other, or whose merged ops have no place, are refused by the
// BucketFormer whatever the policy wants, and every refusal becomes a remark.
//
// A compiler adds a policy of its own by deriving from BucketPolicy and
// registering a factory before the pass runs. Here every bucket has two items:
//
//   struct Pairs : BucketPolicy {
//     std::optional<SizeLimit> fills(const BucketSize &size) const override {
//       if (size.items < 2)
//         return std::nullopt;
//       return SizeLimit{"items", size.items, 2}; // for the remark
//     }
//   };
//   registerBucketPolicy("pairs", [](const BucketPolicyOptions &, auto) {
//     return std::make_unique<Pairs>();
//   });
//
// A system whose walk is not "offer every item to the open bucket of its key"
// overrides `form` as well. The policies of this project are in
// lib/Bucketing/BucketPolicies.cpp and use nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_BUCKETING_BUCKETPOLICY_H
#define FSDP_BUCKETING_BUCKETPOLICY_H

#include "fsdp/Bucketing/BucketItems.h"

#include <functional>
#include <memory>

namespace mlir::fsdp {

class BucketFormer;

/// How large a bucket is.
struct BucketSize {
  BucketKind kind = BucketKind::gather;
  unsigned index = 0; ///< how many buckets of its key were opened before
  unsigned items = 0;
  int64_t ranks = 1;       ///< W
  int64_t replicas = 1;    ///< H
  int64_t packedBytes = 0; ///< W * row bytes of its own layout
  // Sums over the items, each with the padding that it had before.
  int64_t inputBytes = 0;
  int64_t outputBytes = 0;
  int64_t elements = 0; ///< of the full parameters
};

/// A limit that a size would pass, or has reached, for the remark.
struct SizeLimit {
  StringRef what; ///< "bytes", "elements", ...: a string literal
  int64_t size;
  int64_t limit;
};

/// The options of fsdp-form-buckets. Empty: not given.
struct BucketPolicyOptions {
  bool isGlobal;    ///< scope=global
  StringRef gather; ///< "bytes" or "per-dtype"
  StringRef order;  ///< "registration" or "execution"
  ArrayRef<int64_t> maxBytes;
  ArrayRef<int64_t> maxElements;
};

/// Order of the members inside a bucket.
enum class MemberOrder {
  Registration, ///< unit ops in program order, each as its unit declares
  Declaration,  ///< as the module declares, units in the order of the text
  Walk          ///< as the items were added
};

/// Order of the collectives of one kind in one block.
enum class IssueOrder {
  /// That of the buckets' first members in the program. An item that would
  /// have to break it is refused.
  FirstMembers,
  /// The same, except for buckets whose results are used too early for it.
  FirstMembersIfPossible,
  /// That in which the policy closed the buckets, with the same exception.
  ClosingIfPossible
};

/// The rules by which buckets are formed. Has no state: one object serves all
/// modules.
class BucketPolicy {
public:
  virtual ~BucketPolicy() = default;

  /// Items with different keys never share a bucket. What has to be equal is
  /// (kind, block, groups of ranks, how a reduction is carried out); so is the
  /// unit op with scope=unit. This is what else must be.
  virtual Attribute getKey(const BucketItem &item) const { return {}; }
  /// The reason to name where only that differs.
  virtual Refusal getKeyRefusal() const { return Refusal::OtherKey; }
  /// True if gathers of different param dtypes have different keys.
  virtual bool isGatherPerDtype() const { return false; }

  virtual MemberOrder getMemberOrder(BucketKind kind) const {
    return MemberOrder::Registration;
  }
  virtual IssueOrder getIssueOrder() const {
    return IssueOrder::FirstMembersIfPossible;
  }
  /// Alignment of segments and rows; by default the items' own.
  virtual std::optional<int64_t> getAlignment() const { return std::nullopt; }

  /// Sorts `walk`, numbers of items in program order, into the order in which
  /// they are offered; by default in that of MemberOrder::Registration.
  virtual void sortWalk(ArrayRef<BucketItem> items,
                        MutableArrayRef<unsigned> walk) const;

  /// The limit that a bucket of `size`, the next item included, would pass:
  /// then it is closed without that item. A first item that passes it is a
  /// bucket of its own.
  virtual std::optional<SizeLimit> exceeds(const BucketSize &size) const {
    return std::nullopt;
  }
  /// The limit that a bucket of `size` has reached: then it is closed.
  virtual std::optional<SizeLimit> fills(const BucketSize &size) const {
    return std::nullopt;
  }

  /// Puts every item into a bucket. By default one bucket per key is open; an
  /// item that has to wait for it, or it for the item, is offered again when
  /// all others have found their buckets.
  virtual void form(BucketFormer &former) const;
};

/// What a policy forms buckets with. Items and buckets have numbers. An item
/// that no bucket takes by the end has one of its own.
class BucketFormer {
public:
  virtual ~BucketFormer() = default;

  /// Those that may be merged, in the policy's order.
  virtual ArrayRef<unsigned> getWalk() const = 0;
  virtual const BucketItem &getItem(unsigned item) const = 0;
  /// Equal for items that may share a bucket.
  virtual unsigned getKey(unsigned item) const = 0;
  /// True if `item` has the key of `bucket`.
  virtual bool isOfKey(unsigned bucket, unsigned item) const = 0;

  /// Puts `item` into a new bucket.
  virtual unsigned open(unsigned item) = 0;
  enum class Answer {
    Joins,
    Waits, ///< one needs the other, or a result is used too early: perhaps
           ///< later
    Full ///< the bucket holds what another unit op of its unit makes, or would
         ///< be larger than a tensor can be
  };
  /// Whether `item`, of the key of `bucket`, can join it.
  virtual Answer check(unsigned bucket, unsigned item) = 0;
  /// Lets `item` join; only after Answer::Joins.
  virtual void add(unsigned bucket, unsigned item) = 0;
  /// Ranks `bucket` behind all that were closed before, for
  /// IssueOrder::ClosingIfPossible. Those never closed come last.
  virtual void close(unsigned bucket) = 0;

  virtual BucketSize getSize(unsigned bucket) const = 0;
  /// The size with one item more; without one, that of a new bucket.
  virtual BucketSize getSizeWith(std::optional<unsigned> bucket,
                                 unsigned item) = 0;
  /// Remembers for a remark that `item` was too large, for any bucket
  /// (Oversize) or for the one that was open (SizeLimit). A failed check is
  /// remembered by itself; the first reason counts.
  virtual void refuse(unsigned item, Refusal refusal, SizeLimit limit) = 0;
};

/// Makes a policy, or returns null after an error at `emitError` where an
/// option does not go with it.
using BucketPolicyFactory = std::function<std::unique_ptr<BucketPolicy>(
    const BucketPolicyOptions &options,
    function_ref<InFlightDiagnostic()> emitError)>;

/// Makes `policy=NAME` known, or known anew.
void registerBucketPolicy(StringRef name, BucketPolicyFactory factory);

/// The policy of that name; "" is the one of this project. Null after an error
/// if there is none, or if it refuses the options.
std::unique_ptr<BucketPolicy>
createBucketPolicy(StringRef name, const BucketPolicyOptions &options,
                   function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::fsdp

#endif // FSDP_BUCKETING_BUCKETPOLICY_H
