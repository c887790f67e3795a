//===- TilePlan.cpp - how a local op is cut into tiles --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/TilePlan.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Elements of the largest vector, 16 bytes.
static constexpr int64_t kLargestVector = 16;

/// The largest power of two, at most `limit`, that divides every value.
static int64_t commonPowerOfTwo(ArrayRef<int64_t> values, int64_t limit) {
  int64_t bits = limit;
  for (int64_t value : values)
    bits |= value;
  return bits & -bits;
}

int64_t Tile::vectorElements() const {
  return severalRuns ? commonPowerOfTwo({inner, line}, kLargestVector)
                     : kLargestVector;
}

std::array<int32_t, kTileWords> Tile::encode() const {
  int64_t vector = vectorElements();
  auto low = [](int64_t value) { return static_cast<int32_t>(value); };
  int64_t perRun = std::max<int64_t>(inner / vector, 1);
  int64_t reciprocal = ((int64_t(1) << kReciprocalLog) + perRun - 1) / perRun;
  return {low(member | pair << 16 | llvm::countr_zero<uint64_t>(vector) << 20 |
              (severalRuns ? 1u << 24 : 0u)),
          low(first),
          low(offset),
          low(count),
          low(inner),
          low(line),
          low(severalRuns ? reciprocal : line >> 32),
          low(run)};
}

namespace {
/// Cuts segments into tiles, each of which ends up in the plan, with offsets in
/// bytes.
struct Cutter {
  SmallVectorImpl<Tile> &tiles;
  int64_t most; ///< elements of a tile
  Tile tile;    ///< what all tiles of the segment have in common

  /// Adds a tile of `count` elements that starts `at` elements into the segment
  /// of `segment`; `first` is the record's word of that name.
  void add(const Segment &segment, int64_t at, int64_t count, int64_t first,
           int64_t run) {
    tile.offset = segment.offset + at * segment.elementBytes;
    tile.count = count;
    tile.first = first;
    tile.run = run;
    tiles.push_back(tile);
  }

  /// Tiles inside one run; cut at runs.
  void cutLongRuns(const Segment &segment, int64_t outer) {
    for (int64_t run = 0; run < outer; ++run)
      for (int64_t i = 0; i < tile.inner; i += most)
        add(segment, run * tile.inner + i, std::min(most, tile.inner - i), i,
            run);
  }

  /// Tiles of as many whole runs as fit.
  void cutShortRuns(const Segment &segment, int64_t outer) {
    int64_t perTile = most / tile.inner;
    for (int64_t run = 0; run < outer; run += perTile) {
      int64_t count = std::min(perTile, outer - run) * tile.inner;
      add(segment, run * tile.inner, count, count, run);
    }
  }

  /// Gives the gap behind the segment to its last tile, or, where that would
  /// become too long, to tiles of its own.
  void addGap(const Segment &segment, int64_t end) {
    int64_t gap = (end - segment.end()) / segment.elementBytes;
    Tile &last = tiles.back();
    if (last.count + gap <= most) {
      last.count += gap;
      return;
    }
    tile.severalRuns = true;
    tile.inner = tile.line = 1;
    for (int64_t at = segment.elements; gap > 0; at += most) {
      int64_t count = std::min(gap, most);
      add(segment, at, count, /*first=*/0, /*run=*/0);
      gap -= count;
    }
  }
};

/// Plans one op.
class TilePlanner {
public:
  TilePlanner(LocalOpInterface op, const ResolvedBucket &bucket)
      : op(op), bucket(bucket),
        isFlat(op.getMemberForm() == MemberForm::Shard) {}
  FailureOr<TilePlan> build();

private:
  InFlightDiagnostic tooLarge(const BucketMember &member, StringRef what);
  bool isCopied(const BucketMember &member, Type element) const {
    return element == member.wire && !changesValues;
  }
  int64_t findCopyBytes();
  LogicalResult addMember(size_t index, Type element);
  LogicalResult toGranules();

  LocalOpInterface op;
  const ResolvedBucket &bucket;
  const bool isFlat;
  bool changesValues = false; ///< divides or adds
  int64_t copyBytes = 0;      ///< of the integers that are copied
  /// Per member, where the gap behind it ends.
  SmallVector<int64_t, 0> ends;
  SmallVector<Tile, 0> strided;
  TilePlan plan;
};
} // namespace

static Type getElementType(Value value) {
  return cast<ShapedType>(value.getType()).getElementType();
}

InFlightDiagnostic TilePlanner::tooLarge(const BucketMember &member,
                                         StringRef what) {
  ParamOp param = member.param;
  InFlightDiagnostic diag = op.emitOpError("cannot be lowered: member '")
                            << param.getSymName() << "' of bucket "
                            << op.getBucketAttr() << " is too large: its "
                            << what << " reaches 2^31";
  return diag;
}

/// The size of the smallest dtype of what is copied as it is.
int64_t TilePlanner::findCopyBytes() {
  int64_t bytes = sizeof(int64_t);
  for (auto [member, value] :
       llvm::zip_equal(bucket.members, op.getMemberValues()))
    if (member.segment.elements != 0 && isCopied(member, getElementType(value)))
      bytes = std::min(bytes, member.segment.elementBytes);
  return bytes;
}

