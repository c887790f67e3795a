//===- ContextTest.cpp - statuses, buffers, start and run -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace fsdprt::test;

static fsdprtStatistics statistics(fsdprtContext *context) {
  fsdprtStatistics result;
  fsdprtGetStatistics(context, &result);
  return result;
}

// A sanitizer's allocator dies on sizes that an ordinary one refuses.
extern "C" const char *__asan_default_options();
extern "C" const char *__tsan_default_options();
const char *__asan_default_options() { return "allocator_may_return_null=1"; }
const char *__tsan_default_options() { return "allocator_may_return_null=1"; }

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static std::string whyNotCreated(fsdprtOptions options) {
  fsdprtContext *contexts[4] = {};
  char message[200] = "";
  EXPECT_EQ(fsdprtCreateLocal(&options, contexts, message, sizeof(message)),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(contexts[0], nullptr);
  return message;
}

TEST(Create, RefusesOptionsThatMeanNothing) {
  int64_t shape[2] = {2, 0};
  fsdprtOptions options = {};
  EXPECT_EQ(whyNotCreated(options),
            "options, contexts and gridShape must not be null");
  options.gridShape = shape;
  EXPECT_EQ(whyNotCreated(options), "the grid has 0 axes, expected 1 to 15");
  options.gridAxes = 2;
  EXPECT_EQ(whyNotCreated(options),
            "axis 1 of the grid has 0 ranks, expected a grid of 1 to 65536");
  options.gridAxes = 1;
  options.timeoutSeconds = -1;
  EXPECT_EQ(whyNotCreated(options),
            "the timeout is -1 s, expected 0 to 1000000000");
  options.timeoutSeconds = 1e10; // a clock would overflow
  EXPECT_EQ(whyNotCreated(options),
            "the timeout is 1e+10 s, expected 0 to 1000000000");
  options.timeoutSeconds = std::nan("");
  EXPECT_EQ(whyNotCreated(options),
            "the timeout is nan s, expected 0 to 1000000000");
}

TEST(Create, CutsMessageToItsBuffer) {
  fsdprtOptions options = {};
  char message[8] = "";
  EXPECT_EQ(fsdprtCreateLocal(&options, nullptr, message, sizeof(message)),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "options");
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

TEST(Buffers, AreAlignedAndCounted) {
  TestWorld world({1});
  fsdprtContext *context = world[0];
  void *a, *b, *none, *large;
  ASSERT_EQ(fsdprtAlloc(context, 100, &a), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtAlloc(context, 28, &b), FSDPRT_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 128, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 128, 0u);
  EXPECT_EQ(statistics(context).liveBytes, 128);
  ASSERT_EQ(fsdprtFree(context, a), FSDPRT_SUCCESS);
  EXPECT_EQ(statistics(context).liveBytes, 28);
  EXPECT_EQ(statistics(context).peakBytes, 128);
  ASSERT_EQ(fsdprtAlloc(context, 0, &none), FSDPRT_SUCCESS);
  EXPECT_NE(none, nullptr);
  EXPECT_EQ(statistics(context).liveBytes, 28);
  EXPECT_EQ(statistics(context).liveBuffers, 2);
  ASSERT_EQ(fsdprtAlloc(context, 20 << 20, &large), FSDPRT_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 128, 0u);
  std::memset(large, 1, 20 << 20);
  EXPECT_EQ(statistics(context).peakBytes, 28 + (20 << 20));
  // What is left dies with the context; a leak checker sees it otherwise.
}

/// Writes a byte to a new buffer, frees it, and returns what a next one of
/// `bytes` has there: the same byte if it is the same memory.
static char afterFree(fsdprtContext *context, int64_t bytes) {
  void *data;
  EXPECT_EQ(fsdprtAlloc(context, bytes, &data), FSDPRT_SUCCESS);
  static_cast<char *>(data)[bytes / 2] = 42;
  EXPECT_EQ(fsdprtFree(context, data), FSDPRT_SUCCESS);
  EXPECT_EQ(fsdprtAlloc(context, bytes, &data), FSDPRT_SUCCESS);
  char found = static_cast<char *>(data)[bytes / 2];
  EXPECT_EQ(fsdprtFree(context, data), FSDPRT_SUCCESS);
  return found;
}

TEST(Buffers, LargeOnesAreKeptForTheNext) {
  TestWorld world({1});
  fsdprtContext *context = world[0];
  constexpr int64_t bytes = 32 << 20;
  EXPECT_EQ(afterFree(context, bytes), 42);
  EXPECT_EQ(afterFree(context, 3 * bytes), 42);
  // What is kept is nobody's.
  EXPECT_EQ(statistics(context).liveBytes, 0);
  EXPECT_EQ(statistics(context).liveBuffers, 0);
  EXPECT_EQ(statistics(context).peakBytes, 3 * bytes);
}

TEST(Buffers, KeptOnesDoNotServeMuchSmallerOnes) {
  TestWorld world({1});
  fsdprtContext *context = world[0];
  constexpr int64_t bytes = 32 << 20;
  void *large, *small, *next;
  ASSERT_EQ(fsdprtAlloc(context, bytes, &large), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtFree(context, large), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtAlloc(context, bytes / 2, &small), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtAlloc(context, bytes - 100, &next), FSDPRT_SUCCESS);
  EXPECT_NE(small, large);
  EXPECT_EQ(next, large);
  EXPECT_EQ(statistics(context).liveBytes, bytes / 2 + bytes - 100);
}

// A sanitizer keeps freed memory itself, or more beside it.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) &&                    \
    !defined(__SANITIZE_THREAD__)
/// Bytes of this process that are in memory.
static int64_t residentBytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// No more is kept than was in use at once, and nothing beyond the context.
TEST(Buffers, KeptOnesAreBounded) {
  constexpr int64_t bytes = 64 << 20;
  const int64_t before = residentBytes();
  {
    TestWorld world({1});
    for (int64_t size = bytes; size > bytes / 2; size -= 4 << 20) {
      // In steps that no kept one fits.
      void *data;
      ASSERT_EQ(fsdprtAlloc(world[0], size, &data), FSDPRT_SUCCESS);
      std::memset(data, 1, size);
      ASSERT_EQ(fsdprtFree(world[0], data), FSDPRT_SUCCESS);
      EXPECT_LT(residentBytes() - before, 2 * bytes + (16 << 20));
    }
    EXPECT_GT(residentBytes() - before, bytes / 2);
  }
  EXPECT_LT(residentBytes() - before, 16 << 20);
}
#endif

#if defined(__SANITIZE_ADDRESS__)
TEST(Buffers, UseOfAKeptOneIsSeen) {
  TestWorld world({1});
  void *data;
  ASSERT_EQ(fsdprtAlloc(world[0], 32 << 20, &data), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtFree(world[0], data), FSDPRT_SUCCESS);
  EXPECT_DEATH(*static_cast<volatile char *>(data) = 1, "use-after-poison");
}
#endif

TEST(Buffers, NegativeSizeIsRefusedAndTheFailureIsKept) {
  TestWorld world({2});
  void *data;
  EXPECT_EQ(fsdprtAlloc(world[0], -1, &data), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "allocation of -1 bytes");
  int64_t rank;
  EXPECT_EQ(fsdprtRank(world[0], &rank), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(fsdprtAlloc(world[0], 1, &data), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(allGather(world[0], "b", {0}, FSDPRT_BYTES, 0, data, data),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "allocation of -1 bytes");
  // The other rank learns of it where it would wait.
  EXPECT_EQ(allGather(world[1], "b", {0}, FSDPRT_BYTES, 1, &rank, &rank),
            FSDPRT_ABORTED);
  EXPECT_EQ(world.message(1), "rank 0 failed: allocation of -1 bytes");
}

TEST(Buffers, TooMuchIsOutOfMemory) {
  TestWorld world({1});
  void *data;
  EXPECT_EQ(fsdprtAlloc(world[0], INT64_MAX / 2, &data), FSDPRT_OUT_OF_MEMORY);
  EXPECT_EQ(world.message(0), "out of memory: no 4611686018427387903 bytes "
                              "beside 0 allocated bytes");
}

TEST(Buffers, ForeignAddressCannotBeFreed) {
  TestWorld world({1});
  int value;
  EXPECT_EQ(fsdprtFree(world[0], &value), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0),
            "free of an address that is no buffer of this rank");
}

TEST(Buffers, AreCopiedAndConstantsStayWhereTheyAre) {
  TestWorld world({1});
  static const float values[] = {1, 2, 3};
  void *constant = nullptr, *data = nullptr;
  ASSERT_EQ(fsdprtConstant(world[0], values, sizeof(values), &constant),
            FSDPRT_SUCCESS);
  EXPECT_EQ(constant, values);
  ASSERT_EQ(fsdprtAlloc(world[0], sizeof(values), &data), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtCopy(world[0], constant, data, sizeof(values)),
            FSDPRT_SUCCESS);
  EXPECT_EQ(static_cast<float *>(data)[2], 3);
  EXPECT_EQ(statistics(world[0]).liveBuffers, 1);
  EXPECT_EQ(fsdprtConstant(world[0], nullptr, 4, &constant),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "constant of 4 bytes from or to a null address");
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

TEST(Ranks, AreRowMajor) {
  TestWorld world({2, 3});
  for (int64_t rank = 0; rank < 6; ++rank) {
    int64_t number, row, column;
    ASSERT_EQ(fsdprtRank(world[rank], &number), FSDPRT_SUCCESS);
    ASSERT_EQ(fsdprtCoordinate(world[rank], 0, &row), FSDPRT_SUCCESS);
    ASSERT_EQ(fsdprtCoordinate(world[rank], 1, &column), FSDPRT_SUCCESS);
    EXPECT_EQ(number, rank);
    EXPECT_EQ(row, rank / 3);
    EXPECT_EQ(column, rank % 3);
  }
  int64_t coordinate;
  EXPECT_EQ(fsdprtCoordinate(world[0], 2, &coordinate),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "coordinate on axis 2 of a grid with 2 axes");
}

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

TEST(Start, PlanHashesThatDifferFailOnEveryRank) {
  TestWorld world({2}, {}, /*started=*/false);
  world.expectFailure(
      FSDPRT_PLAN_HASH_MISMATCH,
      {"plan hash differs between ranks: 'aaaa' on rank 0, 'bbbb' on rank 1"},
      [](fsdprtContext *context, int64_t rank) {
        return fsdprtStart(context, rank == 0 ? "aaaa" : "bbbb");
      });
}

TEST(Start, NamesAllRanksOfBothSides) {
  TestWorld world({6}, {}, /*started=*/false);
  world.expectFailure(FSDPRT_PLAN_HASH_MISMATCH,
                      {"'new' on ranks 0-2, 4, 5, 'old' on rank 3"},
                      [](fsdprtContext *context, int64_t rank) {
                        return fsdprtStart(context, rank == 3 ? "old" : "new");
                      });
}

TEST(Start, RankThatNeverStartsIsNamed) {
  fsdprtOptions options = {};
  options.timeoutSeconds = 0.05;
  TestWorld world({3}, options, /*started=*/false);
  std::vector<fsdprtStatus> statuses =
      world.run([](fsdprtContext *context, int64_t rank) {
        return rank == 1 ? FSDPRT_SUCCESS : fsdprtStart(context, "h");
      });
  EXPECT_EQ(statuses[0], FSDPRT_TIMEOUT);
  EXPECT_EQ(statuses[2], FSDPRT_TIMEOUT);
  EXPECT_NE(world.message(0).find("ranks 0, 2: waiting in the comparison of "
                                  "plan hashes; rank 1: not started"),
            std::string::npos)
      << world.message(0);
}

TEST(Start, IsNeededOnceAndOnlyOnce) {
  TestWorld world({1}, {}, /*started=*/false);
  EXPECT_EQ(allGather(world[0], "b", {}, FSDPRT_BYTES, 0, nullptr, nullptr),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "call 1, all_gather of bucket 'b', 0 bytes: the "
                              "rank has not started");
  TestWorld again({1});
  EXPECT_EQ(fsdprtStart(again[0], "plan"), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(again.message(0), "start: the rank has started before");
}

//===----------------------------------------------------------------------===//
// Run
//===----------------------------------------------------------------------===//

TEST(Run, PassesBuffersToTheEntry) {
  TestWorld world({2});
  world.expectSuccess([](fsdprtContext *context, int64_t rank) {
    int64_t in = 40 + rank, out = 0;
    void *arguments[] = {&in}, *results[] = {&out};
    fsdprtStatus status = fsdprtRun(
        context,
        [](fsdprtContext *, void *const *arguments, void *const *results) {
          *static_cast<int64_t *>(results[0]) =
              *static_cast<int64_t *>(arguments[0]) + 1;
          return fsdprtStatus(FSDPRT_SUCCESS);
        },
        arguments, results);
    EXPECT_EQ(out, 41 + rank);
    return status;
  });
}

TEST(Run, BuffersOfAFailedRunAreFreed) {
  TestWorld world({1});
  void *mine;
  ASSERT_EQ(fsdprtAlloc(world[0], 5, &mine), FSDPRT_SUCCESS);
  auto entry = [](fsdprtContext *context, void *const *, void *const *) {
    void *data;
    EXPECT_EQ(fsdprtAlloc(context, 1000, &data), FSDPRT_SUCCESS);
    return fsdprtAlloc(context, -7, &data);
  };
  EXPECT_EQ(fsdprtRun(world[0], entry, nullptr, nullptr),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(0), "allocation of -7 bytes");
  EXPECT_EQ(statistics(world[0]).liveBytes, 5) << "the launcher's stays";
  EXPECT_EQ(fsdprtRun(world[0], entry, nullptr, nullptr),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(statistics(world[0]).peakBytes, 1005) << "nothing ran again";
}

TEST(Run, BuffersThatASuccessfulRunLeavesAreAnError) {
  TestWorld world({1});
  auto entry = [](fsdprtContext *context, void *const *, void *const *) {
    void *data;
    return fsdprtAlloc(context, 12, &data);
  };
  EXPECT_EQ(fsdprtRun(world[0], entry, nullptr, nullptr), FSDPRT_LEAK);
  EXPECT_EQ(world.message(0), "the entry left 1 buffer behind, 12 bytes");
  EXPECT_EQ(statistics(world[0]).liveBytes, 0);
}

TEST(Run, StatusOfTheEntryIsKept) {
  TestWorld world({1});
  auto entry = [](fsdprtContext *, void *const *, void *const *) {
    return fsdprtStatus(1234);
  };
  EXPECT_EQ(fsdprtRun(world[0], entry, nullptr, nullptr), 1234);
  EXPECT_EQ(world.message(0), "the entry returned status 1234");
}

TEST(Run, TraceSeesEveryCall) {
  static std::atomic<int> seen;
  seen = 0;
  fsdprtOptions options = {};
  options.trace = [](void *user, const fsdprtTraceEvent *event) {
    EXPECT_EQ(user, &seen);
    EXPECT_STREQ(event->kind, "all_gather");
    EXPECT_STREQ(event->bucket, "gather");
    EXPECT_EQ(event->bytes, 8);
    EXPECT_LE(event->beginNanoseconds, event->endNanoseconds);
    seen += int(10 * event->rank + event->call);
  };
  options.traceUser = &seen;
  TestWorld world({2}, options);
  world.expectSuccess([](fsdprtContext *context, int64_t) {
    float send[2] = {}, receive[4];
    for (int i = 0; i < 2; ++i)
      if (fsdprtStatus status =
              allGather(context, "gather", {0}, FSDPRT_F32, 2, send, receive))
        return status;
    return fsdprtStatus(FSDPRT_SUCCESS);
  });
  EXPECT_EQ(seen, 1 + 2 + 11 + 12);
  EXPECT_EQ(statistics(world[1]).calls, 2);
}
