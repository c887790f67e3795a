//===- ChannelTcp.cpp - small messages over TCP ---------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A star: rank 0 is connected with all others and passes on what is not for
// itself. A connection begins with a greeting in which both sides say what they
// are, so that a stray client, another program on the port or a process of
// another world is found and named. Then come frames, each with its receiver,
// its sender and its size. A last frame, the goodbye, tells the end of a rank
// from its death.
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

#include "Activity.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fsdprt;
using Clock = std::chrono::steady_clock;

namespace {

struct Greeting {
  char magic[8] = {'f', 's', 'd', 'p', 'r', 't', '0', '1'};
  int64_t version = FSDPRT_ABI_VERSION;
  int64_t ranks = 0;
  int64_t rank = 0; ///< of who greets
};

struct Frame {
  int64_t to, from, bytes; ///< bytes -1: goodbye
};

/// No message of ours is near it; a frame that says so is not one of ours.
constexpr int64_t largestFrame = int64_t(1) << 30;

std::string errorText() { return std::strerror(errno); }

Status failure(fsdprtStatus code, std::string text) {
  return {code, std::move(text)};
}

/// A socket that closes itself.
class Socket {
public:
  explicit Socket(int fd = -1) : fd(fd) {}
  Socket(Socket &&other) : fd(other.fd) { other.fd = -1; }
  Socket &operator=(Socket &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Socket() {
    if (fd >= 0)
      ::close(fd);
  }
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd;
};

/// Moves exactly `bytes` bytes, until the deadline; false if that fails.
bool transfer(int fd, void *data, size_t bytes, bool out,
              Clock::time_point deadline) {
  char *at = static_cast<char *>(data);
  while (bytes != 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    pollfd poller = {fd, static_cast<short>(out ? POLLOUT : POLLIN), 0};
    if (left.count() <= 0 ||
        poll(&poller, 1,
             static_cast<int>(std::min<int64_t>(left.count(), 1000))) < 0)
      return false;
    ssize_t moved = out ? ::send(fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : ::recv(fd, at, bytes, MSG_DONTWAIT);
    if (moved == 0 && !out)
      return false;
    if (moved < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return false;
      continue;
    }
    at += moved;
    bytes -= moved;
  }
  return true;
}

struct Addresses {
  addrinfo *list = nullptr;
  ~Addresses() {
    if (list)
      freeaddrinfo(list);
  }
};

Status resolve(const std::string &host, int64_t port, bool toListen,
               Addresses &addresses) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = toListen ? AI_PASSIVE : 0;
  // A host's own name may mean an address of the loop, where no other host
  // could connect. So rank 0 listens everywhere, unless all are on one host.
  bool local =
      host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
  if (int code =
          getaddrinfo(toListen && !local ? nullptr : host.c_str(),
                      std::to_string(port).c_str(), &hints, &addresses.list))
    return failure(FSDPRT_INVALID_ARGUMENT,
                   "cannot find host '" + host + "': " + gai_strerror(code));
  return {};
}

/// The other end of a connection, and what is on its way.
struct Peer {
  Socket socket;
  std::string in, out;
  bool left = false; ///< has said goodbye, or is lost
};

class TcpChannel final : public Channel {
public:
  TcpChannel(int64_t rank, int64_t ranks)
      : myRank(rank), worldRanks(ranks), peers(rank == 0 ? ranks : 1) {}

  Status listen(const std::string &host, int64_t port,
                Clock::time_point deadline);
  Status connect(const std::string &host, int64_t port,
                 Clock::time_point deadline);

  int64_t rank() const override { return myRank; }
  int64_t ranks() const override { return worldRanks; }
  Status send(int64_t to, const std::string &message) override;
  bool receive(int64_t &from, std::string &message) override;
  Status status() override {
    std::lock_guard<std::mutex> lock(mutex);
    return lost;
  }
  void close() override;

private:
  Status accept(int fd, Clock::time_point deadline);
  Peer &peerFor(int64_t to) { return peers[myRank == 0 ? to : 0]; }
  int64_t rankOf(const Peer &peer) const {
    return myRank == 0 ? &peer - peers.data() : 0;
  }
  void enqueue(const Frame &frame, const char *data);
  void write(Peer &peer);
  void read(Peer &peer);
  void lose(Peer &peer, const std::string &why);

