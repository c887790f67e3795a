//===- MpiTest.cpp - ranks that are processes, against threads ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by mpirun on 4 processes, each of which makes the whole world again out
// of threads and expects the same bits. Inputs are arbitrary bits: infinities
// and NaNs too.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <cstring>
#include <random>

using namespace fsdprt::test;

namespace {

constexpr int64_t worldRanks = 4;

class MpiRank {
public:
  explicit MpiRank(std::vector<int64_t> shape, const char *sumOrder = nullptr) {
    fsdprtOptions options = {};
    options.sumOrder = sumOrder;
    options.gridShape = shape.data();
    options.gridAxes = static_cast<int32_t>(shape.size());
    options.timeoutSeconds = 60;
    options.communicator = "mpi";
    char message[500] = "";
    EXPECT_EQ(fsdprtCreateRank(&options, &context, message, sizeof(message)),
              FSDPRT_SUCCESS)
        << message;
    EXPECT_EQ(fsdprtStart(context, "plan"), FSDPRT_SUCCESS)
        << fsdprtMessage(context);
    EXPECT_EQ(fsdprtRank(context, &rank), FSDPRT_SUCCESS);
  }
  ~MpiRank() { fsdprtDestroy(context); }

  fsdprtContext *context = nullptr;
  int64_t rank = -1;
};

struct CollectiveCase {
  const char *kind;
  int32_t dtype;
  int32_t reduction;
  int32_t accumulate;
};

std::vector<CollectiveCase> collectiveCases() {
  std::vector<CollectiveCase> result = {{"all_gather", FSDPRT_BYTES, 0, 0},
                                        {"all_gather", FSDPRT_F64, 0, 0}};
  for (const char *kind : {"reduce_scatter", "all_reduce"})
    for (int32_t dtype : {FSDPRT_F16, FSDPRT_BF16, FSDPRT_F32, FSDPRT_F64})
      for (int32_t reduction : {FSDPRT_SUM, FSDPRT_AVG, FSDPRT_PREMUL})
        for (int32_t accumulate : {0, 1})
          result.push_back({kind, dtype, reduction, accumulate});
  return result;
}

int64_t bytesOf(int32_t dtype) {
  const int64_t sizes[] = {2, 2, 4, 8, 1};
  return sizes[dtype];
}

/// What `rank` sends: `bytes` arbitrary bytes.
std::vector<char> inputOf(int64_t rank, int64_t bytes) {
  std::mt19937_64 random(1000 + rank);
  std::vector<char> data(bytes + 8);
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t word = random();
    std::memcpy(&data[i], &word, 8);
  }
  data.resize(bytes);
  return data;
}

/// Calls the collective, in place if it can be, and returns what came.
fsdprtStatus call(fsdprtContext *context, const CollectiveCase &c,
                  const Axes &axes, int64_t members, int64_t count,
                  std::vector<char> send, bool inPlace,
                  std::vector<char> &receive) {
  const int64_t row = count * bytesOf(c.dtype);
  if (std::strcmp(c.kind, "all_gather") == 0) {
    receive.assign(members * row, 0);
    return allGather(context, "b", axes, c.dtype, count, send.data(),
                     receive.data());
  }
  receive.assign(row, 0);
  if (std::strcmp(c.kind, "reduce_scatter") == 0)
    return reduceScatter(context, "b", axes, c.dtype, count, c.reduction, 0.3,
                         c.accumulate, send.data(), receive.data());
  send.resize(row);
  std::vector<char> &to = inPlace ? send : receive;
  fsdprtStatus status =
      allReduce(context, "b", axes, c.dtype, count, c.reduction, 0.3,
                c.accumulate, send.data(), to.data());
  receive = std::vector<char>(to);
  return status;
}

} // namespace

TEST(Mpi, EveryCollectiveGivesTheBitsOfThreads) {
  struct {
    std::vector<int64_t> shape;
    std::vector<int32_t> axes;
    int64_t members;
    bool ring = false;
  } groups[] = {{{4}, {0}, 4},       {{2, 2}, {0}, 2},
                {{2, 2}, {1}, 2},    {{2, 2}, {1, 0}, 4},
                {{4}, {}, 1},        {{4, 1}, {1}, 1},
                {{4}, {0}, 4, true}, {{2, 2}, {1, 0}, 4, true}};
  for (auto &group : groups) {
    const char *sumOrder = group.ring ? "ring" : "rank";
    fsdprtOptions options = {};
    options.sumOrder = sumOrder;
    MpiRank mine(group.shape, sumOrder);
    TestWorld threads(group.shape, options);
    const Axes &axes = group.axes;
    for (const CollectiveCase &c : collectiveCases())
      for (int64_t count : {1, 3, 1001}) {
        bool inPlace = count == 3;
        int64_t bytes = group.members * count * bytesOf(c.dtype);
        std::vector<char> expected[worldRanks], actual;
        threads.expectSuccess([&](fsdprtContext *context, int64_t rank) {
          return call(context, c, axes, group.members, count,
                      inputOf(rank, bytes), inPlace, expected[rank]);
        });
        ASSERT_EQ(call(mine.context, c, axes, group.members, count,
                       inputOf(mine.rank, bytes), inPlace, actual),
                  FSDPRT_SUCCESS)
            << fsdprtMessage(mine.context);
        EXPECT_TRUE(actual == expected[mine.rank])
            << c.kind << " of " << count << ", dtype " << c.dtype
            << ", reduction " << c.reduction << ", accumulate " << c.accumulate
            << ", group of " << group.members << ", rank " << mine.rank;
      }
  }
}

