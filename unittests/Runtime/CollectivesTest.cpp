//===- CollectivesTest.cpp - who gets which data --------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every collective on every group of grids of up to three axes, in place and
// not. Values are small integers in f32, so that sums are exact and only the
// routing is tested; ReductionTest has the rounding.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <algorithm>

using namespace fsdprt::test;

namespace {

struct GroupCase {
  std::vector<int64_t> shape;
  std::vector<int32_t> axes;
};

const GroupCase groupCases[] = {
    {{1}, {0}},          {{2}, {0}},       {{3}, {0}},
    {{4}, {0}},          {{8}, {0}},       {{4}, {}},
    {{2, 2}, {0}},       {{2, 2}, {1}},    {{2, 2}, {0, 1}},
    {{2, 4}, {1, 0}},    {{2, 4}, {0}},    {{4, 2}, {1}},
    {{2, 3}, {0, 1}},    {{3, 1}, {1}},    {{3, 2, 2}, {0, 2}},
    {{2, 2, 2}, {2, 0}}, {{2, 2, 2}, {1}}, {{2, 1, 3}, {2, 1, 0}},
};

/// The group of `rank`, found by looking at all ranks: the members share every
/// coordinate off the axes, and their coordinates on the axes, in the order of
/// the list, sort them.
std::vector<int64_t> groupByDefinition(const GroupCase &c, int64_t rank) {
  auto coordinates = [&](int64_t r) {
    std::vector<int64_t> result;
    int64_t ranks = 1;
    for (int64_t extent : c.shape)
      ranks *= extent;
    for (int64_t extent : c.shape) {
      ranks /= extent;
      result.push_back(r / ranks % extent);
    }
    return result;
  };
  int64_t ranks = 1;
  for (int64_t extent : c.shape)
    ranks *= extent;
  std::vector<std::pair<std::vector<int64_t>, int64_t>> members;
  for (int64_t other = 0; other < ranks; ++other) {
    std::vector<int64_t> mine = coordinates(rank), its = coordinates(other);
    std::vector<int64_t> key;
    for (int32_t axis : c.axes) {
      key.push_back(its[axis]);
      mine[axis] = its[axis];
    }
    if (mine == its)
      members.push_back({key, other});
  }
  std::sort(members.begin(), members.end());
  std::vector<int64_t> result;
  for (auto &[key, member] : members)
    result.push_back(member);
  return result;
}

/// Element i of what `rank` sends.
float sent(int64_t rank, int64_t i) {
  return static_cast<float>(1000 * (rank + 1) + i);
}

constexpr int64_t count = 37; // divides into no group of more than one

class Collectives : public testing::TestWithParam<GroupCase> {
protected:
  /// Calls `body(context, rank, members, index)` on every rank, twice, because
  /// the second meeting of a group must not see the first.
  template <typename Body>
  void forEachRank(Body body) {
    const GroupCase &c = GetParam();
    TestWorld world(c.shape);
    for (int repeat = 0; repeat < 2; ++repeat)
      world.expectSuccess([&](fsdprtContext *context, int64_t rank) {
        std::vector<int64_t> members = groupByDefinition(c, rank);
        int64_t index =
            std::find(members.begin(), members.end(), rank) - members.begin();
        return body(context, rank, members, index);
      });
  }

  int64_t axes() const { return axesCode(GetParam().axes); }
};

} // namespace

TEST_P(Collectives, AllGather) {
  forEachRank([&](fsdprtContext *context, int64_t rank,
                  const std::vector<int64_t> &members, int64_t) {
    std::vector<float> send(count), receive(members.size() * count);
    for (int64_t i = 0; i < count; ++i)
      send[i] = sent(rank, i);
    fsdprtStatus status = fsdprtAllGather(context, "b", axes(), FSDPRT_F32,
                                          count, send.data(), receive.data());
    for (size_t member = 0; member < members.size(); ++member)
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(receive[member * count + i], sent(members[member], i));
    return status;
  });
}

TEST_P(Collectives, AllGatherInPlace) {
  forEachRank([&](fsdprtContext *context, int64_t rank,
                  const std::vector<int64_t> &members, int64_t index) {
    std::vector<float> receive(members.size() * count);
    float *send = receive.data() + index * count;
    for (int64_t i = 0; i < count; ++i)
      send[i] = sent(rank, i);
    fsdprtStatus status = fsdprtAllGather(context, "b", axes(), FSDPRT_BYTES,
                                          4 * count, send, receive.data());
    for (size_t member = 0; member < members.size(); ++member)
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(receive[member * count + i], sent(members[member], i));
    return status;
  });
}

