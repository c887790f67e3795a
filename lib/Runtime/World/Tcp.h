//===- Tcp.h - sockets, and where they listen and connect -------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What TcpGreeting.h and ChannelTcp.cpp need of the system. Every socket here
// is non-blocking: whoever waits does so with a deadline.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_TCP_H
#define FSDP_LIB_RUNTIME_WORLD_TCP_H

#include "Support/Deadline.h"
#include "Support/Status.h"

#include <cstdint>
#include <vector>

namespace fsdprt {

/// A socket that closes itself.
class Socket {
public:
  explicit Socket(int fd = -1) : fd(fd) {}
  Socket(Socket &&other) : fd(other.fd) { other.fd = -1; }
  Socket &operator=(Socket &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Socket();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd;
};

/// What one attempt to move bytes has come to.
enum class Moved { Some, NotNow, Closed, Failed };

/// Appends at most `most` bytes that have arrived to `data`.
Moved receiveSome(const Socket &socket, std::string &data, size_t most);

/// Sends of `data` from byte `at`, which it moves on.
Moved sendSome(const Socket &socket, const std::string &data, size_t &at);

/// Milliseconds until the deadline for poll(), at most `most`.
int millisecondsUntil(Clock::time_point deadline, int most);

/// Receives exactly `bytes` bytes, sends all of `data`; false if the other end
/// closes before, or the deadline comes.
bool receiveAll(const Socket &socket, std::string &data, size_t bytes,
                Clock::time_point deadline);
bool sendAll(const Socket &socket, const std::string &data,
             Clock::time_point deadline);

/// Listens at every address that `host` means, and at no other.
Status listenAt(const std::string &host, int64_t port, const Log &log,
                std::vector<Socket> &listeners);

/// Takes the next connection of a listener. No socket if there is none;
/// `error` is then what the system says, 0 for nobody.
Socket acceptFrom(const Socket &listener, int &error);

/// Connects to one of the addresses of `host`. No socket if nobody listens
/// there now; `why` then says so. Fails if there is no such host.
Status connectTo(const std::string &host, int64_t port,
                 Clock::time_point deadline, Socket &socket, std::string &why);

/// "127.0.0.1:4000", "[::1]:4000": the other end of a connection.
std::string otherEnd(const Socket &socket);

/// True of a connection whose two ends are one socket. TCP allows that, and who
/// tries again and again to reach a free port of those that the system gives to
/// clients is given that port now and then.
bool isConnectedToItself(const Socket &socket);

/// "HOST:PORT", with brackets around an address of IPv6.
std::string describePlace(const std::string &host, int64_t port);

/// The parts of "HOST:PORT" or "[ADDRESS]:PORT"; false if it is neither.
bool parsePlace(const std::string &place, std::string &host, int64_t &port);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_TCP_H
