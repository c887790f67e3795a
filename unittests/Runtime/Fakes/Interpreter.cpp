//===- Interpreter.cpp - kernels of PTX, run on the host ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The server is a child at the other end of a socket, its standard input and
// output, and ends with it. Messages, of little-endian words:
//
//   module, bytes of PTX (0 if it is known), bytes of the kernel's name,
//   blocks in x and y, threads, number of parameters, number of buffers;
//   PTX; name; parameters; address and size of each buffer; the buffers
//
// and back: bytes of an error message and the message, or 0 and the buffers.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include <cstdlib>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdprt::fake;

extern char **environ;

Interpreter *Interpreter::get() {
  static Interpreter *instance = [] {
    const char *command = std::getenv("FSDP_FAKE_INTERPRETER");
    return command ? new Interpreter(command) : nullptr;
  }();
  return instance;
}

Interpreter::Interpreter(const char *command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const char *arguments[] = {"sh", "-c", command, nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/bin/sh", &actions, nullptr,
                  const_cast<char **>(arguments), environ) == 0)
    socket = ends[0];
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
}

bool Interpreter::send(const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t done = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (done <= 0)
      return false;
    at += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

bool Interpreter::receive(void *data, size_t bytes) {
  char *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t done = ::recv(socket, at, bytes, 0);
    if (done <= 0)
      return false;
    at += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

/// The buffers that an address points into.
static std::map<uint64_t, size_t>
findBuffers(const std::vector<uint64_t> &addresses,
            const std::map<uint64_t, size_t> &buffers) {
  std::map<uint64_t, size_t> found;
  for (uint64_t address : addresses) {
    auto next = buffers.upper_bound(address);
    if (next == buffers.begin())
      continue;
    auto [base, bytes] = *std::prev(next);
    if (address < base + bytes)
      found.insert({base, bytes});
  }
  return found;
}

std::string Interpreter::run(const InterpretedLaunch &launch,
                             const std::map<uint64_t, size_t> &buffers) {
  const std::string gone = "the interpreter is gone";
  const auto used = findBuffers(launch.parameters, buffers);
  const void *module = launch.ptx.get();
  const std::string ptx = sent.insert(module).second ? *launch.ptx : "";
  std::vector<uint64_t> words = {reinterpret_cast<uintptr_t>(module),
                                 ptx.size(),
                                 launch.kernel.size(),
                                 launch.blocksX,
                                 launch.blocksY,
                                 launch.threads,
                                 launch.parameters.size(),
                                 used.size()};
  if (!send(words.data(), words.size() * 8) || !send(ptx.data(), ptx.size()) ||
      !send(launch.kernel.data(), launch.kernel.size()))
    return gone;
  words = launch.parameters;
  for (auto [base, bytes] : used)
    words.insert(words.end(), {base, bytes});
  if (!send(words.data(), words.size() * 8))
    return gone;
  for (auto [base, bytes] : used)
    if (!send(reinterpret_cast<const void *>(base), bytes))
      return gone;

  uint64_t messageBytes = 0;
  if (!receive(&messageBytes, 8))
    return gone;
  std::string message(messageBytes, '\0');
  if (messageBytes > 0)
    return receive(message.data(), messageBytes) ? message : gone;
  for (auto [base, bytes] : used)
    if (!receive(reinterpret_cast<void *>(base), bytes))
      return gone;
  return "";
}
