//===- RendezvousFuzzer.cpp - strangers at the port of rank 0 -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is what strangers do: for each a byte with the number of bytes that
// it sends, and those; the highest bit says that it stays and says no more.
// They come while two ranks find each other, before, between and after them,
// and send what looks like a greeting and frames, because the seeds do.
//
// The first byte says whether the ranks know a secret. Then the strangers
// change nothing: the ranks come together, and each gets what the other sent.
// Without one a stranger may be taken for a rank; then the ranks are told so,
// in time.
//
//===----------------------------------------------------------------------===//

#include "World/Channels.h"

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in atPort(int64_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int64_t freePort() {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = atPort(0);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr *>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

/// A connection that has sent `bytes`, or as many of them as anybody took. By
/// the clock, not by tries: on a busy machine each would take its time.
int stranger(int64_t port, const std::string &bytes) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(200);
  int fd = -1;
  while (fd < 0 && Clock::now() < end) {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = atPort(port);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) ==
        0)
      break;
    close(fd);
    fd = -1;
    usleep(100);
  }
  if (fd >= 0)
    (void)!send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return fd;
}

/// The next message of rank `from`, "" after some seconds or a failure.
std::string next(Channel &channel, int64_t from, int64_t seconds) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  while (Clock::now() < end && !channel.status().failed()) {
    int64_t sender = -1;
    std::string message;
    if (!channel.receive(sender, message)) {
      usleep(100);
      continue;
    }
    if (sender < 0 || sender >= channel.ranks())
      std::abort(); // nobody has this number
    if (sender == from)
      return message;
  }
  return "";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const bool authenticates = data[0] & 1;
  const std::string secret = authenticates ? "one that nobody guesses" : "";
  std::vector<std::pair<std::string, bool>> strangers; // bytes, stays
  for (size_t at = 1; at < size && strangers.size() < 8;) {
    size_t bytes = std::min<size_t>(data[at] & 0x7F, size - at - 1);
    strangers.push_back(
        {std::string(reinterpret_cast<const char *>(data) + at + 1, bytes),
         (data[at] & 0x80) != 0});
    at += 1 + bytes;
  }

  // Ranks that know a secret need not come together on a busy machine within
  // two seconds, at 0.05 s for a greeting; with no other input is time spent.
  const int64_t seconds = authenticates ? 8 : 2;
  TcpLimits limits;
  limits.greetingSeconds = 0.05;
  const int64_t port = freePort();
  std::unique_ptr<Channel> channels[2];
  Status statuses[2];
  auto connect = [&](int64_t rank) {
    statuses[rank] = createTcpChannel("127.0.0.1", port, rank, 2, seconds,
                                      secret, {}, channels[rank], limits);
  };
  std::thread zero([&] { connect(0); });
  std::vector<int> staying;
  auto comes = [&](size_t i) {
    int fd = stranger(port, strangers[i].first);
    if (fd >= 0 && strangers[i].second)
      staying.push_back(fd);
    else if (fd >= 0)
      close(fd);
  };
  for (size_t i = 0; i < strangers.size(); i += 2)
    comes(i);
  std::thread one([&] { connect(1); });
  for (size_t i = 1; i < strangers.size(); i += 2)
    comes(i);
  zero.join();
  one.join();
  bool together = true;
  for (int rank : {0, 1}) {
    if (statuses[rank].failed() && statuses[rank].message.empty())
      std::abort(); // failed without a word
    together &= !statuses[rank].failed();
  }
  if (together) {
    (void)channels[0]->send(1, "to one");
    (void)channels[1]->send(0, "to zero");
    together = next(*channels[0], 1, seconds) == "to zero" &&
               next(*channels[1], 0, seconds) == "to one";
  }
  if (authenticates && !together) {
    for (int rank : {0, 1})
      std::fprintf(stderr, "rank %d: %s\n", rank,
                   statuses[rank].message.c_str());
    std::abort(); // strangers have kept ranks apart
  }
  // Rank 0 waits for what the other has to say at its end.
  std::thread closing([&] {
    if (channels[1])
      channels[1]->close();
    channels[1].reset();
  });
  if (channels[0])
    channels[0]->close();
  closing.join();
  channels[0].reset();
  for (int fd : staying)
    close(fd);
  return 0;
}
