//===- NcclTest.cpp - what the runtime asks NCCL to do --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against the recording fake of Fakes/Fake.h. Every world checks at its end
// that nothing is alive, failures included.
//
//===----------------------------------------------------------------------===//

#include "FakeWorld.h"

#include <algorithm>

using namespace fsdprt::test;

namespace {

constexpr fsdprtStatus good = FSDPRT_SUCCESS;

std::string linesWith(const std::string &record, const std::string &part) {
  std::string result;
  for (size_t at = 0, end; at < record.size(); at = end + 1) {
    end = record.find('\n', at);
    std::string line = record.substr(at, end - at);
    if (line.find(part) != std::string::npos)
      result += line + "\n";
  }
  return result;
}

} // namespace

TEST(Nccl, CollectivesAndTheirMapping) {
  FakeWorld world({2, 2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    float *all = upload(context, std::vector<float>(16));
    float mine[4] = {float(rank), 1, 2, 3};
    EXPECT_EQ(fsdprtCopyIn(context, all + 4 * rank, mine, 16), good);
    // In place, as packs are; all four ranks.
    EXPECT_EQ(allGather(context, "gather", {0, 1}, FSDPRT_F32, 4,
                        all + 4 * rank, all),
              good)
        << fsdprtMessage(context);
    EXPECT_EQ(
        download(context, all, 16),
        (std::vector<float>{0, 1, 2, 3, 1, 1, 2, 3, 2, 1, 2, 3, 3, 1, 2, 3}));
    // Ranks 0, 1 and ranks 2, 3.
    float *row = upload(context, std::vector<float>(8));
    EXPECT_EQ(reduceScatter(context, "reduce", {1}, FSDPRT_F32, 8, FSDPRT_AVG,
                            0, 0, all, row),
              good)
        << fsdprtMessage(context);
    EXPECT_EQ(download(context, row, 8)[0], rank % 2 == 0 ? 0 : 2);
    // Ranks 0, 2 and ranks 1, 3, with the multiplier in bf16.
    EXPECT_EQ(allReduce(context, "epilogue", {0}, FSDPRT_BF16, 8, FSDPRT_PREMUL,
                        0.3, 0, row, row),
              good)
        << fsdprtMessage(context);
    EXPECT_EQ(allReduce(context, "epilogue", {0}, FSDPRT_F32, 8, FSDPRT_SUM, 0,
                        0, all, row),
              good);
    EXPECT_EQ(allGather(context, "bytes", {1}, FSDPRT_BYTES, 16, row, all),
              good);
    // A group of one: nothing is multiplied by 1/1.
    EXPECT_EQ(reduceScatter(context, "alone", {}, FSDPRT_F64, 2, FSDPRT_AVG, 0,
                            0, all, row),
              good)
        << fsdprtMessage(context);
    // The multiplier is told to NCCL once.
    EXPECT_EQ(allReduce(context, "epilogue", {0}, FSDPRT_BF16, 8, FSDPRT_PREMUL,
                        0.3, 0, row, row),
              good);
    return fsdprtFree(context, row);
  });
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(linesWith(world.record(rank), "nccl"),
              "ncclAllGather 4 x f32 of 4 in place\n"
              "ncclReduceScatter 8 x f32 avg of 2\n"
              "ncclAllReduce 8 x bf16 premul 0.30078125 of 2 in place\n"
              "ncclAllReduce 8 x f32 sum of 2\n"
              "ncclAllGather 16 x bytes of 2\n"
              "ncclReduceScatter 2 x f64 sum of 1\n"
              "ncclAllReduce 8 x bf16 premul 0.30078125 of 2 in place\n");
    // All that a rank did is what every other one did.
    EXPECT_EQ(world.record(rank), world.record(0));
  }
  EXPECT_EQ(world.log(), std::vector<std::string>());
}

