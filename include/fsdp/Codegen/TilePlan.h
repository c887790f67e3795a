//===- TilePlan.h - how a local op is cut into tiles -*- C++ -*- ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A local op is a set of segment copies with a cast on the way:
// dst[d .. d+n) = cast(src[s .. s+v)), and +0 for the rest of a packed segment.
// The plan cuts every segment of a row into tiles of at most 4096 elements, or
// 16 KB where elements of one or two bytes are only copied.
//
// A member that is neither cast nor divided nor added to is copied as integers,
// all such members of an op as integers of one width, that of the smallest of
// their dtypes: a byte bucket of bf16 and f32 holds 16-bit integers, and code
// that copies them needs no case per dtype. What follows counts these as
// elements.
//
// All rows of a bucket share the plan: a tile's place in row r is computed from
// r, so the plan is the same on every rank and does not grow with their number.
//
// A tile lies inside one run of its segment, or holds several whole runs where
// runs are short. Its record is eight 32-bit words, a constant of the module
// that the generated code reads:
//
//   word | one run                        | several whole runs
//   -----+--------------------------------+-------------------------------
//    0   | member in bits 0-15, dtype pair in bits 16-19, log2 of the largest
//        | vector in bits 20-23, several runs in bit 24
//    1   | i0, first element in the run   | elements without the gap
//    2   | offset in the row, in granules
//    3   | elements, the gap behind the segment's end included
//    4   | inner, elements per run and rank
//    5   | line, low word                 | line
//    6   | line, high word                | ceil(2^28 / (inner / vector))
//    7   | the run                        | the first run
//
// Element x of a tile of several runs lies in run (x / vector * word 6) >> 28
// of the tile, so no division is needed per element: word 6 exceeds the
// quotient q = 2^28 / (inner / vector) by less than 1, so the product exceeds q
// times x / vector by less than 2^14, which is not enough to reach the next
// run: that begins q or more after the exact product, and q is at least 2^14.
// The gap is what alignment leaves behind the segment; packing writes zeros
// there. A tile that is nothing but gap has several runs, none of them real.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_TILEPLAN_H
#define FSDP_CODEGEN_TILEPLAN_H

#include "fsdp/Dialect/Fsdp.h"

#include <array>

namespace mlir::fsdp {

/// Elements of a tile at the most, and bytes of what is only copied, if that is
/// more elements: a thread of a kernel shall have four vectors of each tile.
inline constexpr int64_t kTileElements = 4096;
inline constexpr int64_t kTileBytes = 16384;
/// log2 of what word 6 of a record is a part of.
inline constexpr int64_t kReciprocalLog = 28;
/// Words of a record.
inline constexpr int64_t kTileWords = 8;

/// From which dtype to which a member is copied. `member` is the dtype of the
/// op's operand or result, `wire` the dtype in the bucket.
struct DtypePair {
  Type member;
  Type wire;
  /// Bits are copied as they are: both types are one integer type.
  bool isCopy() const { return isa<IntegerType>(wire); }
  int64_t tileElements() const {
    return isCopy() ? std::max(kTileElements,
                               kTileBytes / (wire.getIntOrFloatBitWidth() / 8))
                    : kTileElements;
  }
  bool operator==(const DtypePair &other) const {
    return member == other.member && wire == other.wire;
  }
};

/// One tile of one row; see the file's header for the fields.
struct Tile {
  unsigned member;
  unsigned pair;
  bool severalRuns;
  int64_t first; ///< i0, or the number of elements without the gap
  int64_t offset;
  int64_t count;
  int64_t inner;
  int64_t line;
  int64_t run;

  std::array<int32_t, kTileWords> encode() const;
  /// Elements of the largest vector that never crosses a run: a power of two.
  int64_t vectorElements() const;
};

struct TilePlan {
  bool packs;       ///< into the bucket, or out of it
  int64_t rows;     ///< W, or 1 for the flat shard
  int64_t rowBytes; ///< distance between two rows
  int64_t granule;  ///< bytes of a unit of Tile::offset
  SmallVector<DtypePair> pairs;
  /// Tiles of one row: first those of parameters with one run, whose rows are
  /// far apart in memory, then the strided ones, whose rows are interleaved.
  SmallVector<Tile, 0> tiles;
  size_t numContiguous;

  /// True if blocks of the same tile in all rows should run together: some runs
  /// are so short that a row reads or writes parts of other rows' sectors.
  bool hasSharedSectors() const;

  /// Plans `op`, whose bucket is `bucket`. Emits an error at the op and fails
  /// where a count does not fit the record.
  static FailureOr<TilePlan> get(LocalOpInterface op,
                                 const ResolvedBucket &bucket);

  void print(raw_ostream &os, const ResolvedBucket &bucket) const;
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_TILEPLAN_H