// More than one part of rows in a reduce_scatter, across which the ring's
// chunks go, and slices of other sizes in the all_reduce that follows.
TEST(Mpi, LargeRows) {
  MpiRank mine({worldRanks}, "ring");
  const int64_t count = (5 << 20) + 3;
  std::vector<float> send(worldRanks * count), receive(count);
  for (int64_t i = 0; i < worldRanks * count; ++i)
    send[i] = static_cast<float>((i + mine.rank) % 1000);
  ASSERT_EQ(reduceScatter(mine.context, "b", {0}, FSDPRT_F32, count, FSDPRT_SUM,
                          0, 0, send.data(), receive.data()),
            FSDPRT_SUCCESS)
      << fsdprtMessage(mine.context);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t from = 0; from < worldRanks; ++from)
      sum += static_cast<float>((mine.rank * count + i + from) % 1000);
    ASSERT_EQ(receive[i], sum) << i;
  }
  ASSERT_EQ(allReduce(mine.context, "b", {0}, FSDPRT_F32, count, FSDPRT_SUM, 0,
                      0, receive.data(), receive.data()),
            FSDPRT_SUCCESS)
      << fsdprtMessage(mine.context);
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t row = 0; row < worldRanks; ++row)
      for (int64_t from = 0; from < worldRanks; ++from)
        sum += static_cast<float>((row * count + i + from) % 1000);
    ASSERT_EQ(receive[i], sum) << i;
  }
}

TEST(Mpi, ExchangeAndCollect) {
  MpiRank mine({worldRanks});
  int64_t send = 10 + mine.rank, all[worldRanks] = {};
  ASSERT_EQ(
      fsdprtExchange(mine.context, "numbers", &send, sizeof(send), all, 60),
      FSDPRT_SUCCESS)
      << fsdprtMessage(mine.context);
  for (int64_t from = 0; from < worldRanks; ++from)
    EXPECT_EQ(all[from], 10 + from);

  // More than one part travels, and nobody but rank 0 gets anything.
  const int64_t bytes = (9 << 20) + 5;
  for (int64_t from : {3, 0, 1}) {
    std::vector<char> data = inputOf(mine.rank, bytes), got(bytes);
    ASSERT_EQ(fsdprtCollect(mine.context, "tensor", from, data.data(), bytes,
                            got.data(), 60),
              FSDPRT_SUCCESS)
        << fsdprtMessage(mine.context);
    EXPECT_TRUE(got == (mine.rank == 0 ? inputOf(from, bytes)
                                       : std::vector<char>(bytes)))
        << "rank " << mine.rank << " from " << from;
  }
}

// Several worlds may follow each other, and the last one may fail.
TEST(MpiFailure, IsToldToEveryRank) {
  MpiRank mine({2, 2});
  // Rank 1 gives up while its partner waits and the other group knows nothing.
  float value = 1;
  fsdprtStatus status;
  if (mine.rank == 1) {
    fsdprtAbort(mine.context, "no more");
    status = allReduce(mine.context, "b", {1}, FSDPRT_F32, 1, FSDPRT_SUM, 0, 0,
                       &value, &value);
  } else if (mine.rank == 0) {
    status = allReduce(mine.context, "b", {1}, FSDPRT_F32, 1, FSDPRT_SUM, 0, 0,
                       &value, &value);
  } else {
    while (fsdprtWorldStatus(mine.context, nullptr, 0) == FSDPRT_SUCCESS)
      std::this_thread::yield();
    status = fsdprtRun(
        mine.context,
        [](fsdprtContext *, void *const *, void *const *) {
          return fsdprtStatus(FSDPRT_SUCCESS);
        },
        nullptr, nullptr);
  }
  EXPECT_EQ(status, FSDPRT_ABORTED);
  EXPECT_STREQ(fsdprtMessage(mine.context), "no more (abort of rank 1)");
  EXPECT_EQ(fsdprtFailedFirst(mine.context), mine.rank == 1);
}
