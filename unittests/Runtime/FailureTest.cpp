//===- FailureTest.cpp - ranks that disagree, stop or give up -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing may hang and nothing may be silent: each test makes one rank differ
// and expects one sentence on every rank.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <chrono>

using namespace fsdprt::test;

namespace {

/// A reduce_scatter, as each rank makes it unless a test changes something.
struct Sample {
  const char *bucket = "grads";
  int32_t dtype = FSDPRT_F32;
  int64_t count = 4;
  int32_t reduction = FSDPRT_AVG;
  double multiplier = 0;
  int32_t accumulate = 0;
  Axes axes = {0};

  fsdprtStatus operator()(fsdprtContext *context) const {
    std::vector<double> send(64), receive(64);
    return reduceScatter(context, bucket, axes, dtype, count, reduction,
                         multiplier, accumulate, send.data(), receive.data());
  }
};

/// Rank 2 of 4 differs in its second call.
void expectDisagreement(Sample common, Sample other, const std::string &left,
                        const std::string &right) {
  TestWorld world({4});
  world.expectFailure(FSDPRT_RANKS_DISAGREE,
                      {"ranks disagree: rank 0 is at call 2, " + left +
                       "; rank 2 is at call 2, " + right},
                      [&](fsdprtContext *context, int64_t rank) {
                        EXPECT_EQ(common(context), FSDPRT_SUCCESS);
                        return rank == 2 ? other(context) : common(context);
                      });
}

} // namespace

TEST(Disagreement, Bucket) {
  Sample other;
  other.bucket = "norms";
  expectDisagreement({}, other,
                     "reduce_scatter of bucket 'grads', 4 x f32, avg",
                     "reduce_scatter of bucket 'norms', 4 x f32, avg");
}

TEST(Disagreement, Count) {
  Sample other;
  other.count = 5;
  expectDisagreement({}, other,
                     "reduce_scatter of bucket 'grads', 4 x f32, avg",
                     "reduce_scatter of bucket 'grads', 5 x f32, avg");
}

TEST(Disagreement, Dtype) {
  Sample other;
  other.dtype = FSDPRT_BF16;
  expectDisagreement({}, other,
                     "reduce_scatter of bucket 'grads', 4 x f32, avg",
                     "reduce_scatter of bucket 'grads', 4 x bf16, avg");
}

TEST(Disagreement, Reduction) {
  Sample other;
  other.reduction = FSDPRT_SUM;
  expectDisagreement({}, other,
                     "reduce_scatter of bucket 'grads', 4 x f32, avg",
                     "reduce_scatter of bucket 'grads', 4 x f32, sum");
}

TEST(Disagreement, Multiplier) {
  Sample common, other;
  common.reduction = other.reduction = FSDPRT_PREMUL;
  common.multiplier = 0.25;
  other.multiplier = 0.5;
  expectDisagreement(common, other,
                     "reduce_scatter of bucket 'grads', 4 x f32, premul 0.25",
                     "reduce_scatter of bucket 'grads', 4 x f32, premul 0.5");
}

TEST(Disagreement, Accumulate) {
  Sample common, other;
  common.dtype = other.dtype = FSDPRT_F16;
  other.accumulate = 1;
  expectDisagreement(
      common, other, "reduce_scatter of bucket 'grads', 4 x f16, avg",
      "reduce_scatter of bucket 'grads', 4 x f16, avg, accumulate f32");
}

TEST(Disagreement, Kind) {
  TestWorld world({4});
  world.expectFailure(
      FSDPRT_RANKS_DISAGREE,
      {"rank 0 is at call 1, reduce_scatter of bucket 'grads', 4 x f32, avg; "
       "rank 3 is at call 1, all_gather of bucket 'grads', 16 bytes"},
      [&](fsdprtContext *context, int64_t rank) {
        std::vector<char> send(16), receive(64);
        return rank == 3 ? allGather(context, "grads", {0}, FSDPRT_BYTES, 16,
                                     send.data(), receive.data())
                         : Sample()(context);
      });
}

