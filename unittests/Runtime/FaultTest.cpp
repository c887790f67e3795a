//===- FaultTest.cpp - no memory and no threads ---------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One allocation of the C++ library after another fails, alone or with all
// that follow, and one thread after another is not to be had. Whatever it hits,
// the C function returns a status, no exception leaves it, and no rank waits
// for one that has given up.
//
//===----------------------------------------------------------------------===//

#include "FakeWorld.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <pthread.h>

using namespace fsdprt::test;

//===----------------------------------------------------------------------===//
// What fails
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> newsBefore{never}; ///< calls that still succeed
std::atomic<bool> allFollowing{false};
std::atomic<int64_t> threadsBefore{never};

bool newFails() {
  if (newsBefore.load(std::memory_order_relaxed) == never)
    return false;
  int64_t before = newsBefore--;
  return allFollowing ? before <= 0 : before == 0;
}

} // namespace

// Not inlined: the compiler would see pairs of `new` and `free`.
#define NOINLINE __attribute__((noinline))
NOINLINE void *operator new(size_t size) {
  if (newFails())
    throw std::bad_alloc();
  if (void *data = std::malloc(size ? size : 1))
    return data;
  throw std::bad_alloc();
}
NOINLINE void operator delete(void *data) noexcept { std::free(data); }
NOINLINE void operator delete(void *data, size_t) noexcept { std::free(data); }

extern "C" int pthread_create(pthread_t *thread,
                              const pthread_attr_t *attributes,
                              void *(*body)(void *), void *argument) noexcept {
  if (threadsBefore.load() != never && threadsBefore-- == 0)
    return EAGAIN;
  static auto *next = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, body, argument);
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t ranks = 2, count = 64;

#define TRY(...)                                                               \
  if (fsdprtStatus status = __VA_ARGS__)                                       \
  return status

fsdprtStatus step(fsdprtContext *context, void *const *, void *const *) {
  void *send = nullptr, *receive = nullptr;
  int64_t rank = 0;
  TRY(fsdprtRank(context, &rank));
  TRY(fsdprtAlloc(context, ranks * count * 4, &send));
  TRY(fsdprtAlloc(context, ranks * count * 4, &receive));
  std::memset(send, 0, ranks * count * 4);
  const char *bucket = "a bucket whose name needs memory of its own";
  TRY(allGather(context, bucket, {0}, FSDPRT_F32, count, send, receive));
  TRY(reduceScatter(context, bucket, {0}, FSDPRT_F32, count, FSDPRT_AVG, 0, 0,
                    send, receive));
  TRY(allReduce(context, bucket, {0}, FSDPRT_F32, count, FSDPRT_AVG, 0, 0, send,
                receive));
  TRY(fsdprtFree(context, receive));
  return fsdprtFree(context, send);
}

fsdprtStatus createWorld(std::array<fsdprtContext *, ranks> &contexts,
                         char *message, int64_t size) {
  fsdprtOptions options = {};
  const int64_t shape = ranks;
  options.gridShape = &shape;
  options.gridAxes = 1;
  options.timeoutSeconds = 20;
  return fsdprtCreateLocal(&options, contexts.data(), message, size);
}

class Memory : public testing::TestWithParam<bool> {
protected:
  ~Memory() override { newsBefore = never; }

  /// True if an allocation has failed since.
  static bool disarm() { return newsBefore.exchange(never) < 0; }
};

} // namespace

TEST_P(Memory, OfAWorld) {
  allFollowing = GetParam();
  bool failed = true;
  for (int64_t before = 0; failed; ++before) {
    ASSERT_LT(before, 1000);
    std::array<fsdprtContext *, ranks> contexts = {};
    char message[200] = "";
    newsBefore = before;
    fsdprtStatus status = createWorld(contexts, message, sizeof(message));
    failed = disarm();
    EXPECT_EQ(status, failed ? FSDPRT_OUT_OF_MEMORY : FSDPRT_SUCCESS);
    EXPECT_EQ(std::string(message).rfind("out of memory", 0) == 0, failed)
        << message;
    for (fsdprtContext *context : contexts) {
      EXPECT_EQ(context == nullptr, failed);
      fsdprtDestroy(context);
    }
  }
}

