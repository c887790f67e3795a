//===- StrangersTest.cpp - who else can reach the port --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Real sockets that say what no rank says, or nothing, or too much. Whatever
// they do they are closed and named, and the ranks find each other.
//
//===----------------------------------------------------------------------===//

#include "Sockets.h"
#include "World/Channels.h"
#include "World/TcpGreeting.h"
#include "World/Watch.h"

#include "gtest/gtest.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t most = std::numeric_limits<int64_t>::max();

std::string greeting(int64_t ranks, int64_t rank,
                     int64_t version = FSDPRT_ABI_VERSION) {
  return "fsdprt01" + words(version, ranks, rank);
}

/// A world over the loop, whose ranks are threads of this test.
class TcpWorld {
public:
  explicit TcpWorld(int64_t ranks, std::string secret = {},
                    TcpLimits limits = {60, 1024, 1000}, double seconds = 20)
      : ranks(ranks), secret(std::move(secret)), limits(limits),
        seconds(seconds), channels(ranks), statuses(ranks) {
    start(0);
  }
  ~TcpWorld() { join(); }

  /// Starts a rank other than 0, which the world has from its begin.
  void start(int64_t rank) {
    threads.emplace_back([this, rank] {
      statuses[rank] = createTcpChannel(
          "127.0.0.1", port, rank, ranks, seconds, secret,
          [this](const std::string &line) { lines += line + "\n"; },
          channels[rank], limits);
    });
  }

  void join() {
    for (std::thread &thread : threads)
      thread.join();
    threads.clear();
  }

  /// Starts the ranks from `first` on; all find each other.
  void expectStart(int64_t first = 1) {
    for (int64_t rank = first; rank < ranks; ++rank)
      start(rank);
    join();
    for (int64_t rank = 0; rank < ranks; ++rank)
      ASSERT_FALSE(statuses[rank].failed()) << statuses[rank].message;
  }

  RawSocket connect() const { return RawSocket::connectTo(port); }

  /// A stranger that has the place of a rank.
  RawSocket connectAs(int64_t rank) const {
    RawSocket socket = connect();
    EXPECT_TRUE(socket.say(greeting(ranks, rank)));
    EXPECT_EQ(socket.hear(32), greeting(ranks, 0));
    return socket;
  }

  /// Whether a line about a connection has these words; after join().
  bool hasLine(const std::string &words) const {
    return lines.find("closed the connection from 127.0.0.1:") !=
               std::string::npos &&
           lines.find(words) != std::string::npos;
  }

  const int64_t port = freePort();
  const int64_t ranks;
  const std::string secret;
  const TcpLimits limits;
  const double seconds;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<Status> statuses;
  std::string lines; ///< rank 0's log

private:
  std::vector<std::thread> threads;
};

struct BadGreeting {
  const char *name;
  std::string bytes;
  std::string said; ///< in the log
};

void PrintTo(const BadGreeting &bad, std::ostream *out) { *out << bad.name; }

class BadGreetings : public testing::TestWithParam<BadGreeting> {};

} // namespace

//===----------------------------------------------------------------------===//
// Before all ranks are there
//===----------------------------------------------------------------------===//

TEST_P(BadGreetings, IsClosedAndNamedAndTheRunGoesOn) {
  TcpWorld world(4);
  RawSocket stranger = world.connect();
  ASSERT_TRUE(stranger.say(GetParam().bytes));
  while (!stranger.hear(1).empty()) // perhaps an answer, then the end
    ;
  world.expectStart();
  EXPECT_TRUE(world.hasLine(GetParam().said)) << world.lines;
}