/// Reductions of NCCL are of the wire's dtype, the multiplier too.
TEST(Nccl, ReductionsOfEveryDtype) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float *rows = upload(context, std::vector<float>(32)),
          *row = upload(context, std::vector<float>(16));
    for (fsdprtDtype dtype : {FSDPRT_F16, FSDPRT_BF16, FSDPRT_F32, FSDPRT_F64})
      for (fsdprtReduction reduction : {FSDPRT_SUM, FSDPRT_AVG, FSDPRT_PREMUL})
        EXPECT_EQ(reduceScatter(context, "b", {0}, dtype, 8, reduction,
                                reduction == FSDPRT_PREMUL ? 0.3 : 0, 0, rows,
                                row),
                  good)
            << fsdprtMessage(context);
    return good;
  });
  EXPECT_EQ(linesWith(world.record(0), "nccl"),
            "ncclReduceScatter 8 x f16 sum of 2\n"
            "ncclReduceScatter 8 x f16 avg of 2\n"
            "ncclReduceScatter 8 x f16 premul 0.300048828 of 2\n"
            "ncclReduceScatter 8 x bf16 sum of 2\n"
            "ncclReduceScatter 8 x bf16 avg of 2\n"
            "ncclReduceScatter 8 x bf16 premul 0.30078125 of 2\n"
            "ncclReduceScatter 8 x f32 sum of 2\n"
            "ncclReduceScatter 8 x f32 avg of 2\n"
            "ncclReduceScatter 8 x f32 premul 0.300000012 of 2\n"
            "ncclReduceScatter 8 x f64 sum of 2\n"
            "ncclReduceScatter 8 x f64 avg of 2\n"
            "ncclReduceScatter 8 x f64 premul 0.3 of 2\n");
  EXPECT_EQ(world.record(1), world.record(0));
}

TEST(Nccl, OrderlyEndDestroysWhatWasMade) {
  FakeWorld world({2, 2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float *data = upload(context, {1, 2, 3, 4});
    return allReduce(context, "b", {0}, FSDPRT_F32, 4, FSDPRT_PREMUL, 0.5, 0,
                     data, data);
  });
  world.destroy();
  // The root and the group's communicator, on each rank.
  EXPECT_EQ(fakes().calls("ncclCommFinalize"), 8);
  EXPECT_EQ(fakes().calls("ncclCommDestroy"), 8);
  EXPECT_EQ(fakes().calls("ncclCommAbort"), 0);
}

// A collective of a non-blocking communicator costs a thread and a poll.
TEST(Nccl, CollectivesAreGivenToTheStreamByTheCall) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float *data = upload(context, {1, 2, 3, 4});
    for (int repeat = 0; repeat < 100; ++repeat)
      if (fsdprtStatus status = allReduce(context, "b", {0}, FSDPRT_F32, 4,
                                          FSDPRT_PREMUL, 0.5, 0, data, data))
        return status;
    return good;
  });
  EXPECT_EQ(fakes().calls("thread of a collective"), 0);
}

// NCCL: no collective may be under way on a communicator that is split, nor, as
// the fake has it, on one that shares its resources.
TEST(Nccl, GroupsAreMadeWhenNothingIsUnderWay) {
  FakeWorld world({2, 2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float *data = upload(context, std::vector<float>(16));
    for (std::vector<int32_t> axes : {std::vector<int32_t>{0, 1}, {0}, {1}})
      if (fsdprtStatus status = allReduce(context, "b", axes, FSDPRT_F32, 4,
                                          FSDPRT_SUM, 0, 0, data, data))
        return status;
    return good;
  });
}

TEST(Nccl, ProfilerSeesBuckets) {
  FakeWorld world({1});
  world.expectStart();
  float *data = upload(world[0], {1, 2, 3, 4});
  for (const char *bucket : {"first", "second"})
    EXPECT_EQ(allReduce(world[0], bucket, {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0,
                        data, data),
              good);
  EXPECT_EQ(fakes().ranges(), "+first\n-\n+second\n-\n");
}

TEST(Nccl, EmptyBucketIsNoCall) {
  FakeWorld world({2});
  world.expectStart();
  EXPECT_EQ(allGather(world[0], "none", {0}, FSDPRT_BYTES, 0, nullptr, nullptr),
            good);
  EXPECT_EQ(linesWith(world.record(0), "nccl"), "");
}

TEST(Nccl, AccumulateIsRefusedByName) {
  FakeWorld world({2});
  world.expectStart();
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t) {
        float *data = upload(context, {1, 2, 3, 4});
        // It means nothing for f32.
        EXPECT_EQ(allReduce(context, "wide", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0,
                            1, data, data),
                  good)
            << fsdprtMessage(context);
        return allReduce(context, "grads", {0}, FSDPRT_BF16, 4, FSDPRT_SUM, 0,
                         1, data, data);
      });
  for (int64_t rank = 0; rank < 2; ++rank)
    if (statuses[rank] == FSDPRT_INVALID_ARGUMENT)
      EXPECT_EQ(world.message(rank),
                "call 2, all_reduce of bucket 'grads', 4 x bf16, sum, "
                "accumulate f32: nccl adds in the dtype of the wire, expected "
                "a program without accumulate f32");
    else // the other one has told it
      EXPECT_EQ(statuses[rank], FSDPRT_ABORTED);
}

