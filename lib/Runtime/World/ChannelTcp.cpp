//===- ChannelTcp.cpp - small messages over TCP ---------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A star: rank 0 is connected with all others and passes on what is not for
// itself. A connection begins with greetings (TcpGreeting.h). Then come frames,
// each with its receiver, its sender and its size. A last frame, the goodbye,
// tells the end of a rank from its death.
//
// Whatever comes from outside is checked against what the connection is: the
// sender of a frame is the rank at its other end, the receiver a rank, the size
// one of ours. And it is bounded: of a rank that sends more than is read, or
// does not read what it has asked for, nothing more is read.
//
//===----------------------------------------------------------------------===//

#include "World/Channels.h"

#include "World/Activity.h"
#include "World/TcpGreeting.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

using namespace fsdprt;

namespace {

struct Frame {
  int64_t to, from, bytes; ///< bytes -1: goodbye
};

/// Watch sends parts of 4 MiB. What is larger is no message of ours.
constexpr int64_t largestFrame = int64_t(8) << 20;

/// Of what a peer has not read yet, before it has to. The run's own messages
/// are sent all the same; its memory is its own affair.
constexpr size_t largestBacklog = size_t(16) << 20;

/// Of what one call reads of a peer, so that none keeps it from the others.
constexpr size_t largestRead = size_t(1) << 20;

/// The other end of a connection, and what is on its way.
struct Peer {
  Socket socket;
  std::string in, out;
  size_t sent = 0;   ///< bytes of `out`
  bool left = false; ///< has said goodbye, or is lost
  bool held = false;

  size_t backlog() const { return out.size() - sent; }
};

class TcpChannel final : public Channel {
public:
  TcpChannel(int64_t rank, int64_t ranks, const std::string &secret,
             const Log &log, const TcpLimits &limits)
      : myRank(rank), worldRanks(ranks), secret(secret),
        log(log ? log : [](const std::string &) {}), limits(limits),
        peers(rank == 0 ? ranks : 1) {}

  Status listen(const std::string &host, int64_t port,
                Clock::time_point deadline);
  Status connect(const std::string &host, int64_t port,
                 Clock::time_point deadline);

  int64_t rank() const override { return myRank; }
  int64_t ranks() const override { return worldRanks; }
  Status send(int64_t to, const std::string &message) override;
  bool receive(int64_t &from, std::string &message) override;
  void hold(int64_t from, bool held) override {
    std::lock_guard<std::mutex> lock(mutex);
    peerFor(from).held = held;
  }
  Status status() override {
    std::lock_guard<std::mutex> lock(mutex);
    return lost;
  }
  void close() override;

private:
  // The rendezvous of rank 0.
  Status acceptAll(const Socket &listener, std::deque<Caller> &callers);
  void serve(std::deque<Caller> &callers, const std::vector<short> &events);
  void welcome(Caller &caller, const Greeting &greeting);
  void refuse(const std::string &name, const std::string &why);
  void checkPeers();

  // Frames.
  Peer &peerFor(int64_t to) { return peers[myRank == 0 ? to : 0]; }
  int64_t rankOf(const Peer &peer) const {
    return myRank == 0 ? &peer - peers.data() : 0;
  }
  std::string checkFrame(const Frame &frame, const Peer &peer) const;
  void enqueue(Peer &peer, const Frame &frame, const char *data);
  void write(Peer &peer);
  void read(Peer &peer);
  void takeFrames(Peer &peer);
  void lose(Peer &peer, const std::string &why);

  const int64_t myRank, worldRanks;
  const std::string secret;
  const Log log;
  const TcpLimits limits;
  int64_t refused = 0;     ///< connections that were closed
  std::string lastRefusal; ///< which one, and why