  const int64_t myRank, worldRanks;
  std::mutex mutex;
  std::vector<Peer> peers; ///< by rank on rank 0, else rank 0 alone
  std::deque<std::pair<int64_t, std::string>> inbox;
  Status lost;
};

//===----------------------------------------------------------------------===//
// Greetings
//===----------------------------------------------------------------------===//

/// Greets a client; one that is none of ours gets no answer.
Status TcpChannel::accept(int fd, Clock::time_point deadline) {
  Socket socket(fd);
  Greeting expected, got;
  // Whoever connects and says nothing must not stop the others.
  deadline = std::min(deadline, Clock::now() + std::chrono::seconds(5));
  if (!transfer(fd, &got, sizeof(got), false, deadline) ||
      std::memcmp(got.magic, expected.magic, sizeof(got.magic)) != 0)
    return {};
  expected.ranks = worldRanks;
  transfer(fd, &expected, sizeof(expected), true, deadline);
  std::string who = "rank " + std::to_string(got.rank);
  if (got.version != expected.version)
    return failure(FSDPRT_INVALID_ARGUMENT,
                   who + " has ABI version " + std::to_string(got.version) +
                       ", rank 0 has " + std::to_string(expected.version));
  if (got.ranks != worldRanks)
    return failure(FSDPRT_INVALID_ARGUMENT,
                   who + " is of a world of " + std::to_string(got.ranks) +
                       " ranks, rank 0 of " + std::to_string(worldRanks));
  if (got.rank < 1 || got.rank >= worldRanks || peers[got.rank].socket)
    return failure(FSDPRT_INVALID_ARGUMENT,
                   "two processes are " + who + ", expected one");
  peers[got.rank].socket = std::move(socket);
  return {};
}

Status TcpChannel::listen(const std::string &host, int64_t port,
                          Clock::time_point deadline) {
  Addresses addresses;
  if (Status s = resolve(host, port, true, addresses); s.failed())
    return s;
  const std::string where = "port " + std::to_string(port);
  std::vector<Socket> listeners;
  std::string why = "no address";
  for (addrinfo *a = addresses.list; a; a = a->ai_next) {
    Socket socket(::socket(a->ai_family, a->ai_socktype, a->ai_protocol));
    int on = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ai_family == AF_INET6)
      setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (socket && bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 &&
        ::listen(socket.get(), 1024) == 0)
      listeners.push_back(std::move(socket));
    else
      why = errorText();
  }
  if (listeners.empty())
    return failure(FSDPRT_INVALID_ARGUMENT,
                   "cannot listen at " + where + ": " + why);

