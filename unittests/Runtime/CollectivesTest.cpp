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

  const Axes &axes() const { return GetParam().axes; }
};

} // namespace

TEST_P(Collectives, AllGather) {
  forEachRank([&](fsdprtContext *context, int64_t rank,
                  const std::vector<int64_t> &members, int64_t) {
    std::vector<float> send(count), receive(members.size() * count);
    for (int64_t i = 0; i < count; ++i)
      send[i] = sent(rank, i);
    fsdprtStatus status = allGather(context, "b", axes(), FSDPRT_F32, count,
                                    send.data(), receive.data());
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
    fsdprtStatus status = allGather(context, "b", axes(), FSDPRT_BYTES,
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
        reduceScatter(context, "b", axes(), FSDPRT_F32, count, FSDPRT_SUM, 0, 0,
                      send.data(), receive.data());
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
          allReduce(context, "b", axes(), FSDPRT_F32, count, FSDPRT_SUM, 0, 0,
                    send.data(), receive.data());
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
    fsdprtStatus status = allReduce(context, "b", {0}, FSDPRT_F64, 1,
                                    FSDPRT_SUM, 0, 0, &value, &value);
    EXPECT_EQ(value, 6);
    return status;
  });
}

// An empty bucket waits for nobody: this would hang with one thread otherwise.
TEST(CollectivesCorners, EmptyBucketReturnsAtOnce) {
  TestWorld world({4});
  EXPECT_EQ(allGather(world[1], "b", {0}, FSDPRT_BYTES, 0, nullptr, nullptr),
            FSDPRT_SUCCESS);
  EXPECT_EQ(reduceScatter(world[1], "b", {0}, FSDPRT_F32, 0, FSDPRT_AVG, 0, 0,
                          nullptr, nullptr),
            FSDPRT_SUCCESS);
  EXPECT_EQ(allReduce(world[1], "b", {0}, FSDPRT_F32, 0, FSDPRT_AVG, 0, 0,
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
      if (fsdprtStatus status = reduceScatter(context, "s", {1}, FSDPRT_F32, 1,
                                              FSDPRT_SUM, 0, 0, rows, &mine))
        return status;
      if (fsdprtStatus status = allReduce(context, "a", {0}, FSDPRT_F32, 1,
                                          FSDPRT_SUM, 0, 0, &mine, &mine))
        return status;
      EXPECT_EQ(mine, (rank % 2 == 0 ? 6 : 60) + 4 * step);
    }
    return fsdprtStatus(FSDPRT_SUCCESS);
  });
}

// Several of one call, on other groups and of other kinds, do what each of them
// does alone. A record that has changed is read again.
TEST(SeveralCollectives, DoWhatEachDoesAlone) {
  TestWorld world({2, 2});
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    const Axes all = {0, 1}, inner = {1}, outer = {0};
    fsdprtCollective gather =
        record(FSDPRT_ALL_GATHER, "g", all, FSDPRT_F32, 1);
    const fsdprtCollective scatter =
        record(FSDPRT_REDUCE_SCATTER, "s", inner, FSDPRT_F32, 1);
    const fsdprtCollective reduce =
        record(FSDPRT_ALL_REDUCE, "r", outer, FSDPRT_F64, 1);
    for (int32_t count = 1; count <= 2; ++count) {
      gather.count = count;
      const float own[] = {float(rank), float(10 * rank)};
      const double wide = double(rank);
      float gathered[8] = {}, scattered = 0;
      double reduced = 0;
      const fsdprtCollective *records[] = {&gather, &scatter, &reduce};
      const void *send[] = {own, own, &wide};
      void *receive[] = {gathered, &scattered, &reduced};
      if (fsdprtStatus status =
              fsdprtRunCollectives(context, records, 3, send, receive))
        return status;
      for (int64_t other = 0; other < 4; ++other)
        EXPECT_EQ(gathered[other * count], float(other));
      EXPECT_EQ(gathered[4 * count - 1], count == 1 ? 3 : 30);
      // The inner group of rank 2a + b is {2a, 2a + 1}, and it takes row b.
      const int64_t a = rank / 2, b = rank % 2;
      EXPECT_EQ(scattered, float((4 * a + 1) * (b ? 10 : 1)));
      EXPECT_EQ(reduced, double(2 * b + 2));
    }
    return fsdprtStatus(FSDPRT_SUCCESS);
  });
}

// A rank that leaves one out is found, and the call that differs is named.
TEST(SeveralCollectives, MustBeTheSameOnAllRanks) {
  TestWorld world({2});
  world.expectFailure(
      FSDPRT_RANKS_DISAGREE,
      {"call 2, all_gather of bucket 'b'", "call 2, all_gather of bucket 'c'"},
      [](fsdprtContext *context, int64_t rank) {
        const Axes axes = {0};
        const fsdprtCollective a =
            record(FSDPRT_ALL_GATHER, "a", axes, FSDPRT_F32, 1);
        const fsdprtCollective b =
            record(FSDPRT_ALL_GATHER, "b", axes, FSDPRT_F32, 1);
        const fsdprtCollective c =
            record(FSDPRT_ALL_GATHER, "c", axes, FSDPRT_F32, 1);
        const float own = 1;
        float first[2], second[2];
        const fsdprtCollective *records[] = {&a, rank == 0 ? &b : &c};
        const void *send[] = {&own, &own};
        void *receive[] = {first, second};
        return fsdprtRunCollectives(context, records, 2, send, receive);
      });
}
