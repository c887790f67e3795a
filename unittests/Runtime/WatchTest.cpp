//===- WatchTest.cpp - ranks that look after each other -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Watch.h"
#include "Sockets.h"
#include "World/Channels.h"

#include "gtest/gtest.h"

#include <chrono>
#include <filesystem>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Ranks of one process that meet by files.
class FileWorld {
public:
  explicit FileWorld(int64_t ranks, double timeoutSeconds, int64_t present = 0)
      : path(std::filesystem::temp_directory_path() /
             ("fsdpwatch-" + std::to_string(getpid()))) {
    for (int64_t rank = 0; rank < (present ? present : ranks); ++rank) {
      std::unique_ptr<Channel> channel;
      Status status = createFileChannel(path, rank, ranks, channel);
      EXPECT_FALSE(status.failed()) << status.message;
      watches.push_back(
          std::make_unique<Watch>(std::move(channel), timeoutSeconds, 0));
    }
  }
  ~FileWorld() {
    watches.clear();
    EXPECT_FALSE(std::filesystem::exists(path + ".run"));
  }

  /// Calls `body` for each rank that is there, on threads of their own.
  template <typename Body>
  std::vector<Status> run(Body body) {
    std::vector<Status> statuses(watches.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < watches.size(); ++rank)
      threads.emplace_back(
          [&, rank] { statuses[rank] = body(*watches[rank]); });
    for (std::thread &thread : threads)
      thread.join();
    return statuses;
  }

private:
  const std::string path;
  std::vector<std::unique_ptr<Watch>> watches;
};

} // namespace

// With no bound for the exchange, there is one for those who do not answer.
TEST(Watch, ARankThatNeverComes) {
  FileWorld world(3, 0.5, 2);
  const Clock::time_point begin = Clock::now();
  std::vector<Status> statuses = world.run([](Watch &watch) {
    std::vector<std::string> all;
    return watch.exchange("the beginning", "", all, 0);
  });
  EXPECT_LT(secondsSince(begin), 8);
  for (const Status &status : statuses)
    EXPECT_EQ(status.message, "timeout: no end of the beginning after 0.5 s: "
                              "ranks 0, 1: not started; rank 2: no answer");
}

TEST(Watch, ARankThatIsMuteAfterItsGreeting) {
  const int64_t port = freePort();
  std::unique_ptr<Channel> channel;
  std::thread zero([&] {
    EXPECT_FALSE(createTcpChannel("127.0.0.1", port, 0, 2, 20, "", {}, channel)
                     .failed());
  });
  RawSocket mute = RawSocket::connectTo(port);
  mute.say("fsdprt01" + words(FSDPRT_ABI_VERSION, 2, 1));
  zero.join();
  Watch watch(std::move(channel), 0.5, 0);
  std::vector<std::string> all;
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(watch.exchange("the beginning", "", all, 0).message,
            "timeout: no end of the beginning after 0.5 s: rank 0: not "
            "started; rank 1: no answer");
  EXPECT_LT(secondsSince(begin), 8);
}

// As long as they answer, ranks may take their time.
TEST(Watch, ARankThatIsSlow) {
  FileWorld world(3, 0.2);
  std::vector<Status> statuses = world.run([](Watch &watch) {
    if (watch.rank() == 1)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    std::vector<std::string> all;
    return watch.exchange("the beginning", "", all, 0);
  });
  for (const Status &status : statuses)
    EXPECT_FALSE(status.failed()) << status.message;
}

// Beyond the size of one message.
TEST(Watch, LargeExchanges) {
  FileWorld world(3, 20);
  auto textOf = [](int64_t rank, size_t size) {
    return std::string(size, static_cast<char>('a' + rank));
  };
  for (size_t size : {0, 1, (4 << 20) - 8, (4 << 20) - 7, 9 << 20}) {
    std::vector<Status> statuses = world.run([&](Watch &watch) -> Status {
      std::vector<std::string> all;
      if (Status status =
              watch.exchange("texts", textOf(watch.rank(), size), all, 20);
          status.failed())
        return status;
      for (int64_t rank = 0; rank < 3; ++rank)
        if (all[rank] != textOf(rank, size))
          return {FSDPRT_RANKS_DISAGREE, "another text"};
      return {};
    });
    for (const Status &status : statuses)
      EXPECT_FALSE(status.failed()) << size << ": " << status.message;
  }
}

TEST(Watch, AnExchangeThatIsTooLarge) {
  FileWorld world(2, 20);
  std::vector<Status> statuses = world.run([](Watch &watch) {
    std::vector<std::string> all;
    return watch.exchange("texts", std::string(watch.rank() << 20, 'x'), all,
                          20);
  });
  for (const Status &status : statuses)
    EXPECT_EQ(status.message, "ranks disagree: texts has 65536 bytes on rank 0 "
                              "and 1048576 on rank 1");
}

// A line each, the first one that differs is named.
TEST(Watch, WhatTheRanksRun) {
  for (auto [texts, message] :
       {std::pair<std::vector<std::string>, std::string>{
            {"a\n--fill=1\n--in=x", "a\n--fill=1\n--in=x",
             "a\n--fill=1\n--in=x"},
            ""},
        {{"a\n--fill=1\n--in=x", "a\n--fill=2\n--in=y", "a\n--fill=1\n--in=x"},
         "ranks disagree on what to run: '--fill=1' on ranks 0, 2, '--fill=2' "
         "on rank 1"},
        {{"a\n--fill=1\n--in=x", "a\n--fill=1", "a\n--fill=1\n--in=x"},
         "ranks disagree on what to run: '--in=x' on ranks 0, 2, '' on rank 1"},
        {{"a\n--fill=1", "b\n--fill=2", "a\n--fill=1"},
         "plan hash differs between ranks: 'a' on ranks 0, 2, 'b' on rank "
         "1"}}) {
    FileWorld world(3, 20);
    const std::vector<std::string> &each = texts;
    std::vector<Status> statuses = world.run(
        [&](Watch &watch) { return watch.start(each[watch.rank()]); });
    for (const Status &status : statuses)
      EXPECT_EQ(status.message, message);
  }
}
