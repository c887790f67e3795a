//===- SumOrderTest.cpp - which term is added when ------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of floats whose bits tell their order, against the rule of
// docs/Numerics.md. The chunks below are those of Gloo, found by comparing each
// element of its results with each order.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <cmath>
#include <random>
#include <tuple>
#include <utility>

using namespace fsdprt::test;

namespace {

fsdprtOptions ring() {
  fsdprtOptions options = {};
  options.sumOrder = "ring";
  return options;
}

/// What `rank` sends, over many binades.
std::vector<float> sent(int64_t rank, int64_t count) {
  std::mt19937 random(7 + rank);
  std::vector<float> values(count);
  for (float &value : values) {
    float mantissa = static_cast<float>(random() % 65536) - 32768;
    value = std::ldexp(mantissa, static_cast<int>(random() % 20) - 10);
  }
  return values;
}

struct RingCase {
  int64_t ranks;
  int64_t count; ///< of a row
  int64_t chunk; ///< elements of all rows that are added in one order
};

// A chunk is the row where it can be cut into two, or into segments of at most
// a mebibyte; else a few elements more, so that the first ones of later rows
// belong to the chunk before.
const RingCase ringCases[] = {
    {1, 5, 6},
    {2, 7, 8},
    {3, 1, 2},
    {3, 2, 2},
    {3, 5, 6},
    {3, 1000, 1000},
    {3, 1001, 1002},
    {4, 1003, 1004},
    {8, 5, 6},
    {8, 64, 64},
    {3, 699050, 699051},
    {3, 699051, 699051},
    {3, 1000003, 1000004},
};

} // namespace

TEST(SumOrder, RingEndsAtTheOwnerOfTheChunk) {
  for (const RingCase &c : ringCases) {
    TestWorld world({c.ranks}, ring());
    std::vector<std::vector<float>> all, results(c.ranks);
    for (int64_t rank = 0; rank < c.ranks; ++rank)
      all.push_back(sent(rank, c.ranks * c.count));
    world.expectSuccess([&](fsdprtContext *context, int64_t rank) {
      results[rank].resize(c.count);
      return reduceScatter(context, "b", {0}, FSDPRT_F32, c.count, FSDPRT_SUM,
                           0, 0, all[rank].data(), results[rank].data());
    });
    for (int64_t i = 0; i < c.ranks * c.count; ++i) {
      int64_t last = i / c.chunk, member = (last + c.ranks - 1) % c.ranks;
      float sum = all[member][i];
      while (member != last) {
        member = (member + c.ranks - 1) % c.ranks;
        sum += all[member][i];
      }
      ASSERT_EQ(results[i / c.count][i % c.count], sum)
          << c.ranks << " ranks, rows of " << c.count << ", element " << i;
    }
  }
}

TEST(SumOrder, RingScalesTermsAndAccumulatesAlike) {
  // bf16 256, 1, 1, 1 times 1/4: 0.25 three times, then 64, is 64.75, which
  // bf16 rounds to 65; in the order of the members 64 swallows each of them.
  const uint16_t large = 0x4380, one = 0x3F80;
  for (auto [order, wide, expected] :
       {std::tuple("rank", 0, 0x4280), std::tuple("ring", 0, 0x4282),
        std::tuple("rank", 1, 0x4282), std::tuple("ring", 1, 0x4282)}) {
    fsdprtOptions options = {};
    options.sumOrder = order;
    TestWorld world({4}, options);
    world.expectSuccess([&, wide = wide, expected = expected](
                            fsdprtContext *context, int64_t rank) {
      // The row of member 0 alone is looked at.
      std::vector<uint16_t> row(8, rank == 0 ? large : one);
      uint16_t sum[2] = {};
      fsdprtStatus status = reduceScatter(context, "b", {0}, FSDPRT_BF16, 2,
                                          FSDPRT_AVG, 0, wide, row.data(), sum);
      if (rank == 0) {
        EXPECT_EQ(sum[0], expected);
        EXPECT_EQ(sum[1], expected);
      }
      return status;
    });
  }
}

TEST(SumOrder, AllReduceKeepsTheOrderOfTheMembers) {
  std::vector<std::vector<float>> all, byRank(3), byRing(3);
  for (int64_t rank = 0; rank < 3; ++rank)
    all.push_back(sent(rank, 1001));
  for (auto [options, results] :
       {std::pair(fsdprtOptions{}, &byRank), std::pair(ring(), &byRing)}) {
    TestWorld world({3}, options);
    world.expectSuccess(
        [&, results = results](fsdprtContext *context, int64_t rank) {
          (*results)[rank].resize(1001);
          return allReduce(context, "b", {0}, FSDPRT_F32, 1001, FSDPRT_SUM, 0,
                           0, all[rank].data(), (*results)[rank].data());
        });
  }
  EXPECT_EQ(byRank, byRing);
}

TEST(SumOrder, AnUnknownOneIsRefused) {
  int64_t shape = 2;
  fsdprtOptions options = {};
  options.gridShape = &shape;
  options.gridAxes = 1;
  options.sumOrder = "tree";
  fsdprtContext *contexts[2] = {};
  char message[200] = "";
  EXPECT_EQ(fsdprtCreateLocal(&options, contexts, message, sizeof(message)),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "there is no sum order 'tree', expected rank or ring");
  options.sumOrder = "rank";
  options.communicator = "nccl";
  EXPECT_EQ(fsdprtCreateRank(&options, contexts, message, sizeof(message)),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "communicator 'nccl' adds in an order of its own, "
                        "expected no sum order");
}