TEST(Nccl, SlicesOffTheSixteenBytesAreNoted) {
  FakeWorld world({2});
  world.expectStart();
  for (int repeat = 0; repeat < 2; ++repeat)
    world.expectSuccess([](fsdprtContext *context, int64_t) {
      float *send = upload(context, {1, 2, 3}),
            *all = upload(context, std::vector<float>(6));
      return allGather(context, "odd", {0}, FSDPRT_F32, 3, send, all);
    });
  EXPECT_EQ(world.log(),
            (std::vector<std::string>{
                "rank 0: bucket 'odd': all_gather of 12 bytes per rank, slices "
                "are not aligned to 16 bytes and move slowly"}));
}

// A buffer may be off although its rows are not.
TEST(Nccl, BuffersOffTheSixteenBytesAreNoted) {
  FakeWorld world({1});
  world.expectStart();
  float *data = upload(world[0], std::vector<float>(8));
  for (const char *bucket : {"odd", "odd", "other"})
    EXPECT_EQ(allReduce(world[0], bucket, {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0,
                        data + 1, data + 1),
              good);
  const std::string why = "': all_reduce of 16 bytes per rank, slices are not "
                          "aligned to 16 bytes and move slowly";
  EXPECT_EQ(world.log(),
            (std::vector<std::string>{"rank 0: bucket 'odd" + why,
                                      "rank 0: bucket 'other" + why}));
  EXPECT_EQ(linesWith(world.record(0), "nccl"),
            "ncclAllReduce 4 x f32 sum of 1 in place misaligned\n"
            "ncclAllReduce 4 x f32 sum of 1 in place misaligned\n"
            "ncclAllReduce 4 x f32 sum of 1 in place misaligned\n");
}

// Several collectives of one call are one group of NCCL's calls; what NCCL has
// to make for one of them is made before the group begins.
TEST(NcclCollectives, SeveralAreOneGroup) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    const Axes axes = {0};
    const fsdprtCollective gather =
        record(FSDPRT_ALL_GATHER, "g", axes, FSDPRT_F32, 4);
    const fsdprtCollective reduce =
        record(FSDPRT_ALL_REDUCE, "r", axes, FSDPRT_F32, 4, FSDPRT_PREMUL, 0.5);
    void *data[3] = {};
    for (void *&buffer : data)
      if (fsdprtStatus status = fsdprtAlloc(context, 32, &buffer))
        return status;
    const fsdprtCollective *records[] = {&gather, &reduce};
    const void *send[] = {data[0], data[2]};
    void *receive[] = {data[1], data[2]};
    if (fsdprtStatus status =
            fsdprtRunCollectives(context, records, 2, send, receive))
      return status;
    for (void *buffer : data)
      if (fsdprtStatus status = fsdprtFree(context, buffer))
        return status;
    return fsdprtRunCollectives(context, records, 0, send, receive);
  });
  EXPECT_EQ(linesWith(world.record(0), "nccl"),
            "ncclAllGather 4 x f32 of 2 grouped\n"
            "ncclAllReduce 4 x f32 premul 0.5 of 2 in place grouped\n");
  EXPECT_EQ(fakes().calls("ncclGroupStart"), 2);
  EXPECT_EQ(fakes().calls("ncclGroupEnd"), 2);
}

