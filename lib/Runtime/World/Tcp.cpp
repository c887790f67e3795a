//===- Tcp.cpp - sockets, and where they listen and connect ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Tcp.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdprt;

Socket::~Socket() {
  if (fd >= 0)
    ::close(fd);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static Moved describeErrno() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR
             ? Moved::NotNow
             : Moved::Failed;
}

Moved fsdprt::receiveSome(const Socket &socket, std::string &data,
                          size_t most) {
  char buffer[1 << 16];
  ssize_t got = ::recv(socket.get(), buffer, std::min(most, sizeof(buffer)),
                       MSG_DONTWAIT);
  if (got < 0)
    return describeErrno();
  data.append(buffer, got);
  return got == 0 ? Moved::Closed : Moved::Some;
}

Moved fsdprt::sendSome(const Socket &socket, const std::string &data,
                       size_t &at) {
  ssize_t sent = ::send(socket.get(), data.data() + at, data.size() - at,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0)
    return describeErrno();
  at += sent;
  return Moved::Some;
}

int fsdprt::millisecondsUntil(Clock::time_point deadline, int most) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, most));
}

/// Waits until the socket can be read or written; false at the deadline.
static bool waitFor(const Socket &socket, short event,
                    Clock::time_point deadline) {
  while (Clock::now() < deadline) {
    pollfd poller = {socket.get(), event, 0};
    if (int ready = poll(&poller, 1, millisecondsUntil(deadline, 1000)))
      return ready > 0 || errno == EINTR;
  }
  return false;
}

bool fsdprt::receiveAll(const Socket &socket, std::string &data, size_t bytes,
                        Clock::time_point deadline) {
  data.clear();
  while (data.size() < bytes) {
    if (!waitFor(socket, POLLIN, deadline))
      return false;
    Moved moved = receiveSome(socket, data, bytes - data.size());
    if (moved == Moved::Closed || moved == Moved::Failed)
      return false;
  }
  return true;
}

bool fsdprt::sendAll(const Socket &socket, const std::string &data,
                     Clock::time_point deadline) {
  for (size_t at = 0; at < data.size();)
    if (!waitFor(socket, POLLOUT, deadline) ||
        sendSome(socket, data, at) == Moved::Failed)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

namespace {

struct Addresses {
  addrinfo *list = nullptr;
  ~Addresses() {
    if (list)
      freeaddrinfo(list);
  }
};

Status resolve(const std::string &host, int64_t port, Addresses &addresses) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints,
                             &addresses.list))
    return {FSDPRT_INVALID_ARGUMENT,
            "cannot find host '" + host + "': " + gai_strerror(code)};
  return {};
}

std::string describeAddress(const sockaddr *address, socklen_t size) {
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return std::strchr(host, ':') ? "[" + std::string(host) + "]:" + port
                                : std::string(host) + ":" + port;
}

/// Whether only this machine can reach the address.
bool isLoop(const addrinfo &address) {
  if (address.ai_family == AF_INET) {
    auto *four = reinterpret_cast<const sockaddr_in *>(address.ai_addr);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  }
  auto *six = reinterpret_cast<const sockaddr_in6 *>(address.ai_addr);
  return address.ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

Socket openSocket(const addrinfo &address) {
  return Socket(::socket(address.ai_family,
                         address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         address.ai_protocol));
}

void setOption(const Socket &socket, int level, int option) {
  int on = 1;
  setsockopt(socket.get(), level, option, &on, sizeof(on));
}

} // namespace