  std::vector<pollfd> pollers;
  for (const Socket &listener : listeners)
    pollers.push_back({listener.get(), POLLIN, 0});
  while (true) {
    std::vector<int64_t> absent;
    for (int64_t other = 1; other < worldRanks; ++other)
      if (!peers[other].socket)
        absent.push_back(other);
    if (absent.empty())
      return {};
    if (Clock::now() >= deadline)
      return failure(FSDPRT_TIMEOUT, "timeout: no word at " + where + " from " +
                                         describe(absent));
    if (poll(pollers.data(), pollers.size(), 100) <= 0)
      continue;
    for (const pollfd &poller : pollers)
      if (poller.revents & POLLIN)
        if (int fd = ::accept(poller.fd, nullptr, nullptr); fd >= 0)
          if (Status s = accept(fd, deadline); s.failed())
            return s;
  }
}

Status TcpChannel::connect(const std::string &host, int64_t port,
                           Clock::time_point deadline) {
  const std::string where = host + ":" + std::to_string(port);
  std::string why;
  while (Clock::now() < deadline) {
    Addresses addresses;
    if (Status s = resolve(host, port, false, addresses); s.failed())
      return s;
    for (addrinfo *a = addresses.list; a; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, a->ai_socktype, a->ai_protocol));
      if (!socket || ::connect(socket.get(), a->ai_addr, a->ai_addrlen)) {
        why = errorText();
        continue;
      }
      Greeting mine, theirs;
      mine.ranks = worldRanks;
      mine.rank = myRank;
      if (!transfer(socket.get(), &mine, sizeof(mine), true, deadline) ||
          !transfer(socket.get(), &theirs, sizeof(theirs), false, deadline)) {
        why = "no answer";
        continue;
      }
      if (std::memcmp(theirs.magic, mine.magic, sizeof(mine.magic)) != 0)
        return failure(FSDPRT_INVALID_ARGUMENT,
                       where + " is no rank 0 of ours, but another program");
      if (theirs.version != mine.version)
        return failure(FSDPRT_INVALID_ARGUMENT,
                       "rank 0 has ABI version " +
                           std::to_string(theirs.version) + ", rank " +
                           std::to_string(myRank) + " has " +
                           std::to_string(mine.version));
      if (theirs.ranks != worldRanks)
        return failure(FSDPRT_INVALID_ARGUMENT,
                       "rank 0 is of a world of " +
                           std::to_string(theirs.ranks) + " ranks, rank " +
                           std::to_string(myRank) + " of " +
                           std::to_string(worldRanks));
      peers[0].socket = std::move(socket);
      return {};
    }
    // Rank 0 may start later.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return failure(FSDPRT_TIMEOUT, "timeout: no rank 0 at " + where + ": " + why);
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

void TcpChannel::lose(Peer &peer, const std::string &why) {
  if (peer.left)
    return;
  peer.left = true;
  peer.out.clear();
  if (!lost.failed())
    lost = {FSDPRT_ABORTED,
            "rank " + std::to_string(rankOf(peer)) + " has gone: " + why};
}

void TcpChannel::write(Peer &peer) {
  while (!peer.out.empty() && !peer.left) {
    ssize_t sent = ::send(peer.socket.get(), peer.out.data(), peer.out.size(),
                          MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      // Perhaps its goodbye has come: read() finds out.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        peer.out.clear();
      return;
    }
    peer.out.erase(0, sent);
  }
}

void TcpChannel::enqueue(const Frame &frame, const char *data) {
  Peer &peer = peerFor(frame.to);
  if (peer.left)
    return;
  peer.out.append(reinterpret_cast<const char *>(&frame), sizeof(frame));
  if (frame.bytes > 0)
    peer.out.append(data, frame.bytes);
  write(peer);
}

void TcpChannel::read(Peer &peer) {
  char buffer[1 << 16];
  std::string end; // why the connection is over, if it is
  while (!peer.left && end.empty()) {
    ssize_t got =
        ::recv(peer.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got == 0)
      end = "its connection is closed";
    else if (got > 0)
      peer.in.append(buffer, got);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      break;
    else if (errno != EINTR)
      end = errorText();
  }
  size_t at = 0;
  Frame frame;
  while (peer.in.size() - at >= sizeof(frame)) {
    std::memcpy(&frame, &peer.in[at], sizeof(frame));
    if (frame.bytes < 0) {
      peer.left = true;
      break;
    }
    if (frame.bytes > largestFrame || frame.to < 0 || frame.to >= worldRanks) {
      lose(peer, "it sends what is no message");
      break;
    }
    if (peer.in.size() - at < sizeof(frame) + frame.bytes)
      break;
    const char *data = &peer.in[at + sizeof(frame)];
    if (frame.to == myRank)
      inbox.push_back({frame.from, std::string(data, frame.bytes)});
    else if (myRank == 0)
      enqueue(frame, data);
    at += sizeof(frame) + frame.bytes;
  }
  peer.in.erase(0, at);
  if (!end.empty())
    lose(peer, end);
}

Status TcpChannel::send(int64_t to, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (static_cast<int64_t>(message.size()) > largestFrame)
    return failure(FSDPRT_INVALID_ARGUMENT,
                   "a message of " + std::to_string(message.size()) + " bytes");
  enqueue({to, myRank, static_cast<int64_t>(message.size())}, message.data());
  return {};
}

bool TcpChannel::receive(int64_t &from, std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (inbox.empty())
    for (Peer &peer : peers)
      if (peer.socket) {
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
    Frame goodbye = {0, myRank, -1};
    for (Peer &peer : peers)
      if (peer.socket && !peer.left) {
        peer.out.append(reinterpret_cast<const char *>(&goodbye),
                        sizeof(goodbye));
        write(peer);
      }
  }
  // What is under way gets a moment.
  for (int i = 0; i < 200; ++i) {
    std::lock_guard<std::mutex> lock(mutex);
    bool empty = true;
    for (Peer &peer : peers) {
      write(peer);
      empty &= peer.out.empty() || peer.left;
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
                                std::unique_ptr<Channel> &channel) {
  auto result = std::make_unique<TcpChannel>(rank, ranks);
  Clock::time_point deadline = Clock::time_point::max();
  if (timeoutSeconds > 0)
    deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double>(timeoutSeconds));
  if (Status status = rank == 0 ? result->listen(host, port, deadline)
                                : result->connect(host, port, deadline);
      status.failed())
    return status;
  channel = std::move(result);
  return {};
}