// Each call of NCCL that can fail in a group names the collective; the group is
// ended whatever happens in it.
TEST(NcclCollectives, FailureInAGroup) {
  for (const char *function :
       {"ncclGroupStart", "ncclAllGather", "ncclGroupEnd"}) {
    FakeWorld world({1});
    world.expectStart();
    const Axes axes = {0};
    const fsdprtCollective a =
        record(FSDPRT_ALL_GATHER, "a", axes, FSDPRT_F32, 4);
    const fsdprtCollective b =
        record(FSDPRT_ALL_GATHER, "b", axes, FSDPRT_F32, 4);
    void *data = nullptr;
    ASSERT_EQ(fsdprtAlloc(world[0], 64, &data), good);
    const fsdprtCollective *records[] = {&a, &b};
    const void *send[] = {data, data};
    void *receive[] = {data, data};
    fakes().fail(function, 1, 5);
    EXPECT_EQ(fsdprtRunCollectives(world[0], records, 2, send, receive),
              FSDPRT_DEVICE_ERROR);
    EXPECT_NE(world.message(0).find("call 1, all_gather of bucket 'a'"),
              std::string::npos)
        << world.message(0);
    EXPECT_NE(world.message(0).find(function), std::string::npos)
        << world.message(0);
    EXPECT_EQ(fakes().calls("ncclGroupStart"),
              fakes().calls("ncclGroupEnd") +
                  (std::string(function) == "ncclGroupStart"));
  }
}

//===----------------------------------------------------------------------===//
// Registered memory
//===----------------------------------------------------------------------===//

namespace {

/// A step with one large bucket, which is freed again.
fsdprtStatus largeStep(fsdprtContext *context, int64_t rank) {
  const int64_t count = 1 << 19;
  void *all = nullptr;
  if (fsdprtStatus status = fsdprtAlloc(context, 2 * 4 * count, &all))
    return status;
  if (fsdprtStatus status =
          allGather(context, "large", {0}, FSDPRT_F32, count,
                    static_cast<float *>(all) + rank * count, all))
    return status;
  return fsdprtFree(context, all);
}

} // namespace

TEST(NcclMemory, LargeBuffersAreRegisteredAndKept) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess(largeStep);
  EXPECT_EQ(fakes().alive(), "2 blocks, 4 communicators, 2 contexts, 4 events, "
                             "2 pools, 2 registrations, 2 streams");
  world.expectSuccess(largeStep);
  EXPECT_EQ(fakes().alive().substr(0, 8), "2 blocks");
  EXPECT_EQ(linesWith(world.record(0), "alloc"), "");
}

// A context that ends waits for its own work before it gives memory back that
// the work uses: here until the other rank comes to the collective. The first
// step registers the memory, which is a meeting; the second only enqueues.
TEST(NcclMemory, IsGivenBackAfterTheWork) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess(largeStep);
  std::atomic<bool> ends{false};
  std::string alive;
  world.end([&](fsdprtContext *context, int64_t rank) {
    if (rank == 1) {
      while (!ends)
        std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      alive = fakes().alive();
    }
    EXPECT_EQ(largeStep(context, rank), good);
    ends = true;
  });
  EXPECT_EQ(alive.substr(0, 9), "2 blocks,");
  EXPECT_EQ(fakes().alive(), "");
}

TEST(NcclMemory, WithoutItTheDriverAllocates) {
  FakeWorld world({2});
  world.expectStart();
  fakes().fail("ncclMemAlloc", 1, 1);
  world.expectSuccess(largeStep);
  ASSERT_EQ(world.log().size(), 1u);
  EXPECT_NE(world.log()[0].find("no memory from the communication library for "
                                "4194304 bytes, this buffer will be copied"),
            std::string::npos);
}

// A large block that is free, but of another size, makes room; and where there
// is no room once, there may be some the next time.
TEST(NcclMemory, BlocksAreAskedForAgain) {
  FakeWorld world({1});
  world.expectStart();
  void *data = nullptr;
  ASSERT_EQ(fsdprtAlloc(world[0], 8 << 20, &data), good);
  ASSERT_EQ(fsdprtFree(world[0], data), good);
  fakes().fail("ncclMemAlloc", 1, 1);
  ASSERT_EQ(fsdprtAlloc(world[0], 16 << 20, &data), good) << world.message(0);
  EXPECT_EQ(fakes().alive().substr(0, 9), "1 blocks,");
  EXPECT_EQ(linesWith(world.record(0), "alloc"), "");
  EXPECT_TRUE(world.log().empty());
  fakes().fail("ncclMemAlloc", 1, 1);
  void *copied = nullptr, *registered = nullptr;
  ASSERT_EQ(fsdprtAlloc(world[0], 4 << 20, &copied), good);
  ASSERT_EQ(fsdprtAlloc(world[0], 6 << 20, &registered), good);
  // The failure came while the 16 MiB were in use: nothing could make room.
  EXPECT_EQ(fakes().calls("ncclMemAlloc"), 3);
  EXPECT_EQ(fakes().alive().substr(0, 9), "3 blocks,");
}