Status fsdprt::listenAt(const std::string &host, int64_t port, const Log &log,
                        std::vector<Socket> &listeners) {
  Addresses addresses;
  if (Status status = resolve(host, port, addresses); status.failed())
    return status;
  auto failure = [&](const std::string &why) {
    listeners.clear();
    return Status{FSDPRT_INVALID_ARGUMENT,
                  "cannot listen at " + describePlace(host, port) + ": " + why};
  };
  std::string why = "it has no address";
  bool onlyLoop = true;
  for (addrinfo *a = addresses.list; a; a = a->ai_next) {
    Socket socket = openSocket(*a);
    // Connections of a run that has just ended do not keep the next one from
    // its port; somebody who listens there does.
    setOption(socket, SOL_SOCKET, SO_REUSEADDR);
    if (a->ai_family == AF_INET6)
      setOption(socket, IPPROTO_IPV6, IPV6_V6ONLY);
    if (socket && ::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 &&
        ::listen(socket.get(), 1024) == 0) {
      listeners.push_back(std::move(socket));
      onlyLoop &= isLoop(*a);
      continue;
    }
    const int error = errno;
    why = std::strerror(error);
    if (addresses.list->ai_next)
      why = describeAddress(a->ai_addr, a->ai_addrlen) + ": " + why;
    // Some of the ranks would find whoever has the port. An address of a
    // family that this machine does not have is common, and harmless.
    if (error == EADDRINUSE || error == EACCES)
      return failure(why);
  }
  if (listeners.empty())
    return failure(why);
  // Many machines give their own name an address of the loop.
  if (onlyLoop && host != "localhost" && host != "::1" &&
      host.rfind("127.", 0) != 0)
    log("'" + host + "' is an address of the loop on this machine: ranks on " +
        "others cannot reach it, expected another name or an address");
  return {};
}

Socket fsdprt::acceptFrom(const Socket &listener, int &error) {
  Socket socket(::accept4(listener.get(), nullptr, nullptr,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
  error = 0;
  if (socket)
    setOption(socket, IPPROTO_TCP, TCP_NODELAY);
  else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR &&
           errno != ECONNABORTED)
    error = errno;
  return socket;
}

Status fsdprt::connectTo(const std::string &host, int64_t port,
                         Clock::time_point deadline, Socket &socket,
                         std::string &why) {
  Addresses addresses;
  if (Status status = resolve(host, port, addresses); status.failed())
    return status;
  for (addrinfo *a = addresses.list; a; a = a->ai_next) {
    Socket attempt = openSocket(*a);
    int error = 0;
    socklen_t size = sizeof(error);
    if (!attempt) {
      error = errno;
    } else if (::connect(attempt.get(), a->ai_addr, a->ai_addrlen) == 0) {
    } else if (errno != EINPROGRESS) {
      error = errno;
    } else if (!waitFor(attempt, POLLOUT, deadline)) {
      error = ETIMEDOUT;
    } else {
      getsockopt(attempt.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      setOption(attempt, IPPROTO_TCP, TCP_NODELAY);
      socket = std::move(attempt);
      return {};
    }
    why = std::strerror(error);
  }
  return {};
}

std::string fsdprt::otherEnd(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr *>(&address), &size))
    return "?";
  return describeAddress(reinterpret_cast<sockaddr *>(&address), size);
}

bool fsdprt::isConnectedToItself(const Socket &socket) {
  sockaddr_storage here = {}, there = {};
  socklen_t hereSize = sizeof(here), thereSize = sizeof(there);
  return getsockname(socket.get(), reinterpret_cast<sockaddr *>(&here),
                     &hereSize) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr *>(&there),
                     &thereSize) == 0 &&
         hereSize == thereSize && std::memcmp(&here, &there, hereSize) == 0;
}

std::string fsdprt::describePlace(const std::string &host, int64_t port) {
  const std::string end = ":" + std::to_string(port);
  return host.find(':') == std::string::npos ? host + end
                                             : "[" + host + "]" + end;
}

bool fsdprt::parsePlace(const std::string &place, std::string &host,
                        int64_t &port) {
  size_t colon = place.rfind(':');
  if (colon == std::string::npos || place.size() - colon > 6)
    return false;
  host = place.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string::npos)
    return false;
  port = 0;
  for (char c : place.substr(colon + 1)) {
    if (c < '0' || c > '9')
      return false;
    port = 10 * port + (c - '0');
  }
  return !host.empty() && port >= 1 && port <= 65535;
}
