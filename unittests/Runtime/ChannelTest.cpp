//===- ChannelTest.cpp - messages over TCP and files ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Channels.h"

#include "Sockets.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <vector>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {

using Channels = std::vector<std::unique_ptr<Channel>>;

/// A rank that is one end of a channel over the loop.
Status createTcp(int64_t port, int64_t rank, int64_t ranks, double seconds,
                 std::unique_ptr<Channel> &channel,
                 const std::string &secret = {}) {
  return createTcpChannel("127.0.0.1", port, rank, ranks, seconds, secret, {},
                          channel);
}

/// Creates the channel of each rank of `ranks`, at the same time.
std::vector<Status> connectAll(int64_t port, std::vector<int64_t> ranks,
                               int64_t worldRanks, Channels &channels,
                               double seconds = 20) {
  channels.resize(ranks.size());
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      statuses[i] = createTcp(port, ranks[i], worldRanks, seconds, channels[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

/// The next message, from whom; "" after five seconds without one. Everybody
/// else is asked too, because rank 0 passes messages on.
std::string next(Channels &channels, size_t to) {
  for (int i = 0; i < 5000; ++i) {
    int64_t from;
    std::string message;
    if (channels[to]->receive(from, message))
      return std::to_string(from) + ": " + message;
    for (size_t other = 0; other < channels.size(); ++other) {
      if (other == to)
        continue;
      EXPECT_FALSE(channels[other]->receive(from, message));
    }
    usleep(1000);
  }
  return "";
}

} // namespace

TEST(TcpChannel, EverybodyReachesEverybodyInOrder) {
  Channels channels;
  for (const Status &status : connectAll(freePort(), {0, 1, 2}, 3, channels))
    ASSERT_FALSE(status.failed()) << status.message;
  const std::string large(3 << 20, 'x');
  ASSERT_FALSE(channels[1]->send(2, "first").failed());
  ASSERT_FALSE(channels[1]->send(2, "").failed());
  ASSERT_FALSE(channels[1]->send(2, large).failed());
  EXPECT_EQ(next(channels, 2), "1: first");
  EXPECT_EQ(next(channels, 2), "1: ");
  EXPECT_EQ(next(channels, 2), "1: " + large);
  ASSERT_FALSE(channels[0]->send(1, "down").failed());
  EXPECT_EQ(next(channels, 1), "0: down");
  ASSERT_FALSE(channels[2]->send(0, "up").failed());
  EXPECT_EQ(next(channels, 0), "2: up");
}

TEST(TcpChannel, AbsentRanksAreNamed) {
  int64_t port = freePort();
  Channels channels;
  std::vector<Status> statuses = connectAll(port, {0, 2}, 5, channels, 0.5);
  EXPECT_EQ(statuses[0].code, FSDPRT_TIMEOUT);
  EXPECT_EQ(statuses[0].message, "timeout: no word at port " +
                                     std::to_string(port) +
                                     " from ranks 1, 3, 4");
}

TEST(TcpChannel, NobodyListens) {
  int64_t port = freePort();
  Channels channels;
  std::vector<Status> statuses = connectAll(port, {1}, 2, channels, 0.3);
  EXPECT_EQ(statuses[0].code, FSDPRT_TIMEOUT);
  EXPECT_EQ(statuses[0].message,
            "timeout: no rank 0 at 127.0.0.1:" + std::to_string(port) +
                ": Connection refused");
}

TEST(TcpChannel, UnknownHost) {
  std::unique_ptr<Channel> channel;
  Status status =
      createTcpChannel("no-such-host.invalid", 4000, 1, 2, 1, {}, {}, channel);
  EXPECT_EQ(status.code, FSDPRT_INVALID_ARGUMENT);
  EXPECT_NE(status.message.find("cannot find host 'no-such-host.invalid': "),
            std::string::npos)
      << status.message;
}

TEST(TcpChannel, WorldsOfOtherSizesDoNotMix) {
  int64_t port = freePort();
  std::unique_ptr<Channel> zero, one;
  Status zeroStatus;
  std::thread thread([&] { zeroStatus = createTcp(port, 0, 2, 1, zero); });
  Status oneStatus = createTcp(port, 1, 4, 20, one);
  thread.join();
  EXPECT_EQ(oneStatus.message, "rank 0 is of a world of 2 ranks, rank 1 of 4");
  // The right one could still have come.
  EXPECT_NE(zeroStatus.message.find("from rank 1; connection from 127.0.0.1:"),
            std::string::npos)
      << zeroStatus.message;
  EXPECT_NE(
      zeroStatus.message.find(": rank 1 is of a world of 4 ranks, rank 0 of 2"),
      std::string::npos)
      << zeroStatus.message;
}

TEST(TcpChannel, TwoProcessesOfOneRank) {
  Channels channels;
  std::vector<Status> statuses =
      connectAll(freePort(), {0, 1, 1}, 3, channels, 1);
  EXPECT_NE(statuses[0].message.find("from rank 2; connection from 127.0.0.1:"),
            std::string::npos)
      << statuses[0].message;
  // The first one has the place.
  EXPECT_NE(statuses[1].failed(), statuses[2].failed());
  EXPECT_EQ(statuses[1].message + statuses[2].message,
            "two processes are rank 1, expected one");
}

// Somebody scans ports, and somebody else has another program.
TEST(TcpChannel, StrangersAreIgnored) {
  int64_t port = freePort();
  Channels channels;
  std::vector<Status> statuses;
  std::thread world([&] { statuses = connectAll(port, {0}, 2, channels); });
  RawSocket::connectTo(port);
  RawSocket talker = RawSocket::connectTo(port);
  char text[64] = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_TRUE(talker.say(std::string(text, sizeof(text))));
  std::unique_ptr<Channel> one;
  Status status = createTcp(port, 1, 2, 20, one);
  world.join();
  EXPECT_FALSE(status.failed()) << status.message;
  EXPECT_FALSE(statuses[0].failed()) << statuses[0].message;
}

TEST(TcpChannel, AnotherProgramIsNoRankZero) {
  int64_t port = 0;
  RawSocket listener(bindSocket(port));
  ASSERT_TRUE(listener);
  listen(listener.get(), 1);
  std::thread server([&] {
    RawSocket socket(accept(listener.get(), nullptr, nullptr));
    char text[64] = "220 mail.example.com";
    EXPECT_TRUE(socket.say(std::string(text, sizeof(text))));
    while (!socket.hear(1).empty())
      ;
  });
  std::unique_ptr<Channel> one;
  Status status = createTcp(port, 1, 2, 20, one);
  EXPECT_EQ(status.message, "127.0.0.1:" + std::to_string(port) +
                                " is no rank 0 of ours, but another program");
  server.join();
}

TEST(TcpChannel, DeathIsNoticedAndAnOrderlyEndIsNone) {
  Channels channels;
  for (const Status &status : connectAll(freePort(), {0, 1, 2}, 3, channels))
    ASSERT_FALSE(status.failed()) << status.message;
  int64_t from;
  std::string message;
  channels[1]->close();
  channels[1].reset();
  for (int i = 0; i < 50; ++i, usleep(1000))
    channels[0]->receive(from, message);
  EXPECT_FALSE(channels[0]->status().failed());
  // To whom has left nothing can be said, and that is no failure either.
  EXPECT_FALSE(channels[0]->send(1, "still there?").failed());
  channels[2].reset();
  for (int i = 0; i < 5000 && !channels[0]->status().failed();
       ++i, usleep(1000))
    channels[0]->receive(from, message);
  EXPECT_EQ(channels[0]->status().message,
            "rank 2 has gone: its connection is closed");
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

namespace fs = std::filesystem;

/// A folder for the files of one test, and what is in it.
class FileChannelTest : public testing::Test {
protected:
  FileChannelTest()
      : folder(fs::temp_directory_path() /
               ("fsdpchannel-" + std::to_string(getpid()))),
        path(folder / "run") {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~FileChannelTest() override { fs::remove_all(folder); }

  Status create(int64_t rank, std::unique_ptr<Channel> &channel,
                int64_t ranks = 2) const {
    return createFileChannel(path, rank, ranks, channel);
  }

  void write(const std::string &name, const std::string &text) const {
    std::ofstream(folder / name) << text;
  }
  std::string read(const std::string &name) const {
    std::ifstream file(folder / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const fs::path folder;
  const std::string path;
};

} // namespace

TEST_F(FileChannelTest, MessagesAndAPathThatHasBeenUsed) {
  {
    Channels channels(2);
    // In any order.
    for (int64_t rank : {1, 0})
      ASSERT_FALSE(create(rank, channels[rank]).failed());
    EXPECT_FALSE(channels[1]->send(0, "from the first").failed());
    EXPECT_EQ(next(channels, 0), "1: from the first");
    const std::string large(5 << 20, 'x');
    for (const char *text : {"first", "", large.c_str()})
      ASSERT_FALSE(channels[0]->send(1, text).failed());
    for (const std::string &text :
         {std::string("0: first"), std::string("0: "), "0: " + large})
      EXPECT_EQ(next(channels, 1), text);
    std::unique_ptr<Channel> again;
    EXPECT_EQ(create(0, again).message,
              path + ".run: File exists: expected a path that no run has used "
                     "before");
    EXPECT_EQ(create(1, again).message,
              path + ".run/rank.1: File exists: expected one process of each "
                     "rank, and a path that no run has used before");
    ASSERT_FALSE(channels[1]->send(0, "nobody reads this").failed());
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(FileChannelTest, NothingIsLeftWhoeverEndsFirst) {
  for (bool leaves : {false, true})
    for (int64_t first : {0, 1, 2}) {
      Channels channels(3);
      for (int64_t rank = 0; rank < 3; ++rank)
        ASSERT_FALSE(create(rank, channels[rank], 4).failed());
      // Rank 3 never comes.
      for (int64_t from = 0; from < 3; ++from)
        for (int64_t to = 0; to < 4; ++to)
          if (to != from) {
            ASSERT_FALSE(channels[from]->send(to, "unread").failed());
          }
      for (int64_t i = 0; i < 3; ++i) {
        std::unique_ptr<Channel> &channel = channels[(first + i) % 3];
        if (leaves)
          channel->leave(); // the process ends without destructors
        else
          channel.reset();
      }
      EXPECT_TRUE(fs::is_empty(folder));
    }
}

TEST_F(FileChannelTest, NoFolder) {
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(createFileChannel(folder / "none" / "run", 0, 2, channel).message,
            (folder / "none" / "run.run").string() +
                ": No such file or directory");
}

// Whoever can write to the folder around it may have been there before.
TEST_F(FileChannelTest, PlantedLinksAreNotFollowed) {
  std::unique_ptr<Channel> channel;
  write("victim", "precious");
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", path + ".run");
  EXPECT_EQ(create(0, channel).message,
            path + ".run: File exists: expected a path that no run has used "
                   "before");
  EXPECT_EQ(create(1, channel).message,
            path + ".run: expected a folder that rank 0 has made, found a link "
                   "or a file");
  fs::remove(path + ".run");

  Channels channels(2);
  for (int64_t rank = 0; rank < 2; ++rank)
    ASSERT_FALSE(create(rank, channels[rank]).failed());
  fs::create_symlink(folder / "victim", path + ".run/1.0.0.draft");
  EXPECT_EQ(channels[0]->send(1, "message").message,
            path + ".run/1.0.0: File exists");
  fs::create_symlink(folder / "victim", path + ".run/0.1.0");
  int64_t from;
  std::string message;
  EXPECT_FALSE(channels[0]->receive(from, message));
  EXPECT_EQ(channels[0]->status().message, path + ".run/0.1.0: it is a link");
  fs::create_hard_link(folder / "victim", path + ".run/1.0.0");
  EXPECT_FALSE(channels[1]->receive(from, message));
  EXPECT_EQ(channels[1]->status().message,
            path + ".run/1.0.0: it is not what a rank has written");
  EXPECT_EQ(read("victim"), "precious");
}

TEST_F(FileChannelTest, AFolderThatOthersCanWriteToIsRefused) {
  fs::create_directory(path + ".run");
  fs::permissions(path + ".run", fs::perms::all);
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(create(1, channel).message,
            path + ".run: others can write to it, expected a folder that rank "
                   "0 has made");
}

TEST_F(FileChannelTest, AFifoDoesNotHang) {
  Channels channels(2);
  for (int64_t rank = 0; rank < 2; ++rank)
    ASSERT_FALSE(create(rank, channels[rank]).failed());
  ASSERT_EQ(mkfifo((path + ".run/0.1.0").c_str(), 0600), 0);
  int64_t from;
  std::string message;
  EXPECT_FALSE(channels[0]->receive(from, message));
  EXPECT_EQ(channels[0]->status().message,
            path + ".run/0.1.0: it is not what a rank has written");
}