INSTANTIATE_TEST_SUITE_P(
    Tcp, BadGreetings,
    testing::Values(
        BadGreeting{"Magic", "fsdprt02" + words(FSDPRT_ABI_VERSION, 4, 1),
                    "it does not begin as a rank does"},
        BadGreeting{"Bytes", std::string(32, '\xff'),
                    "it does not begin as a rank does"},
        BadGreeting{"Http", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "it does not begin as a rank does"},
        BadGreeting{"Version", greeting(4, 1, FSDPRT_ABI_VERSION + 7),
                    "rank 1 has ABI version " +
                        std::to_string(FSDPRT_ABI_VERSION + 7) +
                        ", rank 0 has "},
        BadGreeting{"World", greeting(5, 1),
                    "rank 1 is of a world of 5 ranks, rank 0 of 4"},
        BadGreeting{"LargeWorld", greeting(most, 1),
                    "rank 1 is of a world of 9223372036854775807 ranks"},
        BadGreeting{"Billion", greeting(4, 1000000000),
                    "it says that it is rank 1000000000, expected 1 to 3"},
        BadGreeting{"FourOfFour", greeting(4, 4),
                    "it says that it is rank 4, expected 1 to 3"},
        BadGreeting{"Zero", greeting(4, 0),
                    "it says that it is rank 0, expected 1 to 3"},
        BadGreeting{"Negative", greeting(4, -1),
                    "it says that it is rank -1, expected 1 to 3"},
        BadGreeting{"Least", greeting(4, least),
                    "it says that it is rank -9223372036854775808"},
        BadGreeting{"Most", greeting(4, most),
                    "it says that it is rank 9223372036854775807"},
        BadGreeting{"Secret", "fsdprts1" + std::string(32, 'n'),
                    "it has a secret, rank 0 has none"}),
    [](const auto &info) { return info.param.name; });

TEST(Strangers, SilentOnesDoNotKeepTheRanksWaiting) {
  TcpWorld world(3);
  std::vector<RawSocket> silent;
  for (int i = 0; i < 6; ++i)
    silent.push_back(world.connect());
  silent[1].say("fsdp"); // half a greeting
  auto begin = std::chrono::steady_clock::now();
  world.expectStart();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(10)); // and not six times a minute
  EXPECT_TRUE(world.hasLine("all ranks are here without it")) << world.lines;
}

TEST(Strangers, SilenceEnds) {
  TcpWorld world(2, "", {0.2, 1024, 1000});
  RawSocket silent = world.connect();
  EXPECT_TRUE(silent.isClosed());
  world.expectStart();
  EXPECT_TRUE(world.hasLine("it has not said who it is within 0.2 s"))
      << world.lines;
}

// The time is for the greeting as a whole.
TEST(Strangers, SlowBytesAreNoBetterThanSilence) {
  TcpWorld world(2, "", {0.3, 1024, 1000});
  RawSocket slow = world.connect();
  std::string bytes = greeting(2, 1);
  size_t sent = 0;
  while (sent < bytes.size() && slow.say(bytes.substr(sent, 1))) {
    ++sent;
    usleep(50000);
  }
  EXPECT_LT(sent, bytes.size());
  world.expectStart();
  EXPECT_TRUE(world.hasLine("it has not said who it is within 0.3 s"))
      << world.lines;
}

TEST(Strangers, MoreThanAreServedAtATime) {
  TcpWorld world(3, "", {60, 4, 3});
  std::vector<RawSocket> silent;
  for (int i = 0; i < 12; ++i)
    silent.push_back(world.connect());
  world.expectStart();
  EXPECT_TRUE(world.hasLine("others wait, and it is silent")) << world.lines;
  // The log does not grow with them.
  EXPECT_EQ(std::count(world.lines.begin(), world.lines.end(), '\n'), 3);
  EXPECT_TRUE(world.hasLine("; others will not be named")) << world.lines;
}

TEST(Strangers, APlaceIsFreeAgainWhenItsRankHasGone) {
  TcpWorld world(3);
  world.connectAs(1);
  {
    // It says that it is somebody else.
    RawSocket stranger = world.connectAs(2);
    stranger.say(words(0, 1000000000, 0));
    EXPECT_TRUE(stranger.isClosed());
  }
  usleep(500000);
  world.expectStart();
  EXPECT_TRUE(world.hasLine("rank 1: it has gone before all ranks were here"))
      << world.lines;
  EXPECT_TRUE(world.hasLine("rank 2: it sends a message of 0 bytes from rank "
                            "1000000000 to rank 0, which is none of its own"))
      << world.lines;
}

TEST(Strangers, ASecondProcessOfARankIsToldSo) {
  TcpWorld world(3);
  RawSocket first = world.connectAs(1), second = world.connect();
  EXPECT_TRUE(second.say(greeting(3, 1)));
  EXPECT_EQ(second.hear(32), greeting(3, -1));
  EXPECT_TRUE(second.isClosed());
  world.expectStart(2);
  EXPECT_TRUE(world.hasLine("two processes are rank 1, expected one"))
      << world.lines;
}

