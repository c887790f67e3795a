//===- LayoutTest.cpp - vectors of the layout rules -----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Layout/Layout.h"

#include <gtest/gtest.h>

using namespace mlir::fsdp;
using Sizes = std::vector<int64_t>;

static Sizes trueExtents(int64_t size, int64_t ranks) {
  Sizes extents;
  ParamLayout layout = *ParamLayout::get({size}, 0, ranks);
  for (int64_t rank = 0; rank < ranks; ++rank)
    extents.push_back(layout.trueExtent(rank));
  return extents;
}

TEST(ParamLayout, LastRanksAreShortOrEmpty) {
  EXPECT_EQ(trueExtents(10, 4), (Sizes{3, 3, 3, 1}));
  EXPECT_EQ(trueExtents(9, 4), (Sizes{3, 3, 3, 0}));
  EXPECT_EQ(trueExtents(6, 4), (Sizes{2, 2, 2, 0}));
  EXPECT_EQ(trueExtents(5, 4), (Sizes{2, 2, 1, 0}));
  EXPECT_EQ(trueExtents(3, 4), (Sizes{1, 1, 1, 0}));
  EXPECT_EQ(trueExtents(1, 4), (Sizes{1, 0, 0, 0}));
  EXPECT_EQ(trueExtents(257, 8), (Sizes{33, 33, 33, 33, 33, 33, 33, 26}));
  EXPECT_EQ(trueExtents(33, 8), (Sizes{5, 5, 5, 5, 5, 5, 3, 0}));
  EXPECT_EQ(trueExtents(7, 1), (Sizes{7}));
  EXPECT_EQ(trueExtents(0, 4), (Sizes{0, 0, 0, 0}));
}

TEST(ParamLayout, InnerDimension) {
  ParamLayout layout = *ParamLayout::get({2, 5}, 1, 2);
  EXPECT_EQ(layout.chunk, 3);
  EXPECT_EQ(layout.outer, 2);
  EXPECT_EQ(layout.inner, 3);
  EXPECT_EQ(layout.line, 5);
  EXPECT_EQ(layout.elements, 6);
  Sizes first, second;
  for (int64_t i = 0; i < 6; ++i) {
    first.push_back(layout.fullIndex(0, i));
    second.push_back(layout.fullIndex(1, i));
  }
  EXPECT_EQ(first, (Sizes{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(second, (Sizes{3, 4, -1, 8, 9, -1}));
}

TEST(ParamLayout, PaddingOfRowsIsAtTheEnd) {
  ParamLayout layout = *ParamLayout::get({3, 3}, 0, 2);
  EXPECT_EQ(layout.elements, 6);
  EXPECT_EQ(layout.fullIndex(1, 2), 8);
  EXPECT_EQ(layout.fullIndex(1, 3), -1);
  EXPECT_EQ(layout.validInner(1), 3);
}

TEST(ParamLayout, EveryElementIsHeldOnce) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t dim : {0, 1, 2}) {
      Sizes shape = {5, 3, 7};
      ParamLayout layout = *ParamLayout::get(shape, dim, ranks);
      std::vector<int> seen(5 * 3 * 7, 0);
      for (int64_t rank = 0; rank < ranks; ++rank)
        for (int64_t i = 0; i < layout.elements; ++i)
          if (int64_t full = layout.fullIndex(rank, i); full >= 0)
            ++seen[full];
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1))
          << "dim " << dim << " over " << ranks;
    }
}

TEST(ParamLayout, WhatCannotBeLaidOut) {
  EXPECT_FALSE(ParamLayout::get({}, 0, 2));
  EXPECT_FALSE(ParamLayout::get({4}, 1, 2));
  EXPECT_FALSE(ParamLayout::get({4}, -1, 2));
  EXPECT_FALSE(ParamLayout::get({4}, 0, 0));
  EXPECT_FALSE(ParamLayout::get({INT64_MAX, 2}, 0, 2));
  EXPECT_FALSE(ParamLayout::get({1 << 30, 1 << 30, 1 << 30}, 0, 2));
  // A size of 0 elsewhere does not hide a dimension that is out of range.
  EXPECT_TRUE(ParamLayout::get({0, 5}, 0, 4));
  EXPECT_TRUE(ParamLayout::get({4, 0}, 0, 4));
}