  std::mutex mutex;
  std::vector<Peer> peers; ///< by rank on rank 0, else rank 0 alone
  std::deque<std::pair<int64_t, std::string>> inbox;
  Status lost;
};

//===----------------------------------------------------------------------===//
// Rendezvous
//===----------------------------------------------------------------------===//

void TcpChannel::refuse(const std::string &name, const std::string &why) {
  lastRefusal = "connection from " + name + ": " + why;
  if (++refused > static_cast<int64_t>(limits.lines))
    return;
  log("closed the " + lastRefusal +
      (refused == static_cast<int64_t>(limits.lines)
           ? "; others will not be named"
           : ""));
}

Status TcpChannel::acceptAll(const Socket &listener,
                             std::deque<Caller> &callers) {
  // As many as fit; the others wait in the queue of the system.
  for (size_t i = 0; i < limits.callers; ++i) {
    int error = 0;
    Socket socket = acceptFrom(listener, error);
    if (!socket && error == 0)
      return {};
    // A rank speaks at once, so whoever has been silent for longest goes.
    if (!socket || callers.size() >= limits.callers) {
      if (callers.empty())
        return {FSDPRT_INVALID_ARGUMENT,
                std::string("cannot accept a connection: ") +
                    std::strerror(error)};
      refuse(callers.front().name(), "others wait, and it is silent");
      callers.pop_front();
    }
    if (socket)
      callers.emplace_back(std::move(socket), secret,
                           deadlineAfter(limits.greetingSeconds));
  }
  return {};
}

/// Makes a caller the rank that it is, or tells it why not.
void TcpChannel::welcome(Caller &caller, const Greeting &greeting) {
  Greeting answer;
  answer.ranks = worldRanks;
  std::string why = compareWorlds(greeting, worldRanks);
  if (greeting.rank < 1 || greeting.rank >= worldRanks) {
    answer.rank = NoSuchRank;
  } else if (why.empty() && peers[greeting.rank].socket) {
    answer.rank = RankIsTaken;
    why = "two processes are rank " + std::to_string(greeting.rank) +
          ", expected one";
  }
  caller.say(bytesOf(answer));
  if (why.empty())
    why = caller.trouble();
  if (!why.empty())
    return refuse(caller.name(), why);
  peers[greeting.rank].socket = caller.release();
}

/// Hears what callers have to say, and closes those who have had their time.
void TcpChannel::serve(std::deque<Caller> &callers,
                       const std::vector<short> &events) {
  const Clock::time_point now = Clock::now();
  std::deque<Caller> rest;
  for (size_t i = 0; i < callers.size(); ++i) {
    Caller &caller = callers[i];
    Greeting greeting;
    if (i < events.size() && events[i] != 0 && caller.step(greeting)) {
      welcome(caller, greeting);
    } else if (!caller.trouble().empty()) {
      refuse(caller.name(), caller.trouble());
    } else if (now >= caller.deadline()) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", limits.greetingSeconds);
      refuse(caller.name(),
             "it has not said who it is within " + std::string(seconds) + " s");
    } else {
      rest.push_back(std::move(caller));
    }
  }
  callers = std::move(rest);
}

/// Frees the place of a rank that has gone, or talks nonsense, before all are
/// here: the real one may still come.
void TcpChannel::checkPeers() {
  for (Peer &peer : peers) {
    if (!peer.socket)
      continue;
    Frame frame = {};
    ssize_t got = ::recv(peer.socket.get(), &frame, sizeof(frame),
                         MSG_PEEK | MSG_DONTWAIT);
    std::string why;
    if (got == 0)
      why = "it has gone before all ranks were here";
    else if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK &&
             errno != EINTR)
      why = std::strerror(errno);
    else if (got == sizeof(frame))
      why = checkFrame(frame, peer);
    if (why.empty())
      continue;
    refuse(otherEnd(peer.socket),
           "rank " + std::to_string(rankOf(peer)) + ": " + why);
    peer.socket = Socket();
  }
}