TEST_P(Collectives, ReduceScatter) {
  forEachRank([&](fsdprtContext *context, int64_t rank,
                  const std::vector<int64_t> &members, int64_t index) {
    std::vector<float> send(members.size() * count), receive(count);
    for (size_t i = 0; i < send.size(); ++i)
      send[i] = sent(rank, i);
    fsdprtStatus status =
        fsdprtReduceScatter(context, "b", axes(), FSDPRT_F32, count, FSDPRT_SUM,
                            0, 0, send.data(), receive.data());
    for (int64_t i = 0; i < count; ++i) {
      float expected = 0;
      for (int64_t member : members)
        expected += sent(member, index * count + i);
      EXPECT_EQ(receive[i], expected);
    }
    return status;
  });
}

TEST_P(Collectives, AllReduce) {
  for (bool inPlace : {false, true})
    forEachRank([&](fsdprtContext *context, int64_t rank,
                    const std::vector<int64_t> &members, int64_t) {
      std::vector<float> send(count), other(count);
      for (int64_t i = 0; i < count; ++i)
        send[i] = sent(rank, i);
      std::vector<float> &receive = inPlace ? send : other;
      fsdprtStatus status =
          fsdprtAllReduce(context, "b", axes(), FSDPRT_F32, count, FSDPRT_SUM,
                          0, 0, send.data(), receive.data());
      for (int64_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int64_t member : members)
          expected += sent(member, i);
        EXPECT_EQ(receive[i], expected);
      }
      return status;
    });
}

INSTANTIATE_TEST_SUITE_P(Groups, Collectives, testing::ValuesIn(groupCases),
                         [](const testing::TestParamInfo<GroupCase> &info) {
                           std::string name = "Grid";
                           for (int64_t extent : info.param.shape)
                             name += "x" + std::to_string(extent);
                           name += "Axes";
                           for (int32_t axis : info.param.axes)
                             name += "_" + std::to_string(axis);
                           return name;
                         });

// Fewer elements than members: some slices of the all_reduce are empty.
TEST(CollectivesCorners, AllReduceOfOneElement) {
  TestWorld world({4});
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    double value = static_cast<double>(rank);
    fsdprtStatus status = fsdprtAllReduce(context, "b", 1, FSDPRT_F64, 1,
                                          FSDPRT_SUM, 0, 0, &value, &value);
    EXPECT_EQ(value, 6);
    return status;
  });
}

// An empty bucket waits for nobody: this would hang with one thread otherwise.
TEST(CollectivesCorners, EmptyBucketReturnsAtOnce) {
  TestWorld world({4});
  EXPECT_EQ(
      fsdprtAllGather(world[1], "b", 1, FSDPRT_BYTES, 0, nullptr, nullptr),
      FSDPRT_SUCCESS);
  EXPECT_EQ(fsdprtReduceScatter(world[1], "b", 1, FSDPRT_F32, 0, FSDPRT_AVG, 0,
                                0, nullptr, nullptr),
            FSDPRT_SUCCESS);
  EXPECT_EQ(fsdprtAllReduce(world[1], "b", 1, FSDPRT_F32, 0, FSDPRT_AVG, 0, 0,
                            nullptr, nullptr),
            FSDPRT_SUCCESS);
}

// Groups of two kinds alternate, as in hybrid sharding; nobody gets the data of
// the other kind.
TEST(CollectivesCorners, GroupsAlternate) {
  TestWorld world({2, 2});
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    for (int step = 0; step < 200; ++step) {
      float rows[2] = {float(rank + step), float(10 * rank + step)}, mine;
      if (fsdprtStatus status =
              fsdprtReduceScatter(context, "s", axesCode({1}), FSDPRT_F32, 1,
                                  FSDPRT_SUM, 0, 0, rows, &mine))
        return status;
      if (fsdprtStatus status =
              fsdprtAllReduce(context, "a", axesCode({0}), FSDPRT_F32, 1,
                              FSDPRT_SUM, 0, 0, &mine, &mine))
        return status;
      EXPECT_EQ(mine, (rank % 2 == 0 ? 6 : 60) + 4 * step);
    }
    return fsdprtStatus(FSDPRT_SUCCESS);
  });
}
