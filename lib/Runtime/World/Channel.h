//===- Channel.h - small messages between processes -------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the ranks of a world of processes tell each other beside the data: who
// failed and why, what each is doing, the id of an NCCL communicator. Messages
// from one rank to another arrive whole and in order. Watch.h makes use of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_CHANNEL_H
#define FSDP_LIB_RUNTIME_WORLD_CHANNEL_H

#include "Support/Status.h"

#include <cstdint>

namespace fsdprt {

class Channel {
public:
  virtual ~Channel() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t ranks() const = 0;

  /// Queues a message for another rank. From any thread, never waits long.
  virtual Status send(int64_t to, const std::string &message) = 0;

  /// Takes the next message that has arrived, from whomever; false if there is
  /// none. From one thread.
  virtual bool receive(int64_t &from, std::string &message) = 0;

  /// Whether what another rank sends stays with it for now: a rank that sends
  /// more than is read must wait, where the channel can make it. Any thread.
  virtual void hold(int64_t from, bool held) {
    (void)from;
    (void)held;
  }

  /// What is wrong with the channel, a rank that has gone for example.
  virtual Status status() { return {}; }

  /// The world has failed, and that has been said: what would be left of the
  /// channel when the process ends at once goes now. Any thread.
  virtual void leave() {}

  /// No message will be sent any more; returns when those before are on their
  /// way. Without it the other ranks take the end of this one for a failure.
  virtual void close() = 0;
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_CHANNEL_H
