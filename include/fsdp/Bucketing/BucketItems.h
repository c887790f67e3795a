//===- BucketItems.h - what forming buckets works on -*- C++ -*- ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An item is one bucket with the ops that use it:
//
//   [casts ->] concat -> all_gather -> unchunk [-> casts]
//   [casts ->] chunk_cat -> reduce_scatter [-> all_reduce] -> split [-> casts]
//
// Items with equal keys may share a bucket. This file finds the items of a
// module and their keys. Which items merge is a policy's decision
// (BucketPolicy.h); where a merged item can stand is nobody's choice.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_BUCKETING_BUCKETITEMS_H
#define FSDP_BUCKETING_BUCKETITEMS_H

#include "fsdp/Dialect/Fsdp.h"

namespace mlir::fsdp {

/// Why two items do not share a bucket. Where several reasons apply, the first
/// is the one to name.
enum class Refusal {
  OtherKind,
  OtherBlock,
  OtherAxes,
  OtherDtype,
  OtherReduction,
  OtherUnit,
  OtherKey, ///< of a policy: see BucketPolicy::getKey
  Partial,
  Depends,
  UsedBefore,
  Oversize,
  SizeLimit
};
StringRef stringifyRefusal(Refusal refusal);

/// What must be equal for two items to share a bucket.
struct BucketKey {
  BucketKind kind;
  Block *block;    ///< of the collective
  Operation *grid; ///< with the two below: the groups of ranks
  DenseI64ArrayAttr shardAxes;
  DenseI64ArrayAttr replicateAxes;
  Type dtype; ///< see getKeyDtype; null if all param dtypes may mix
  /// Keywords, constants and accumulation; null for a gather, and for an item
  /// that is not whole, of which not all of this can be known.
  ArrayAttr reduction;
  /// BucketItem::origin where items of one unit op stay among themselves.
  std::optional<unsigned> unitOp;

  /// The first part in which the two differ; nothing if they are equal.
  std::optional<Refusal> differsFrom(const BucketKey &other) const;
  auto asTuple() const {
    return std::make_tuple(static_cast<unsigned>(kind), block, grid,
                           Attribute(shardAxes), Attribute(replicateAxes),
                           dtype, Attribute(reduction), unitOp.value_or(~0u));
  }
};

/// One parameter of an item.
struct ItemMember {
  SymbolRefAttr name;
  ParamOp param;
  unsigned position; ///< in the order of declaration of the module
  Type wire;         ///< the dtype in which it travels
  SegmentSize size;
  unsigned index; ///< of the operand and the result in the item's local ops
};

struct BucketItem {
  BucketOp bucket;
  BucketKey key;
  SmallVector<ItemMember, 1> members; ///< in the bucket's order
  int64_t ranks;                      ///< W
  int64_t replicas;                   ///< H
  int64_t align;
  int64_t rowBytes; ///< of the bucket that it has now
  Location loc;

  Operation *collective; ///< all_gather or reduce_scatter
  Operation *pack = nullptr;
  Operation *allReduce = nullptr;
  Operation *unpack = nullptr;
  /// Casts in the collective's block that make what is packed out of what no
  /// item makes, in order. They go in front of the item when it moves up, so
  /// that they keep nobody apart whom fsdp-fuse-casts would then let meet.
  SmallVector<Operation *> inputCasts = {};
  /// Casts of the unpacked tensors in the collective's block, in order. They
  /// follow the item when it moves down.
  SmallVector<Operation *> casts = {};
  /// Number of the unit op that the item comes from, in program order.
  unsigned origin = 0;

  /// Bytes of the collective's operand and result.
  int64_t getInputBytes() const;
  int64_t getOutputBytes() const;
  /// Elements of the full parameters.
  int64_t getElements() const;
  /// Null where members have several dtypes.
  Type getCommonDtype() const;

  /// False if a tensor between the local ops is used otherwise too: a partial
  /// sum, or a flat shard that leaves the function. Such an item is not merged,
  /// and `pack`, `allReduce` and `unpack` are null.
  bool isWhole() const { return unpack != nullptr; }
  /// The ops above without the casts, in order.
  SmallVector<Operation *, 4> getOps() const;
};

struct BucketItems {
  SmallVector<BucketItem, 0> items; ///< in program order
  /// How many ops use each bucket; for look-ups only.
  DenseMap<Operation *, int64_t> numUsers;
};

/// What keeps items apart beside what has to.
struct BucketKeyOptions {
  bool perDtype;  ///< gathers of different dtypes have different keys
  bool perUnitOp; ///< items of different unit ops too
};

/// Finds the items below `root`. Fails after an error if a bucket is used by an
/// op in its buffer form.
FailureOr<BucketItems> collectBucketItems(Operation *root,
                                          BucketKeyOptions options,
                                          SymbolTableCollection &symbolTables);

} // namespace mlir::fsdp

#endif // FSDP_BUCKETING_BUCKETITEMS_H