//===----------------------------------------------------------------------===//
// The secret
//===----------------------------------------------------------------------===//

TEST(Secret, RanksThatKnowItMeet) {
  TcpWorld world(3, "correct horse");
  world.expectStart();
  EXPECT_EQ(world.lines, "");
  ASSERT_FALSE(world.channels[1]->send(0, "hello").failed());
  int64_t from;
  std::string message;
  while (!world.channels[0]->receive(from, message))
    usleep(1000);
  EXPECT_EQ(message, "hello");
}

TEST(Secret, OneThatHasNoneIsToldSo) {
  TcpWorld world(2, "correct horse");
  std::unique_ptr<Channel> channel;
  const std::string place = "127.0.0.1:" + std::to_string(world.port);
  EXPECT_EQ(createTcpChannel("127.0.0.1", world.port, 1, 2, 20, "", {}, channel)
                .message,
            "rank 0 at " + place +
                " asks for the secret of the run, this rank has none: expected "
                "FSDPRT_SECRET or FSDPRT_SECRET_FILE on all ranks");
  EXPECT_EQ(
      createTcpChannel("127.0.0.1", world.port, 1, 2, 20, "other", {}, channel)
          .message,
      "rank 0 at " + place + " has another secret than this rank");
  world.expectStart();
  EXPECT_TRUE(world.hasLine("it has no secret, rank 0 has one"));
  EXPECT_TRUE(world.hasLine("it does not know the secret"));
}

TEST(Secret, RankZeroThatHasNoneSaysSo) {
  TcpWorld world(2);
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(
      createTcpChannel("127.0.0.1", world.port, 1, 2, 20, "mine", {}, channel)
          .message,
      "rank 0 at 127.0.0.1:" + std::to_string(world.port) +
          " has no secret, this rank has one: expected FSDPRT_SECRET or "
          "FSDPRT_SECRET_FILE on all ranks");
  world.expectStart();
}

// A proof is worth nothing on another connection, nor the one of rank 0 when it
// is sent back.
TEST(Secret, ProofsAreNotUsedAgain) {
  TcpWorld world(2, "correct horse");
  const std::string nonce(32, 'n');
  std::string proof;
  for (int i = 0; i < 2; ++i) {
    RawSocket stranger = world.connect();
    ASSERT_TRUE(stranger.say("fsdprts1" + nonce));
    EXPECT_EQ(stranger.hear(8), "fsdprts1");
    std::string theirs = stranger.hear(32);
    EXPECT_EQ(theirs.size(), 32u);
    // Without the secret there is nothing better to say.
    ASSERT_TRUE(stranger.say(proof.empty() ? theirs : proof));
    EXPECT_EQ(stranger.hear(32), std::string(32, '\0'));
    EXPECT_TRUE(stranger.isClosed());
    proof = theirs;
  }
  world.expectStart();
  EXPECT_TRUE(world.hasLine("it does not know the secret")) << world.lines;
}