LogicalResult TilePlanner::addMember(size_t index, Type element) {
  const BucketMember &member = bucket.members[index];
  Segment segment = member.segment;
  if (segment.elements == 0)
    return success();
  if (index > UINT16_MAX)
    return tooLarge(member, "number");

  DtypePair pair = {element, member.wire};
  int64_t scale = 1; // elements that are counted per element of the dtype
  if (isCopied(member, element)) {
    scale = segment.elementBytes / copyBytes;
    pair.member = pair.wire =
        IntegerType::get(element.getContext(), 8 * copyBytes);
    segment.elements *= scale;
    segment.elementBytes = copyBytes;
  }
  if (segment.elements > INT32_MAX)
    return tooLarge(member, "share of a rank, in elements that are copied,");

  auto *known = llvm::find(plan.pairs, pair);
  Tile tile = {};
  tile.member = index;
  tile.pair = known - plan.pairs.begin();
  if (known == plan.pairs.end())
    plan.pairs.push_back(pair);
  if (tile.pair > 15)
    return op.emitOpError("cannot be lowered: bucket ")
           << op.getBucketAttr() << " has more than 16 pairs of dtypes";

  // The flat shard holds one run of all elements.
  int64_t outer = isFlat ? 1 : member.layout.outer;
  tile.inner = isFlat ? segment.elements : member.layout.inner * scale;
  tile.line = isFlat ? segment.elements : member.layout.line * scale;
  int64_t most = pair.tileElements();
  tile.severalRuns = outer > 1 && tile.inner < most;

  Cutter cutter = {outer > 1 ? strided : plan.tiles, most, tile};
  if (tile.severalRuns)
    cutter.cutShortRuns(segment, outer);
  else
    cutter.cutLongRuns(segment, outer);
  if (plan.packs)
    cutter.addGap(segment, ends[index]);
  return success();
}

/// Offsets from bytes to the largest unit that divides all of them.
LogicalResult TilePlanner::toGranules() {
  int64_t limit = 1;
  for (const BucketMember &member : bucket.members)
    limit = std::max(limit, member.segment.elementBytes);
  SmallVector<int64_t, 0> offsets = {plan.rowBytes};
  for (const Tile &tile : plan.tiles)
    offsets.push_back(tile.offset);
  plan.granule = commonPowerOfTwo(offsets, limit);
  for (Tile &tile : plan.tiles) {
    tile.offset /= plan.granule;
    if (tile.offset > INT32_MAX)
      return tooLarge(bucket.members[tile.member],
                      "offset in the row, in granules,");
  }
  return success();
}

FailureOr<TilePlan> TilePlanner::build() {
  plan.packs = op.packs();
  plan.rows = isFlat ? 1 : bucket.layout.ranks;
  plan.rowBytes = bucket.layout.rowBytes;
  changesValues = op.changesValues();
  copyBytes = findCopyBytes();
  // Members without elements lie at the next one's start.
  ends.resize(bucket.members.size());
  int64_t end = plan.rowBytes;
  for (size_t index = ends.size(); index-- > 0;) {
    ends[index] = end;
    if (bucket.members[index].segment.elements != 0)
      end = bucket.members[index].segment.offset;
  }
  for (auto [index, value] : llvm::enumerate(op.getMemberValues()))
    if (failed(addMember(index, getElementType(value))))
      return failure();
  plan.numContiguous = plan.tiles.size();
  llvm::append_range(plan.tiles, strided);
  if (failed(toGranules()))
    return failure();
  return plan;
}

FailureOr<TilePlan> TilePlan::get(LocalOpInterface op,
                                  const ResolvedBucket &bucket) {
  return TilePlanner(op, bucket).build();
}

/// Memory is read and written in pieces of so many bytes.
static constexpr int64_t kMemoryBytes = 64;

bool TilePlan::hasSharedSectors() const {
  return rows > 1 && llvm::any_of(tiles, [&](const Tile &tile) {
           bool isGap = tile.severalRuns && tile.first == 0;
           return tile.severalRuns && !isGap &&
                  tile.inner * getDtypeBytes(pairs[tile.pair].member) <
                      kMemoryBytes;
         });
}

void TilePlan::print(raw_ostream &os, const ResolvedBucket &bucket) const {
  BucketOp op = bucket.bucket;
  os << (packs ? "pack " : "unpack ") << op.getSymName() << ": " << rows
     << " rows of " << rowBytes << " bytes, granule " << granule << ", "
     << tiles.size() << " tiles per row, " << numContiguous << " contiguous\n";
  for (const Tile &tile : tiles) {
    ParamOp param = bucket.members[tile.member].param;
    DtypePair pair = pairs[tile.pair];
    os << "  " << param.getSymName() << ": ";
    if (packs)
      os << pair.member << "->" << pair.wire;
    else
      os << pair.wire << "->" << pair.member;
    if (tile.severalRuns)
      os << " elements " << tile.first;
    else
      os << " i0 " << tile.first;
    os << " offset " << tile.offset << " count " << tile.count << " inner "
       << tile.inner << " line " << tile.line << " run " << tile.run << "\n";
  }
}