TEST(NcclMemory, RegistrationThatFailsIsNoted) {
  FakeWorld world({2});
  world.expectStart();
  fakes().fail("ncclCommRegister", 1, 5);
  world.expectSuccess(largeStep);
  ASSERT_EQ(world.log().size(), 1u);
  EXPECT_NE(world.log()[0].find("bucket 'large': NCCL does not register its "
                                "buffers, they will be copied"),
            std::string::npos);
}

// Blocks that nobody uses are given back before memory is said to be out.
TEST(NcclMemory, KeptBlocksAreNoReasonToBeOutOfMemory) {
  FakeWorld world({1});
  world.expectStart();
  void *data = nullptr;
  ASSERT_EQ(fsdprtAlloc(world[0], 8 << 20, &data), good);
  ASSERT_EQ(fsdprtFree(world[0], data), good);
  fakes().fail("cuMemAllocFromPoolAsync", 1, fsdprt::cuda::errorOutOfMemory);
  ASSERT_EQ(fsdprtAlloc(world[0], 4096, &data), good) << world.message(0);
  EXPECT_EQ(fakes().alive().find("blocks"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST(NcclFailure, RankThatDoesNotComeIsNamed) {
  FakeWorld world({4});
  world.timeoutSeconds = 1;
  world.expectStart();
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        return fsdprtRun(
            context,
            [](fsdprtContext *context, void *const *arguments, void *const *) {
              float *data = upload(context, {1, 2, 3, 4});
              fsdprtStatus status = allReduce(context, "first", {0}, FSDPRT_F32,
                                              4, FSDPRT_SUM, 0, 0, data, data);
              if (arguments) // rank 2 has something else to do
                while (!fsdprtWorldStatus(context, nullptr, 0))
                  std::this_thread::yield();
              if (status == good)
                status = allReduce(context, "second", {0}, FSDPRT_F32, 4,
                                   FSDPRT_AVG, 0, 0, data, data);
              return status ? status : fsdprtFree(context, data);
            },
            rank == 2 ? reinterpret_cast<void *const *>(context) : nullptr,
            nullptr);
      });
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(statuses[rank], FSDPRT_TIMEOUT) << rank;
    EXPECT_EQ(world.message(rank),
              "timeout: no end of a collective after 1 s: ranks 0, 1, 3: "
              "waiting in call 2, all_reduce of bucket 'second', 4 x f32, avg, "
              "over grid axes [0]; rank 2: not in a collective, last was call "
              "1, all_reduce of bucket 'first', 4 x f32, sum");
    EXPECT_EQ(fsdprtFailedFirst(world[rank]), rank == 0);
  }
  // Destroying a communicator that is stuck would wait for ever: each rank
  // aborts its root and its group.
  world.destroy();
  EXPECT_EQ(fakes().calls("ncclCommAbort"), 8);
  EXPECT_EQ(fakes().calls("ncclCommDestroy"), 0);
}

// Nobody notices counts that differ but the clock.
TEST(NcclFailure, CountsThatDiffer) {
  FakeWorld world({2});
  world.timeoutSeconds = 0.5;
  world.expectStart();
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        float *data = upload(context, {1, 2, 3, 4});
        if (fsdprtStatus status =
                allReduce(context, "b", {0}, FSDPRT_F32, rank == 0 ? 4 : 2,
                          FSDPRT_SUM, 0, 0, data, data))
          return status;
        while (!fsdprtWorldStatus(context, nullptr, 0))
          std::this_thread::yield();
        return fsdprtAlloc(context, 8, nullptr);
      });
  char text[500];
  EXPECT_EQ(fsdprtWorldStatus(world[1], text, sizeof(text)), FSDPRT_TIMEOUT);
  EXPECT_STREQ(text, "timeout: no end of a collective after 0.5 s: rank 0: "
                     "waiting in call 1, all_reduce of bucket 'b', 4 x f32, "
                     "sum, over grid axes [0]; rank 1: waiting in call 1, "
                     "all_reduce of bucket 'b', 2 x f32, sum, over grid axes "
                     "[0]");
}