// Somebody listens at the port who does not know it either.
TEST(Secret, AnImpostorIsNoRankZero) {
  int64_t port = 0;
  RawSocket listener(bindSocket(port));
  ASSERT_TRUE(listener);
  listen(listener.get(), 1);
  std::thread impostor([&] {
    RawSocket socket(accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(socket.hear(40).size(), 40u);
    socket.say("fsdprts1" + std::string(32, 'n'));
    socket.say(socket.hear(32)); // its own proof
    EXPECT_TRUE(socket.isClosed());
  });
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(createTcpChannel("127.0.0.1", port, 1, 2, 20, "correct horse", {},
                             channel)
                .message,
            "127.0.0.1:" + std::to_string(port) +
                " is no rank 0 of ours: it does not know the secret");
  impostor.join();
}

// Rank 0 closes a connection that takes too long; the rank at its other end may
// have the right secret all the same.
TEST(Secret, AClosedConnectionIsNoOtherSecret) {
  int64_t port = 0;
  RawSocket listener(bindSocket(port));
  ASSERT_TRUE(listener);
  int on = 1; // rank 0 comes to this port later
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  listen(listener.get(), 1);
  Status status;
  std::unique_ptr<Channel> one, zero;
  std::thread rank([&] {
    status =
        createTcpChannel("127.0.0.1", port, 1, 2, 20, "correct horse", {}, one);
  });
  {
    RawSocket socket(accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(socket.hear(40).size(), 40u);
    socket.say("fsdprts1" + std::string(32, 'n'));
    EXPECT_EQ(socket.hear(32).size(), 32u);
    listener = RawSocket();
  }
  EXPECT_EQ(
      createTcpChannel("127.0.0.1", port, 0, 2, 20, "correct horse", {}, zero)
          .message,
      "");
  rank.join();
  EXPECT_EQ(status.message, "");
}

TEST(Secret, ComesFromTheEnvironmentOrAFile) {
  const std::string file = std::filesystem::temp_directory_path() /
                           ("fsdpsecret-" + std::to_string(getpid()));
  std::string secret = "old";
  auto set = [](const char *text, const char *file) {
    text ? setenv("FSDPRT_SECRET", text, 1) : unsetenv("FSDPRT_SECRET");
    file ? setenv("FSDPRT_SECRET_FILE", file, 1)
         : unsetenv("FSDPRT_SECRET_FILE");
  };
  auto message = [&] { return findSecret(secret).message; };
  set(nullptr, nullptr);
  EXPECT_EQ(message(), "");
  EXPECT_EQ(secret, "");
  set("from a variable", nullptr);
  EXPECT_EQ(message(), "");
  EXPECT_EQ(secret, "from a variable");
  set("", nullptr);
  EXPECT_EQ(message(), "FSDPRT_SECRET is empty, expected a secret");

  std::ofstream(file) << "from a file\n";
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  set(nullptr, file.c_str());
  EXPECT_EQ(message(), "");
  EXPECT_EQ(secret, "from a file");
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  EXPECT_EQ(message(), "FSDPRT_SECRET_FILE: " + file +
                           ": others may read or write it, expected mode 0600");
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  std::ofstream(file) << "\n";
  EXPECT_EQ(message(),
            "FSDPRT_SECRET_FILE: " + file + ": it is empty, expected a secret");
  std::ofstream(file) << std::string(5000, 'x');
  EXPECT_EQ(message(),
            "FSDPRT_SECRET_FILE: " + file + ": expected at most 4096 bytes");
  set(nullptr, "/dev/zero");
  EXPECT_EQ(message(), "FSDPRT_SECRET_FILE: /dev/zero: expected a file");
  std::filesystem::remove(file);
  set(nullptr, file.c_str());
  EXPECT_EQ(message(),
            "FSDPRT_SECRET_FILE: " + file + ": No such file or directory");
  set("both", file.c_str());
  EXPECT_EQ(message(), "FSDPRT_SECRET and FSDPRT_SECRET_FILE are set, expected "
                       "at most one of them");
  set(nullptr, nullptr);
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

namespace {

struct BadFrame {
  int64_t to, from, bytes;
};

class BadFrames : public testing::TestWithParam<BadFrame> {};

} // namespace

TEST_P(BadFrames, EndTheirConnection) {
  TcpWorld world(3);
  RawSocket stranger = world.connectAs(1);
  world.expectStart(2);
  auto [to, from, bytes] = GetParam();
  // A good one before.
  ASSERT_TRUE(stranger.say(words(0, 1, 2) + "ok" + words(to, from, bytes)));
  int64_t sender;
  std::string message;
  std::vector<std::string> got;
  for (int i = 0; i < 5000 && !world.channels[0]->status().failed();
       ++i, usleep(1000))
    while (world.channels[0]->receive(sender, message))
      got.push_back(message);
  EXPECT_EQ(world.channels[0]->status().message,
            "rank 1 has gone: it sends a message of " + std::to_string(bytes) +
                " bytes from rank " + std::to_string(from) + " to rank " +
                std::to_string(to) + ", which is none of its own");
  EXPECT_EQ(got, std::vector<std::string>{"ok"});
  EXPECT_TRUE(stranger.isClosed());
  // Nothing of it has reached the others.
  EXPECT_FALSE(world.channels[2]->receive(sender, message));
  EXPECT_FALSE(world.channels[2]->status().failed());
}

INSTANTIATE_TEST_SUITE_P(
    Tcp, BadFrames,
    testing::Values(
        BadFrame{0, 1000000000, 5}, BadFrame{0, -1, 5}, BadFrame{0, 3, 5},
        BadFrame{0, 0, 5}, BadFrame{0, 2, 5}, BadFrame{2, 0, 5},
        BadFrame{0, least, 5}, BadFrame{1000000000, 1, 5}, BadFrame{3, 1, 5},
        BadFrame{-1, 1, 5}, BadFrame{1, 1, 5}, BadFrame{most, 1, 5},
        BadFrame{0, 1, -2}, BadFrame{0, 1, least}, BadFrame{0, 1, most},
        BadFrame{2, 1, most}, BadFrame{0, 1, int64_t(1) << 30},
        BadFrame{0, 1, (int64_t(8) << 20) + 1}, BadFrame{0, 2, -1}));

// Somebody else is rank 0, and speaks to a rank.
TEST(Strangers, RankZeroIsCheckedToo) {
  for (BadFrame frame :
       {BadFrame{2, 0, 1}, BadFrame{1, 1, 1}, BadFrame{1, 3, 1},
        BadFrame{1, -1, 1}, BadFrame{1, 2, -1}}) {
    int64_t port = 0;
    RawSocket listener(bindSocket(port));
    ASSERT_TRUE(listener);
    listen(listener.get(), 1);
    std::thread zero([&] {
      RawSocket socket(accept(listener.get(), nullptr, nullptr));
      EXPECT_EQ(socket.hear(32), greeting(3, 1));
      socket.say(greeting(3, 0) + words(frame.to, frame.from, frame.bytes));
      EXPECT_TRUE(socket.isClosed());
    });
    std::unique_ptr<Channel> channel;
    Status status =
        createTcpChannel("127.0.0.1", port, 1, 3, 20, "", {}, channel);
    ASSERT_FALSE(status.failed()) << status.message;
    int64_t from;
    std::string message;
    for (int i = 0; i < 5000 && !channel->status().failed(); ++i, usleep(1000))
      EXPECT_FALSE(channel->receive(from, message));
    EXPECT_NE(channel->status().message.find("rank 0 has gone: it sends a "),
              std::string::npos)
        << channel->status().message;
    zero.join();
  }
}

//===----------------------------------------------------------------------===//
// Without end
//===----------------------------------------------------------------------===//

namespace {

/// How much a stranger in the place of rank 1 gets rid of before rank 0, which
/// is busy with other things, takes no more: nothing for half a second.
size_t flood(const std::string &bytes, std::string *answer = nullptr) {
  TcpWorld world(2);
  RawSocket stranger = world.connectAs(1);
  world.join();
  EXPECT_FALSE(world.statuses[0].failed()) << world.statuses[0].message;
  Watch watch(std::move(world.channels[0]), 60);
  size_t sent = 0, at = 0;
  for (int idle = 0; idle < 50 && sent < size_t(1) << 30;) {
    ssize_t more = stranger.sayNow(bytes.substr(at));
    if (more < 0)
      break;
    sent += more;
    at = (at + more) % bytes.size();
    idle = more == 0 ? idle + 1 : 0;
    if (more == 0)
      usleep(10000);
  }
  if (answer)
    *answer = watch.status().message;
  return sent;
}

/// `count` messages of rank 1 to rank 0.
std::string repeated(const std::string &message, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += words(0, 1, message.size()) + message;
  return all;
}

constexpr size_t mebibyte = 1 << 20;

} // namespace

TEST(Strangers, DataWithoutEndIsNotTaken) {
  EXPECT_LT(flood(repeated("D1234" + std::string(mebibyte, 'x'), 1)),
            128 * mebibyte);
}

TEST(Strangers, SmallMessagesWithoutEndAreNotTaken) {
  EXPECT_LT(flood(repeated("D1234", 10000)), 128 * mebibyte);
}

TEST(Strangers, QuestionsWithoutEndAreNotAnswered) {
  EXPECT_LT(flood(repeated("Q1234", 10000)), 128 * mebibyte);
}

// What means nothing costs nothing, and answers that nobody asked for neither;
// but a failure of rank 1 is one of the world, whatever its number.
TEST(Strangers, MessagesThatMeanNothing) {
  std::string status;
  flood(repeated("", 1) + repeated("A", 1) + repeated("Z1234", 1) +
            repeated(std::string("F\0\0\0\0", 5) + "I have failed", 1) +
            words(0, 1, mebibyte) + std::string(64 * mebibyte, 'A'),
        &status);
  EXPECT_EQ(status, "I have failed");
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

TEST(Addresses, NoOtherThanTheNamedOneListens) {
  TcpWorld world(2);
  RawSocket named = world.connect();
  EXPECT_TRUE(named);
  sockaddr_in other = loopAddress(world.port, 2);
  RawSocket socket(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr *>(&other),
                    sizeof(other)),
            -1);
  world.expectStart();
}

TEST(Addresses, APortInUse) {
  int64_t port = 0;
  RawSocket listener(bindSocket(port));
  ASSERT_TRUE(listener);
  listen(listener.get(), 1);
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(
      createTcpChannel("127.0.0.1", port, 0, 2, 20, "", {}, channel).message,
      "cannot listen at 127.0.0.1:" + std::to_string(port) +
          ": Address already in use");
  // A name of several addresses, one of which is free.
  Status status =
      createTcpChannel("localhost", port, 0, 2, 20, "", {}, channel);
  EXPECT_EQ(status.message.find(
                "cannot listen at localhost:" + std::to_string(port) + ": "),
            0u)
      << status.message;
  EXPECT_NE(status.message.find("Address already in use"), std::string::npos)
      << status.message;
}

// Of the ports that clients are given, a rank that comes before rank 0 may get
// the very one that it connects to. It goes on waiting.
TEST(Addresses, ARankIsNoRankZeroForItself) {
  for (const char *secret : {"", "correct horse"}) {
    int64_t port = 0;
    Socket self(bindSocket(port));
    ASSERT_TRUE(self);
    sockaddr_in address = loopAddress(port);
    ASSERT_EQ(connect(self.get(), reinterpret_cast<sockaddr *>(&address),
                      sizeof(address)),
              0);
    Greeting greeting;
    greeting.ranks = 2;
    greeting.rank = 1;
    std::string why;
    EXPECT_EQ(
        greetRankZero(self, "there", secret, greeting, deadlineAfter(20), why)
            .message,
        "");
    EXPECT_EQ(why, "nobody listens");
  }
}

TEST(Addresses, OneOfAnotherMachine) {
  std::unique_ptr<Channel> channel;
  EXPECT_EQ(
      createTcpChannel("192.0.2.1", 4000, 0, 2, 20, "", {}, channel).message,
      "cannot listen at 192.0.2.1:4000: Cannot assign requested address");
}

TEST(Addresses, Version6) {
  Socket probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loop = {};
  loop.sin6_family = AF_INET6;
  loop.sin6_addr = in6addr_loopback;
  if (bind(probe.get(), reinterpret_cast<sockaddr *>(&loop), sizeof(loop)))
    GTEST_SKIP() << "this machine has no IPv6";
  int64_t port = freePort();
  std::unique_ptr<Channel> zero, one;
  Status zeroStatus, oneStatus;
  std::thread thread([&] {
    zeroStatus = createTcpChannel("::1", port, 0, 2, 20, "", {}, zero);
  });
  oneStatus = createTcpChannel("::1", port, 1, 2, 20, "", {}, one);
  thread.join();
  EXPECT_FALSE(zeroStatus.failed()) << zeroStatus.message;
  EXPECT_FALSE(oneStatus.failed()) << oneStatus.message;
}

TEST(Addresses, Places) {
  auto parse = [](const std::string &place) {
    std::string host;
    int64_t port = 0;
    return parsePlace(place, host, port) ? host + " " + std::to_string(port)
                                         : "none";
  };
  EXPECT_EQ(parse("host:1"), "host 1");
  EXPECT_EQ(parse("10.0.0.1:65535"), "10.0.0.1 65535");
  EXPECT_EQ(parse("[::1]:4000"), "::1 4000");
  EXPECT_EQ(parse("[fe80::1%eth0]:4000"), "fe80::1%eth0 4000");
  for (const char *place :
       {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:-1",
        "host:+1", "host: 1", "host:1 ", "host:0x10",
        "host:99999999999999999999", "::1:4000", "[]:1", "[::1]",
        "[::1]:", "[::1:4000", "::1]:4000"})
    EXPECT_EQ(parse(place), "none") << place;
}