Status TcpChannel::listen(const std::string &host, int64_t port,
                          Clock::time_point deadline) {
  std::vector<Socket> listeners;
  if (Status status = listenAt(host, port, log, listeners); status.failed())
    return status;
  std::deque<Caller> callers;
  Clock::time_point nextCheck = Clock::now();
  while (true) {
    auto findAbsent = [&] {
      std::vector<int64_t> absent;
      for (int64_t other = 1; other < worldRanks; ++other)
        if (!peers[other].socket)
          absent.push_back(other);
      return absent;
    };
    std::vector<int64_t> absent = findAbsent();
    if (absent.empty() || Clock::now() >= nextCheck) {
      checkPeers();
      nextCheck = Clock::now() + std::chrono::milliseconds(200);
      absent = findAbsent();
    }
    if (absent.empty()) {
      for (const Caller &caller : callers)
        refuse(caller.name(), "all ranks are here without it");
      return {};
    }
    if (Clock::now() >= deadline)
      return {FSDPRT_TIMEOUT,
              "timeout: no word at port " + std::to_string(port) + " from " +
                  describe(absent) + (refused == 0 ? "" : "; " + lastRefusal)};
    std::vector<pollfd> pollers;
    for (const Caller &caller : callers)
      pollers.push_back({caller.socket().get(), POLLIN, 0});
    for (const Socket &listener : listeners)
      pollers.push_back({listener.get(), POLLIN, 0});
    (void)poll(pollers.data(), pollers.size(),
               millisecondsUntil(deadline, 100));
    std::vector<short> events;
    for (size_t i = 0; i < callers.size(); ++i)
      events.push_back(pollers[i].revents);
    serve(callers, events);
    for (const Socket &listener : listeners)
      if (Status status = acceptAll(listener, callers); status.failed())
        return status;
  }
}