TEST(NcclFailure, RemoteErrorReachesEveryRank) {
  FakeWorld world({3});
  world.expectStart();
  std::atomic<int> uploaded{0};
  std::vector<fsdprtStatus> statuses =
      world.run([&](fsdprtContext *context, int64_t rank) {
        float *data = upload(context, {1, 2, 3, 4});
        ++uploaded;
        if (rank == 1) {
          while (uploaded < 3)
            std::this_thread::yield();
          fakes().setAsyncError(fsdprt::nccl::remoteError);
          while (!fsdprtWorldStatus(context, nullptr, 0))
            std::this_thread::yield();
        }
        return fsdprtRun(
            context,
            [](fsdprtContext *context, void *const *arguments, void *const *) {
              return allReduce(context, "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0,
                               0, arguments, const_cast<void **>(arguments));
            },
            reinterpret_cast<void *const *>(data), nullptr);
      });
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_NE(statuses[rank], good) << rank;
    EXPECT_NE(world.message(rank).find(
                  "remote process exited or there was a network error (the "
                  "fake says so)"),
              std::string::npos)
        << world.message(rank);
  }
}

TEST(NcclFailure, CallThatFails) {
  FakeWorld world({1});
  world.expectStart();
  fakes().fail("ncclAllReduce", 1, 3);
  float *data = upload(world[0], {1, 2, 3, 4});
  EXPECT_EQ(allReduce(world[0], "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0, data,
                      data),
            FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(0),
            "call 1, all_reduce of bucket 'b', 4 x f32, sum: ncclAllReduce: "
            "some error (the fake says so)");
}

TEST(NcclFailure, InitialisationThatFailsOnOneRank) {
  FakeWorld world({3});
  fakes().fail("ncclCommInitRankConfig", 2, 3);
  std::vector<fsdprtStatus> statuses = world.start();
  // The others wait for it no longer than it takes to be told.
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), FSDPRT_DEVICE_ERROR),
            1);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), FSDPRT_ABORTED), 2);
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_NE(world.message(rank).find("ncclCommInitRankConfig: some error"),
              std::string::npos)
        << world.message(rank);
}

TEST(NcclFailure, InitialisationThatDoesNotEnd) {
  FakeWorld world({3});
  world.timeoutSeconds = 0.5;
  fakes().fail("ncclCommInitRankConfig", 2, fsdprt::nccl::inProgress);
  std::vector<fsdprtStatus> statuses = world.start();
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(statuses[rank], FSDPRT_TIMEOUT) << rank;
    EXPECT_EQ(world.message(rank).find("timeout: no end of NCCL's "
                                       "initialisation after 0.5 s"),
              0u)
        << world.message(rank);
  }
  EXPECT_GT(fakes().calls("ncclCommGetAsyncError"), 3);
  world.destroy();
  EXPECT_EQ(fakes().calls("ncclCommAbort"), 3);
  EXPECT_EQ(fakes().calls("ncclCommDestroy"), 0);
}

// The bytes that were not there are named, and the others do not wait.
TEST(NcclFailure, OutOfMemoryEndsTheRun) {
  FakeWorld world({2});
  world.expectStart();
  fakes().fail("ncclMemAlloc", 1, 1);
  fakes().fail("cuMemAllocFromPoolAsync", 1, fsdprt::cuda::errorOutOfMemory);
  auto step = [](fsdprtContext *context, void *const *, void *const *) {
    return largeStep(context, 0);
  };
  auto wait = [](fsdprtContext *context, void *const *, void *const *) {
    while (!fsdprtWorldStatus(context, nullptr, 0))
      std::this_thread::yield();
    return fsdprtWorldStatus(context, nullptr, 0);
  };
  std::vector<fsdprtStatus> statuses =
      world.run([&](fsdprtContext *context, int64_t rank) {
        return rank == 1 ? fsdprtRun(context, step, nullptr, nullptr)
                         : fsdprtRun(context, wait, nullptr, nullptr);
      });
  EXPECT_EQ(statuses[1], FSDPRT_OUT_OF_MEMORY);
  EXPECT_EQ(world.message(1),
            "out of memory: no 4194304 bytes beside 0 allocated bytes");
  char text[500] = "";
  EXPECT_EQ(fsdprtWorldStatus(world[0], text, sizeof(text)), FSDPRT_ABORTED);
  EXPECT_NE(std::string(text).find("no 4194304 bytes"), std::string::npos)
      << text;
}