TEST_P(Memory, OfARun) {
  allFollowing = GetParam();
  bool failed = true;
  int64_t before = 0;
  for (; failed; ++before) {
    ASSERT_LT(before, 1000);
    SCOPED_TRACE("after " + std::to_string(before));
    std::array<fsdprtContext *, ranks> contexts = {};
    char text[200] = "";
    ASSERT_EQ(createWorld(contexts, text, sizeof(text)), FSDPRT_SUCCESS);
    std::array<fsdprtStatus, ranks> statuses = {};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        while (!go)
          std::this_thread::yield();
        fsdprtContext *context = contexts[rank];
        statuses[rank] = fsdprtStart(context, "a plan hash of some length");
        if (statuses[rank] == FSDPRT_SUCCESS)
          statuses[rank] = fsdprtRun(context, step, nullptr, nullptr);
      });
    newsBefore = before;
    go = true;
    for (std::thread &thread : threads)
      thread.join();
    failed = disarm();
    int64_t outOfMemory = 0, aborted = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      outOfMemory += statuses[rank] == FSDPRT_OUT_OF_MEMORY;
      aborted += statuses[rank] == FSDPRT_ABORTED;
      std::string message = fsdprtMessage(contexts[rank]);
      // Nobody has waited in vain, and what failed is said, if there was memory
      // to say it.
      EXPECT_EQ(message.find("timeout"), std::string::npos) << message;
      if (statuses[rank] == FSDPRT_OUT_OF_MEMORY) {
        EXPECT_EQ(message.rfind("out of memory", 0), 0u) << message;
      }
    }
    EXPECT_EQ(outOfMemory + aborted > 0, failed);
    for (fsdprtContext *context : contexts)
      fsdprtDestroy(context);
  }
  EXPECT_GT(before, 20);
}

INSTANTIATE_TEST_SUITE_P(Fault, Memory, testing::Bool(), [](const auto &info) {
  return info.param ? "AllThatFollow" : "One";
});

// A record that has been seen costs no memory any more, whatever its kind.
TEST(Collectives, AllocateNothingWhenTheyComeAgain) {
  TestWorld world({1});
  const Axes axes = {0};
  const fsdprtCollective gather =
      record(FSDPRT_ALL_GATHER, "g", axes, FSDPRT_BYTES, 64);
  const fsdprtCollective scatter =
      record(FSDPRT_REDUCE_SCATTER, "s", axes, FSDPRT_BF16, 32, FSDPRT_AVG);
  const fsdprtCollective reduce =
      record(FSDPRT_ALL_REDUCE, "r", axes, FSDPRT_F32, 16, FSDPRT_PREMUL, 0.5);
  char from[64] = {}, to[64];
  const fsdprtCollective *records[] = {&gather, &scatter, &reduce};
  const void *send[] = {from, from, from};
  void *receive[] = {to, to, to};
  auto call = [&] {
    return fsdprtRunCollectives(world[0], records, 3, send, receive);
  };
  ASSERT_EQ(call(), FSDPRT_SUCCESS);
  allFollowing = true;
  newsBefore = 0;
  const fsdprtStatus status = call();
  newsBefore = never;
  EXPECT_EQ(status, FSDPRT_SUCCESS) << world.message(0);
}

// A rank that is a process has two threads of its own: one that answers the
// others, one that looks after its collectives.
TEST(Threads, OfARank) {
  fakes().reset();
  for (int64_t before : {0, 1, 2}) {
    fsdprtOptions options = {};
    const int64_t shape = 1;
    options.gridShape = &shape;
    options.gridAxes = 1;
    options.device = "cuda";
    options.communicator = "nccl";
    char message[200] = "";
    fsdprtContext *context = nullptr;
    threadsBefore = before;
    fsdprtStatus status =
        fsdprtCreateRank(&options, &context, message, sizeof(message));
    threadsBefore = never;
    EXPECT_EQ(status, before < 2 ? FSDPRT_OUT_OF_MEMORY : FSDPRT_SUCCESS);
    EXPECT_STREQ(message,
                 before < 2
                     ? "cannot start a thread: Resource temporarily unavailable"
                     : "");
    fsdprtDestroy(context);
    EXPECT_EQ(fakes().alive(), "");
  }
}

// What no function can act on.
TEST(Fault, NoContext) {
  EXPECT_EQ(fsdprtStart(nullptr, "plan"), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(fsdprtFree(nullptr, nullptr), FSDPRT_INVALID_ARGUMENT);
  fsdprtDestroy(nullptr);
}

// More than there is in any machine, in places that are no buffer of a device.
TEST(Fault, SizesWithoutEnd) {
  std::array<fsdprtContext *, ranks> contexts = {};
  char text[200] = "";
  ASSERT_EQ(createWorld(contexts, text, sizeof(text)), FSDPRT_SUCCESS);
  void *data = nullptr;
  EXPECT_EQ(fsdprtAlloc(contexts[0], never, &data), FSDPRT_OUT_OF_MEMORY);
  EXPECT_STREQ(fsdprtMessage(contexts[0]),
               "out of memory: no 9223372036854775807 bytes beside 0 allocated "
               "bytes");
  for (fsdprtContext *context : contexts)
    fsdprtDestroy(context);
}
