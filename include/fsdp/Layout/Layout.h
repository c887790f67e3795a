//===- Layout.h - where every element of a sharded parameter is -*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All layout arithmetic of the project: integers in, integers out, no IR. The
// verifiers, the builders, the lowering, the plan and fsdp-run ask here, so
// that there is one answer to "which byte of which rank".
//
// A parameter of shape s, cut along dimension k over W ranks, is seen as
// `outer` lines of `line` elements. Every rank holds the same number of
// elements: `outer` runs of `inner`; what lies beyond the end of a line is
// padding.
//
//      line = s_k * rest                       W = 2, shape 2x5, k = 1
//   +-----------------+- - -+
//   | inner   | inner       |  outer           0 1 2 | 3 4 .
//   | rank 0  | rank 1      |  lines           5 6 7 | 8 9 .
//   +-----------------+- - -+
//                       padding of rank 1
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAYOUT_LAYOUT_H
#define FSDP_LAYOUT_LAYOUT_H

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::fsdp {

/// Alignment, in bytes, of segments and rows where nothing else is asked for.
inline constexpr int64_t kDefaultAlign = 128;
inline constexpr int64_t kMaxAlign = 4096;

/// True for a power of two from 1 to kMaxAlign.
bool isValidAlign(int64_t align);

/// `value` rounded up to a multiple of `multiple` (> 0).
int64_t roundUp(int64_t value, int64_t multiple);

/// How one parameter is cut. All counts are elements.
struct ParamLayout {
  int64_t ranks;    ///< W, the number of ranks in the shard group
  int64_t dim;      ///< k, the dimension that is cut
  int64_t dimSize;  ///< s_k
  int64_t chunk;    ///< c = ceil(s_k / W), the shard's size along k
  int64_t outer;    ///< product of the sizes before k: runs per rank
  int64_t rest;     ///< product of the sizes after k
  int64_t inner;    ///< c * rest: elements of one run
  int64_t line;     ///< s_k * rest: distance between two runs of a rank
  int64_t elements; ///< n = outer * inner: elements per rank, all ranks alike

  /// Lays `shape` (static sizes >= 0) out over `ranks` (> 0) ranks along
  /// `dim`. Empty if `dim` is out of range or a count does not fit 62 bits.
  static std::optional<ParamLayout> get(const std::vector<int64_t> &shape,
                                        int64_t dim, int64_t ranks);

  /// Size of rank `rank`'s share along the cut dimension without padding.
  int64_t trueExtent(int64_t rank) const;

  /// Elements of each of rank `rank`'s runs that are not padding.
  int64_t validInner(int64_t rank) const;

  /// The full tensor's element at place `index` of rank `rank`'s share, or -1
  /// where that is padding.
  int64_t fullIndex(int64_t rank, int64_t index) const;
};

/// One member's share inside a row of a bucket.
struct Segment {
  int64_t offset;       ///< bytes from the start of the row
  int64_t elements;     ///< elements per rank, padding included
  int64_t elementBytes; ///< of the member's wire dtype
  int64_t bytes() const { return elements * elementBytes; }
  int64_t end() const { return offset + bytes(); }
};

/// Member of a bucket, as far as the layout is concerned.
struct SegmentSize {
  int64_t elements;     ///< ParamLayout::elements
  int64_t elementBytes; ///< bytes of the member's wire dtype
};

/// A communication buffer: `ranks` rows of `rowBytes`.
struct BucketLayout {
  int64_t ranks;
  int64_t align;
  int64_t wireBytes; ///< bytes of one element of the packed tensor; 1: bytes
  std::vector<Segment> segments;
  int64_t rowBytes;

  /// Packs `members` in order. `align` is a valid alignment, `wireBytes` a
  /// power of two up to 8. Empty if the packed size does not fit 62 bits.
  static std::optional<BucketLayout>
  get(const std::vector<SegmentSize> &members, int64_t ranks, int64_t wireBytes,
      int64_t align = kDefaultAlign);

  /// Adds one member at the end of the row. False, and no change, if the packed
  /// size would not fit 62 bits.
  bool append(const SegmentSize &member);

  /// L: elements of the wire dtype in one row.
  int64_t rowElements() const { return rowBytes / wireBytes; }
  int64_t packedBytes() const { return ranks * rowBytes; }
  /// Bytes of a row that belong to no member (padding inside a segment is the
  /// parameter's and not counted here).
  int64_t gapBytes() const;
};

} // namespace mlir::fsdp

#endif // FSDP_LAYOUT_LAYOUT_H
