//===- Sockets.h - plain sockets on the loop, for tests ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_SOCKETS_H
#define FSDP_UNITTESTS_RUNTIME_SOCKETS_H

#include <arpa/inet.h>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace fsdprt::test {

/// An address of the loop, 127.0.0.1 if `last` is 1.
inline sockaddr_in loopAddress(int64_t port, uint32_t last = 1) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl((127u << 24) + last);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

/// A socket that is bound to the port, 0 for a free one, which `port` becomes.
inline int bindSocket(int64_t &port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopAddress(port);
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr *>(&address), size))
    return close(fd), -1;
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

/// A port of the loop that nobody uses.
inline int64_t freePort() {
  int64_t port = 0;
  close(bindSocket(port));
  return port;
}

/// What a program that is none of ours does with a connection.
class RawSocket {
public:
  explicit RawSocket(int fd = -1) : fd(fd) {}
  RawSocket(RawSocket &&other) : fd(other.fd) { other.fd = -1; }
  RawSocket &operator=(RawSocket &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~RawSocket() {
    if (fd >= 0)
      close(fd);
  }

  /// Connects once somebody listens; for ten seconds at most.
  static RawSocket connectTo(int64_t port) {
    sockaddr_in address = loopAddress(port);
    for (int i = 0; i < 1000; ++i, usleep(10000)) {
      RawSocket result(socket(AF_INET, SOCK_STREAM, 0));
      if (connect(result.fd, reinterpret_cast<sockaddr *>(&address),
                  sizeof(address)) == 0)
        return result;
    }
    return RawSocket();
  }

  explicit operator bool() const { return fd >= 0; }
  int get() const { return fd; }

  bool say(const std::string &bytes) {
    return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  /// Sends what can be sent now; -1 if the connection is over.
  ssize_t sayNow(const std::string &bytes) {
    ssize_t sent =
        send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : sent;
  }

  /// The next `bytes` bytes, or fewer if the connection ends before, or
  /// nothing comes for ten seconds.
  std::string hear(size_t bytes) {
    std::string got(bytes, '\0');
    size_t at = 0;
    while (at < bytes) {
      pollfd poller = {fd, POLLIN, 0};
      if (poll(&poller, 1, 10000) <= 0)
        break;
      ssize_t more = recv(fd, &got[at], bytes - at, 0);
      if (more <= 0)
        break;
      at += more;
    }
    got.resize(at);
    return got;
  }

  /// True if the other end closes within ten seconds.
  bool isClosed() {
    char byte;
    pollfd poller = {fd, POLLIN, 0};
    return poll(&poller, 1, 10000) > 0 && recv(fd, &byte, 1, 0) <= 0;
  }

private:
  int fd;
};

/// Numbers as they are in greetings and frames.
template <typename... Numbers>
std::string words(Numbers... numbers) {
  std::string bytes;
  for (int64_t number : {static_cast<int64_t>(numbers)...})
    bytes.append(reinterpret_cast<const char *>(&number), sizeof(number));
  return bytes;
}

} // namespace fsdprt::test

#endif // FSDP_UNITTESTS_RUNTIME_SOCKETS_H