Status TcpChannel::connect(const std::string &host, int64_t port,
                           Clock::time_point deadline) {
  const std::string where = describePlace(host, port);
  Greeting mine;
  mine.ranks = worldRanks;
  mine.rank = myRank;
  std::string why;
  do {
    // Rank 0 answers at once. Who does not may be somebody else, whom rank 0
    // takes the place of.
    Clock::time_point end = std::min(deadline, deadlineAfter(10));
    Socket socket;
    if (Status status = connectTo(host, port, end, socket, why);
        status.failed())
      return status;
    if (socket) {
      if (Status status = greetRankZero(socket, where, secret, mine, end, why);
          status.failed())
        return status;
      if (why.empty()) {
        peers[0].socket = std::move(socket);
        return {};
      }
    }
    // Rank 0 may start later.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < deadline);
  return {FSDPRT_TIMEOUT, "timeout: no rank 0 at " + where + ": " + why};
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

/// What is wrong with a frame of `peer`, "" if nothing is.
std::string TcpChannel::checkFrame(const Frame &frame, const Peer &peer) const {
  auto isRank = [&](int64_t rank) { return rank >= 0 && rank < worldRanks; };
  // Rank 0 passes on what others send; they speak for themselves.
  bool from = myRank == 0 ? frame.from == rankOf(peer)
                          : isRank(frame.from) && frame.from != myRank;
  bool to = myRank == 0 ? isRank(frame.to) && frame.to != frame.from
                        : frame.to == myRank;
  bool goodbye = frame.bytes == -1 && frame.from == rankOf(peer);
  if (goodbye ? from
              : from && to && frame.bytes >= 0 && frame.bytes <= largestFrame)
    return {};
  return "it sends a message of " + std::to_string(frame.bytes) +
         " bytes from rank " + std::to_string(frame.from) + " to rank " +
         std::to_string(frame.to) + ", which is none of its own";
}

void TcpChannel::lose(Peer &peer, const std::string &why) {
  if (peer.left)
    return;
  peer.left = true;
  peer.in.clear();
  peer.out.clear();
  peer.sent = 0;
  peer.socket = Socket();
  if (!lost.failed())
    lost = {FSDPRT_ABORTED,
            "rank " + std::to_string(rankOf(peer)) + " has gone: " + why};
}

void TcpChannel::write(Peer &peer) {
  while (peer.socket && peer.backlog() != 0 && !peer.left) {
    switch (sendSome(peer.socket, peer.out, peer.sent)) {
    case Moved::Some:
      break;
    case Moved::Closed:
    case Moved::Failed:
      // Perhaps its goodbye has come: read() finds out.
      peer.sent = peer.out.size();
      break;
    case Moved::NotNow:
      // What has been sent goes now and then, not each time.
      if (peer.sent > peer.out.size() / 2) {
        peer.out.erase(0, peer.sent);
        peer.sent = 0;
      }
      return;
    }
  }
  peer.out.clear();
  peer.sent = 0;
}

void TcpChannel::enqueue(Peer &peer, const Frame &frame, const char *data) {
  if (peer.left)
    return;
  peer.out.append(reinterpret_cast<const char *>(&frame), sizeof(frame));
  if (frame.bytes > 0)
    peer.out.append(data, frame.bytes);
  write(peer);
}

/// Moves whole frames from `peer.in` to where they belong.
void TcpChannel::takeFrames(Peer &peer) {
  size_t at = 0;
  Frame frame;
  while (!peer.left && peer.in.size() - at >= sizeof(frame)) {
    std::memcpy(&frame, &peer.in[at], sizeof(frame));
    if (std::string why = checkFrame(frame, peer); !why.empty())
      return lose(peer, why);
    if (frame.bytes < 0) {
      peer.left = true;
      break;
    }
    if (peer.in.size() - at < sizeof(frame) + frame.bytes)
      break;
    const char *data = &peer.in[at + sizeof(frame)];
    if (frame.to == myRank)
      inbox.push_back({frame.from, std::string(data, frame.bytes)});
    else if (Peer &next = peerFor(frame.to); next.backlog() < largestBacklog)
      enqueue(next, frame, data);
    // Else it is lost. What ranks other than 0 tell each other is how they are;
    // one that has megabytes of that unread does not miss it.
    at += sizeof(frame) + frame.bytes;
  }
  peer.in.erase(0, at);
}

void TcpChannel::read(Peer &peer) {
  for (size_t bytes = 0; bytes < largestRead;) {
    if (!peer.socket || peer.left || peer.held ||
        peer.backlog() > largestBacklog)
      return;
    const size_t before = peer.in.size();
    Moved moved = receiveSome(peer.socket, peer.in, largestRead);
    if (moved == Moved::NotNow)
      return;
    const std::string error = std::strerror(errno);
    bytes += peer.in.size() - before;
    takeFrames(peer);
    if (moved == Moved::Closed)
      lose(peer, "its connection is closed");
    else if (moved == Moved::Failed)
      lose(peer, error);
  }
}

Status TcpChannel::send(int64_t to, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (static_cast<int64_t>(message.size()) > largestFrame)
    return {FSDPRT_INVALID_ARGUMENT,
            "a message of " + std::to_string(message.size()) + " bytes"};
  enqueue(peerFor(to), {to, myRank, static_cast<int64_t>(message.size())},
          message.data());
  return {};
}

bool TcpChannel::receive(int64_t &from, std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (inbox.empty())
    for (Peer &peer : peers) {
      write(peer);
      read(peer);
    }
  if (inbox.empty())
    return false;
  from = inbox.front().first;
  message = std::move(inbox.front().second);
  inbox.pop_front();
  return true;
}

void TcpChannel::close() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (Peer &peer : peers)
      if (peer.socket)
        enqueue(peer, {0, myRank, -1}, nullptr);
  }
  // What is under way gets a moment.
  for (int i = 0; i < 200; ++i) {
    std::lock_guard<std::mutex> lock(mutex);
    bool empty = true;
    for (Peer &peer : peers) {
      write(peer);
      empty &= peer.backlog() == 0 || peer.left;
    }
    if (empty)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

} // namespace

Status fsdprt::createTcpChannel(const std::string &host, int64_t port,
                                int64_t rank, int64_t ranks,
                                double timeoutSeconds,
                                const std::string &secret, const Log &log,
                                std::unique_ptr<Channel> &channel,
                                const TcpLimits &limits) {
  auto result = std::make_unique<TcpChannel>(rank, ranks, secret, log, limits);
  Clock::time_point deadline = deadlineAfter(timeoutSeconds);
  if (Status status = rank == 0 ? result->listen(host, port, deadline)
                                : result->connect(host, port, deadline);
      status.failed())
    return status;
  channel = std::move(result);
  return {};
}