// The rest of the world learns of a disagreement that it is no part of.
TEST(Disagreement, ReachesOtherGroups) {
  TestWorld world({2, 2});
  world.expectFailure(FSDPRT_RANKS_DISAGREE,
                      {"rank 2 is at call 1,", "rank 3 is at call 1,"},
                      [&](fsdprtContext *context, int64_t rank) {
                        Sample sample;
                        sample.axes = {1};
                        if (rank >= 2) {
                          sample.count = rank;
                          return sample(context);
                        }
                        for (;;)
                          if (fsdprtStatus status = sample(context))
                            return status;
                      });
}

TEST(Timeout, SaysWhatEachRankWasDoing) {
  fsdprtOptions options = {};
  options.timeoutSeconds = 0.1;
  TestWorld world({4}, options);
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        EXPECT_EQ(Sample()(context), FSDPRT_SUCCESS);
        return rank == 2 ? fsdprtStatus(FSDPRT_SUCCESS) : Sample()(context);
      });
  for (int64_t rank : {0, 1, 3}) {
    EXPECT_EQ(statuses[rank], FSDPRT_TIMEOUT);
    EXPECT_EQ(world.message(rank),
              "timeout: no end of a collective after 0.1 s: ranks 0, 1, 3: "
              "waiting in call 2, reduce_scatter of bucket 'grads', 4 x f32, "
              "avg, over grid axes [0]; rank 2: not in a collective, last was "
              "call 1, reduce_scatter of bucket 'grads', 4 x f32, avg");
  }
  // The late one finds a failed world and waits for nobody.
  EXPECT_EQ(Sample()(world[2]), FSDPRT_TIMEOUT);
  EXPECT_EQ(world.message(2), world.message(0));
}

TEST(Timeout, RankThatHasLeftItsEntryIsReported) {
  fsdprtOptions options = {};
  options.timeoutSeconds = 0.1;
  TestWorld world({2}, options);
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        auto nothing = [](fsdprtContext *, void *const *, void *const *) {
          return fsdprtStatus(FSDPRT_SUCCESS);
        };
        auto one = [](fsdprtContext *context, void *const *, void *const *) {
          return Sample()(context);
        };
        return rank == 0 ? fsdprtRun(context, one, nullptr, nullptr)
                         : fsdprtRun(context, nothing, nullptr, nullptr);
      });
  EXPECT_EQ(statuses[0], FSDPRT_TIMEOUT);
  EXPECT_NE(world.message(0).find("rank 1: out of its entry, no call yet"),
            std::string::npos)
      << world.message(0);
}

TEST(Abort, WakesWhoeverWaits) {
  TestWorld world({2});
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fsdprtAbort(world[1], "the user gave up");
  });
  EXPECT_EQ(Sample()(world[0]), FSDPRT_ABORTED);
  thread.join();
  EXPECT_EQ(world.message(0), "the user gave up (abort of rank 1)");
  EXPECT_EQ(Sample()(world[1]), FSDPRT_ABORTED);
}

TEST(Abort, ReasonOfOneRankReachesTheOthers) {
  TestWorld world({2});
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        void *data;
        return rank == 1 ? fsdprtAlloc(context, -3, &data) : Sample()(context);
      });
  EXPECT_EQ(statuses[0], FSDPRT_ABORTED);
  EXPECT_EQ(statuses[1], FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "rank 1 failed: allocation of -3 bytes");
}

//===----------------------------------------------------------------------===//
// Calls that no correct program makes
//===----------------------------------------------------------------------===//

static std::string refusal(Sample sample) {
  TestWorld world({2});
  EXPECT_EQ(sample(world[0]), FSDPRT_INVALID_ARGUMENT);
  return world.message(0);
}