static std::vector<SegmentSize> layer0(int64_t norm, int64_t others) {
  return {{3, norm}, {6, others}, {6, others}, {8, others}};
}

TEST(BucketLayout, ByteBucket) {
  BucketLayout wide = *BucketLayout::get(layer0(4, 2), 4, 1, 128);
  EXPECT_EQ(wide.segments[3].offset, 384);
  EXPECT_EQ(wide.rowBytes, 512);
  EXPECT_EQ(wide.rowElements(), 512);
  EXPECT_EQ(wide.packedBytes(), 2048);
  EXPECT_EQ(wide.gapBytes(), 512 - 12 - 12 - 12 - 16);
  BucketLayout dense = *BucketLayout::get(layer0(4, 2), 4, 1, 1);
  EXPECT_EQ(dense.segments[1].offset, 12);
  EXPECT_EQ(dense.segments[2].offset, 24);
  EXPECT_EQ(dense.segments[3].offset, 36);
  EXPECT_EQ(dense.rowBytes, 52);
  EXPECT_EQ(dense.gapBytes(), 0);
}

TEST(BucketLayout, TypedBucket) {
  std::vector<SegmentSize> members = {{3, 4}, {6, 4}, {6, 4}};
  EXPECT_EQ(BucketLayout::get(members, 4, 4, 128)->rowElements(), 96);
  EXPECT_EQ(BucketLayout::get(members, 4, 4, 1)->rowElements(), 15);
}

TEST(BucketLayout, UnalignedSegmentOfADenseByteBucket) {
  BucketLayout layout = *BucketLayout::get({{3, 2}, {2, 4}}, 2, 1, 1);
  EXPECT_EQ(layout.segments[1].offset, 6);
  EXPECT_EQ(layout.rowBytes, 14);
}

TEST(BucketLayout, EmptyMembersTakeNoBytes) {
  BucketLayout layout = *BucketLayout::get({{0, 4}, {0, 4}}, 2, 4);
  EXPECT_EQ(layout.rowBytes, 0);
  EXPECT_EQ(layout.segments[1].offset, 0);
}

TEST(BucketLayout, AppendIsTheSameAsAllAtOnce) {
  for (int64_t align : {1, 128}) {
    BucketLayout layout = *BucketLayout::get({}, 4, 1, align);
    for (const SegmentSize &member : layer0(4, 2))
      EXPECT_TRUE(layout.append(member));
    BucketLayout expected = *BucketLayout::get(layer0(4, 2), 4, 1, align);
    EXPECT_EQ(layout.rowBytes, expected.rowBytes);
    for (size_t i = 0; i < expected.segments.size(); ++i)
      EXPECT_EQ(layout.segments[i].offset, expected.segments[i].offset);
  }
}

TEST(BucketLayout, AppendLeavesAFullRowAsItIs) {
  BucketLayout layout = *BucketLayout::get({{3, 4}}, 64, 4, 1);
  EXPECT_FALSE(layout.append({int64_t(1) << 58, 8}));
  EXPECT_EQ(layout.rowBytes, 12);
  EXPECT_EQ(layout.segments.size(), 1u);
}

TEST(BucketLayout, TooLarge) {
  EXPECT_FALSE(BucketLayout::get({{int64_t(1) << 60, 8}}, 2, 8));
  EXPECT_FALSE(BucketLayout::get({{int64_t(1) << 58, 8}}, 64, 8));
}

TEST(Align, PowersOfTwo) {
  EXPECT_TRUE(isValidAlign(1));
  EXPECT_TRUE(isValidAlign(4096));
  EXPECT_FALSE(isValidAlign(0));
  EXPECT_FALSE(isValidAlign(-2));
  EXPECT_FALSE(isValidAlign(24));
  EXPECT_FALSE(isValidAlign(8192));
}