// NCCL connects at a first collective, and a rank that is not there keeps the
// others inside of the call: only an abort from outside ends it.
TEST(NcclFailure, CallThatDoesNotReturn) {
  FakeWorld world({2});
  world.timeoutSeconds = 0.5;
  world.expectStart();
  fakes().hang("ncclAllReduce");
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t) {
        float *data = upload(context, {1, 2, 3, 4});
        return allReduce(context, "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0,
                         data, data);
      });
  for (int64_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(statuses[rank], FSDPRT_TIMEOUT) << rank;
    EXPECT_EQ(world.message(rank).find("timeout: no end of a collective's "
                                       "start after 0.5 s"),
              0u)
        << world.message(rank);
  }
  world.destroy();
  EXPECT_EQ(fakes().calls("ncclCommDestroy"), 0);
}

TEST(NcclFailure, EndThatDoesNotReturn) {
  FakeWorld world({2});
  world.timeoutSeconds = 0.5;
  world.expectStart();
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float *data = upload(context, {1, 2, 3, 4});
    return allReduce(context, "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0, data,
                     data);
  });
  fakes().hang("ncclCommFinalize");
  world.destroy();
  EXPECT_EQ(fakes().calls("ncclCommAbort"), 4);
}

TEST(NcclFailure, CommunicatorOfAGroupIsNotMade) {
  FakeWorld world({2, 2});
  world.timeoutSeconds = 0.5;
  world.expectStart();
  // Rank 3 does not take part in what is a call of all ranks.
  world.run([](fsdprtContext *context, int64_t rank) {
    float *data = upload(context, {1, 2, 3, 4});
    if (rank == 3)
      while (!fsdprtWorldStatus(context, nullptr, 0))
        std::this_thread::yield();
    return allReduce(context, "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0, data,
                     data);
  });
  EXPECT_NE(world.message(0).find("timeout: no end of the making of a "
                                  "communicator after 0.5 s"),
            std::string::npos)
      << world.message(0);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST(NcclGraph, CollectivesCanBeCaptured) {
  FakeWorld world({2});
  world.expectStart();
  world.expectSuccess(largeStep); // groups and memory are made before
  fakes().setCapturing(true);
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    return largeStep(context, rank);
  });
  fakes().setCapturing(false);
}

TEST(NcclGraph, GroupsAreMadeBeforeACapture) {
  FakeWorld world({1});
  world.expectStart();
  float *data = upload(world[0], {1, 2, 3, 4});
  fakes().setCapturing(true);
  EXPECT_EQ(allReduce(world[0], "b", {0}, FSDPRT_F32, 4, FSDPRT_SUM, 0, 0, data,
                      data),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0),
            "call 1, all_reduce of bucket 'b', 4 x f32, sum: its ranks have no "
            "communicator yet while a graph is captured, expected an entry "
            "that has run once before");
  fakes().setCapturing(false);
}

// The watchdog asks for events all the time. Somebody else's recording, in the
// mode in which that is forbidden, goes on.
TEST(NcclGraph, RecordingOfSomebodyElseGoesOn) {
  FakeWorld world({2});
  world.expectStart();
  fakes().setForeignCapture(true);
  world.expectSuccess(largeStep);
  const int before = fakes().calls("cuEventQuery");
  // Nobody waits for these two, but the watchdogs.
  world.expectSuccess(largeStep);
  while (fakes().calls("cuEventQuery") < before + 2)
    std::this_thread::yield();
  EXPECT_EQ(fakes().brokeCapture(), "");
  fakes().setForeignCapture(false);
}