TEST(InvalidCall, IsRefusedWithItsReason) {
  Sample dtype, reduction, count, bytes, multiplier, axis, twice;
  dtype.dtype = 9;
  EXPECT_EQ(refusal(dtype),
            "call 1, reduce_scatter of bucket 'grads': no dtype has number 9");
  reduction.reduction = 3;
  EXPECT_EQ(
      refusal(reduction),
      "call 1, reduce_scatter of bucket 'grads': no reduction has number 3");
  count.count = -1;
  EXPECT_NE(refusal(count).find("the count is out of range"),
            std::string::npos);
  bytes.dtype = FSDPRT_BYTES;
  EXPECT_NE(refusal(bytes).find("bytes cannot be reduced"), std::string::npos);
  multiplier.reduction = FSDPRT_PREMUL;
  EXPECT_NE(refusal(multiplier)
                .find("premul 0: the multiplier is not positive "
                      "and finite"),
            std::string::npos);
  axis.axes = {1};
  EXPECT_NE(
      refusal(axis).find("axis 1 at place 0, expected axes of a grid with "
                         "1 axes, each once"),
      std::string::npos);
  twice.axes = {0, 0};
  EXPECT_NE(
      refusal(twice).find("axis 0 at place 1, expected axes of a grid with "
                          "1 axes, each once"),
      std::string::npos);
}

TEST(InvalidCall, RecordsAreRefusedWithTheirReason) {
  auto why = [](auto change) {
    TestWorld world({2});
    const Axes axes = {0};
    fsdprtCollective all = record(FSDPRT_ALL_GATHER, "b", axes, FSDPRT_F32, 4);
    change(all);
    float data[8] = {};
    EXPECT_EQ(run(world[0], all, data, data), FSDPRT_INVALID_ARGUMENT);
    return world.message(0);
  };
  EXPECT_EQ(why([](fsdprtCollective &all) { all.size = 64; }),
            "call 1, a record of 64 bytes, expected 56");
  EXPECT_EQ(why([](fsdprtCollective &all) { all.kind = 3; }),
            "call 1, no collective has number 3");
  EXPECT_EQ(why([](fsdprtCollective &all) { all.axisCount = -1; }),
            "call 1, all_gather of bucket 'b': a list of -1 axes");
  EXPECT_EQ(
      why([](fsdprtCollective &all) { all.axes = nullptr; }),
      "call 1, all_gather of bucket 'b': a list of 1 axes at a null address");
}

// A record that was right is read again where it has changed.
TEST(InvalidCall, RecordThatLosesItsAxes) {
  TestWorld world({1});
  const Axes axes = {0};
  fsdprtCollective all = record(FSDPRT_ALL_GATHER, "b", axes, FSDPRT_F32, 1);
  float data[1] = {};
  ASSERT_EQ(run(world[0], all, data, data), FSDPRT_SUCCESS);
  all.axes = nullptr;
  EXPECT_EQ(run(world[0], all, data, data), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      world.message(0),
      "call 2, all_gather of bucket 'b': a list of 1 axes at a null address");
}

TEST(InvalidCall, ListsOfCollectives) {
  const fsdprtCollective *none[] = {nullptr};
  const void *send[] = {nullptr};
  void *receive[] = {nullptr};
  {
    TestWorld world({1});
    EXPECT_EQ(fsdprtRunCollectives(world[0], nullptr, 0, nullptr, nullptr),
              FSDPRT_SUCCESS);
    EXPECT_EQ(fsdprtRunCollectives(world[0], none, 1, send, receive),
              FSDPRT_INVALID_ARGUMENT);
    EXPECT_EQ(world.message(0), "call 1, the address of its record is null");
  }
  TestWorld negative({1}), null({1});
  EXPECT_EQ(fsdprtRunCollectives(negative[0], none, -1, send, receive),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(negative.message(0), "-1 collectives");
  EXPECT_EQ(fsdprtRunCollectives(null[0], none, 1, nullptr, receive),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(null.message(0), "1 collectives: the address of a list is null");
}

TEST(InvalidCall, NullBuffer) {
  TestWorld world({1});
  EXPECT_EQ(allGather(world[0], "b", {0}, FSDPRT_BYTES, 1, nullptr, nullptr),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0),
            "call 1, all_gather of bucket 'b', 1 bytes: a buffer is null");
}
