//===- Fsdp.h - the dialect -------------------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIALECT_FSDP_H
#define FSDP_DIALECT_FSDP_H

#include "fsdp/Layout/Grid.h"
#include "fsdp/Layout/Layout.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace mlir::fsdp {
class BucketUserOpInterface;
class CollectiveOpInterface;
class ParamOp;
class UnitOp;
struct ResolvedBucket;
struct UnitGroup;

/// What a program consists of, in the order in which passes reach it. `Input`
/// is any of declared, explicit and packed, also side by side.
enum class Stage { Input, Declared, Explicit, Packed, Buffered };

/// The stages from `first` to `last`, and what is wrong with an op that occurs
/// earlier or later.
struct StageRange {
  Stage first, last;
  StringRef early, late;

  /// What is wrong at `stage`; empty if it is in the range.
  StringRef whyNotAt(Stage stage) const;
};

/// What a value on the members' side of a local op holds.
enum class MemberForm { Full, Shard };
/// What a value on the bucket's side holds: L elements, or W rows of them.
enum class BucketForm { Flat, Packed };
using BucketValues = SmallVector<std::pair<Value, BucketForm>>;

/// What a collective does; `Other` is what no op of this dialect does.
enum class CollectiveKind { AllGather, ReduceScatter, AllReduce, Other };
} // namespace mlir::fsdp

#include "fsdp/Dialect/FsdpEnums.h.inc"

namespace mlir::fsdp {

/// How elements of several ranks become one, in the order of the ranks.
struct CollectiveReduction {
  ReduceOp op;
  FloatAttr multiplier; ///< f64, of `premul`; null for others
  TypeAttr accumulate;  ///< dtype of the sum; null: the wire dtype
};

// What Fsdp_BucketUserOp of FsdpOpBase.td makes ops out of.

/// Where a bucket may be declared, and its users may occur in some form.
StageRange getBucketStages();
/// The bucket's stages, and those of the form that `op` has.
SmallVector<StageRange, 2> getBucketUserStages(BucketUserOpInterface op);
/// Checks that `op` is wholly in one form: tensors and results, or memrefs,
/// `outs` and no result.
LogicalResult verifyBucketForm(BucketUserOpInterface op);
/// Checks that `op` has a reduction if its kind does reduce, and none if it is
/// an all-gather.
LogicalResult verifyCollectiveKind(CollectiveOpInterface op);
/// Checks everything about `op` that depends on its bucket: that there is one,
/// of the kind that `op` needs; and the shape and element type of each value on
/// the bucket's side and, of a local op, on the members' side.
LogicalResult verifyBucketUse(BucketUserOpInterface op,
                              SymbolTableCollection &symbolTable);
/// A buffer form reads its inputs and writes its outputs. In the value form a
/// local op has no effect; a collective allocates, which keeps it where it is
/// and lets an unused one die.
void getBucketUserEffects(
    BucketUserOpInterface op,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects);
/// Only the value form of a local op may be executed where it was not written.
Speculation::Speculatability
getBucketUserSpeculatability(BucketUserOpInterface op);

} // namespace mlir::fsdp

#include "fsdp/Dialect/FsdpDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fsdp/Dialect/FsdpAttrs.h.inc"

#include "fsdp/Dialect/FsdpInterfaces.h.inc"

#define GET_OP_CLASSES
#include "fsdp/Dialect/FsdpOps.h.inc"

namespace mlir::fsdp {

/// True for f16, bf16, f32 and f64, the dtypes that can be cast and reduced.
bool isFloatDtype(Type type);
/// True for the storage types that are gathered but never cast.
bool isOpaqueDtype(Type type);
/// The dtypes of both kinds, for messages.
StringRef listDtypes();
/// True for a storage type of less than a byte, of which several elements share
/// bytes: two of 4 bits have one, four of 6 bits have three.
bool isPackedDtype(Type type);
/// Bytes of one element of a dtype of either kind, or of what packed elements
/// share: counted in these, a tensor has getStorageUnits() of them.
int64_t getDtypeBytes(Type type);
/// How many of getDtypeBytes() a number of elements has; empty if packed ones
/// do not fill whole bytes.
std::optional<int64_t> getStorageUnits(Type type, int64_t elements);
/// Bytes of the elements of `type`, which has a static shape and a dtype of
/// either kind; the largest number if they are more.
int64_t getTensorBytes(ShapedType type);
/// The sum of two sizes, or the largest number.
int64_t addSizes(int64_t lhs, int64_t rhs);

/// The number of ranks of a grid; none if a size is not positive, or if there
/// are 2^31 ranks or more.
std::optional<int64_t> countRanks(ArrayRef<int64_t> gridShape);

/// Checks that `name`, of the `what` that `op` declares, can be written into a
/// manifest, which is JSON, and handed to C: UTF-8 without zero bytes.
LogicalResult verifyName(Operation *op, StringRef what, StringRef name);

/// A unit's place on its grid.
struct UnitGroup {
  DeviceGridOpInterface gridOp;
  Grid grid; ///< of `gridOp`
  SmallVector<int64_t> shardAxes;
  SmallVector<int64_t> replicateAxes;

  /// W, the number of ranks over which parameters are cut.
  int64_t shardSize() const { return grid.groupSize(shardAxes); }
  /// H, the number of replicas; 1 without replicate axes.
  int64_t replicateSize() const { return grid.groupSize(replicateAxes); }

  /// True if both form the same groups of ranks in the same order.
  bool operator==(const UnitGroup &other) const;
  bool operator!=(const UnitGroup &other) const { return !(*this == other); }
};

/// One member of a bucket with everything its symbol leads to.
struct BucketMember {
  ParamOp param;
  Type wire; ///< the dtype in which it travels
  ParamLayout layout;
  Segment segment;
};

/// A bucket with its symbols resolved and its layout computed.
struct ResolvedBucket {
  BucketOp bucket;
  UnitGroup group;
  SmallVector<BucketMember> members;
  BucketLayout layout;

  /// Resolves `bucket`. Where that is impossible, fails after a call of
  /// `emitError` for the one error; silently if none is given. Everything that
  /// verifies resolves.
  static FailureOr<ResolvedBucket>
  get(BucketOp bucket, SymbolTableCollection &symbolTable,
      function_ref<InFlightDiagnostic()> emitError = nullptr);

  /// The name by which ops use the bucket.
  FlatSymbolRefAttr getSymbol() const;
  /// `tensor<WxL>` and `tensor<L>` of the wire dtype.
  RankedTensorType getPackedType() const;
  RankedTensorType getFlatType() const;
  /// Type of member `index`'s shard or full tensor in its wire dtype.
  RankedTensorType getMemberType(size_t index, MemberForm form) const;
};

/// Looks up the bucket of a local op or collective; null if there is none.
BucketOp lookupBucket(BucketUserOpInterface op,
                      SymbolTableCollection &symbolTable);
/// Looks up `@unit::@param` from `from`; null if there is none.
ParamOp lookupParam(Operation *from, SymbolRefAttr name,
                    SymbolTableCollection &symbolTable);

/// Attaches DeviceGridOpInterface to `shard.grid`.
void registerShardGridExternalModel(DialectRegistry &registry);

} // namespace mlir::fsdp

#endif // FSDP_DIALECT_FSDP_H
