//===- ChannelTest.cpp - messages over TCP and files ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/Channels.h"

#include "gtest/gtest.h"

#include <arpa/inet.h>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

namespace {

/// A port of the loop that nobody uses.
int64_t freePort() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr *>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

/// A connection to the port, once somebody listens there.
int connectTo(int64_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  for (int i = 0; i < 1000; ++i) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) ==
        0)
      return fd;
    close(fd);
    usleep(10000);
  }
  return -1;
}

using Channels = std::vector<std::unique_ptr<Channel>>;

/// Creates the channel of each rank of `ranks`, at the same time.
std::vector<Status> connectAll(int64_t port, std::vector<int64_t> ranks,
                               int64_t worldRanks, Channels &channels,
                               double seconds = 20) {
  channels.resize(ranks.size());
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      statuses[i] = createTcpChannel("127.0.0.1", port, ranks[i], worldRanks,
                                     seconds, channels[i]);
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
      createTcpChannel("no-such-host.invalid", 4000, 1, 2, 1, channel);
  EXPECT_EQ(status.code, FSDPRT_INVALID_ARGUMENT);
  EXPECT_NE(status.message.find("cannot find host 'no-such-host.invalid': "),
            std::string::npos)
      << status.message;
}

TEST(TcpChannel, WorldsOfOtherSizesDoNotMix) {
  int64_t port = freePort();
  std::unique_ptr<Channel> zero, one;
  Status zeroStatus;
  std::thread thread([&] {
    zeroStatus = createTcpChannel("127.0.0.1", port, 0, 2, 20, zero);
  });
  Status oneStatus = createTcpChannel("127.0.0.1", port, 1, 4, 20, one);
  thread.join();
  EXPECT_EQ(zeroStatus.message, "rank 1 is of a world of 4 ranks, rank 0 of 2");
  EXPECT_EQ(oneStatus.message, "rank 0 is of a world of 2 ranks, rank 1 of 4");
}

TEST(TcpChannel, TwoProcessesOfOneRank) {
  Channels channels;
  std::vector<Status> statuses =
      connectAll(freePort(), {0, 1, 1}, 3, channels, 2);
  EXPECT_EQ(statuses[0].message, "two processes are rank 1, expected one");
}

// Somebody scans ports, and somebody else has another program.
TEST(TcpChannel, StrangersAreIgnored) {
  int64_t port = freePort();
  Channels channels;
  std::vector<Status> statuses;
  std::thread world([&] { statuses = connectAll(port, {0}, 2, channels); });
  int mute = connectTo(port);
  close(mute);
  int talker = connectTo(port);
  char text[64] = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(send(talker, text, sizeof(text), MSG_NOSIGNAL),
            ssize_t(sizeof(text)));
  std::unique_ptr<Channel> one;
  Status status = createTcpChannel("127.0.0.1", port, 1, 2, 20, one);
  world.join();
  EXPECT_FALSE(status.failed()) << status.message;
  EXPECT_FALSE(statuses[0].failed()) << statuses[0].message;
  close(talker);
}

TEST(TcpChannel, AnotherProgramIsNoRankZero) {
  int64_t port = freePort();
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(
      bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
      0);
  listen(listener, 1);
  std::thread server([&] {
    int fd = accept(listener, nullptr, nullptr);
    char text[64] = "220 mail.example.com";
    EXPECT_EQ(send(fd, text, sizeof(text), MSG_NOSIGNAL),
              ssize_t(sizeof(text)));
    while (recv(fd, text, sizeof(text), 0) > 0)
      ;
    close(fd);
  });
  std::unique_ptr<Channel> one;
  Status status = createTcpChannel("127.0.0.1", port, 1, 2, 20, one);
  EXPECT_EQ(status.message, "127.0.0.1:" + std::to_string(port) +
                                " is no rank 0 of ours, but another program");
  server.join();
  close(listener);
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

TEST(FileChannel, MessagesAndAPathThatHasBeenUsed) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 ("fsdpchannel-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "run";
  {
    Channels channels(2);
    for (int64_t rank = 0; rank < 2; ++rank)
      ASSERT_FALSE(createFileChannel(path, rank, 2, channels[rank]).failed());
    for (const char *text : {"first", "", "third"})
      ASSERT_FALSE(channels[0]->send(1, text).failed());
    for (const char *text : {"0: first", "0: ", "0: third"})
      EXPECT_EQ(next(channels, 1), text);
    std::unique_ptr<Channel> again;
    EXPECT_EQ(createFileChannel(path, 0, 2, again).message,
              path + ".run: File exists: expected a path that no run has used "
                     "before");
    ASSERT_FALSE(channels[1]->send(0, "nobody reads this").failed());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder) ||
              std::filesystem::exists(path + ".0.1.0"));
  std::filesystem::remove_all(folder);

  std::unique_ptr<Channel> channel;
  EXPECT_EQ(createFileChannel(path, 0, 2, channel).message,
            path + ".run: No such file or directory");
}
