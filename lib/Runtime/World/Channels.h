//===- Channels.h - channels that need no MPI ------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_CHANNELS_H
#define FSDP_LIB_RUNTIME_WORLD_CHANNELS_H

#include "World/Channel.h"

#include <memory>

namespace fsdprt {

/// The bounds of a rendezvous that tests change.
struct TcpLimits {
  double greetingSeconds = 5; ///< for a connection to say who it is
  size_t callers = 1024;      ///< connections that have not said it yet
  size_t lines = 20;          ///< of the log, about connections that are closed
};

/// Rank 0 listens at `host`:`port`, the others connect to it, and what they
/// have to say to each other goes through it. Returns when all are connected;
/// a timeout (0: none) names those who are not. Who connects and is no rank of
/// this run is closed, and named in the log. With a `secret` every rank has to
/// know it; without one, whoever reaches the port and speaks first is a rank.
Status createTcpChannel(const std::string &host, int64_t port, int64_t rank,
                        int64_t ranks, double timeoutSeconds,
                        const std::string &secret, const Log &log,
                        std::unique_ptr<Channel> &channel,
                        const TcpLimits &limits = {});

/// Messages are files in the folder `path`.run, which rank 0 makes in a folder
/// that all ranks see. It must not be there before; nobody else can get into
/// it, and it goes with the last rank.
Status createFileChannel(const std::string &path, int64_t rank, int64_t ranks,
                         std::unique_ptr<Channel> &channel);

/// A world of one rank.
std::unique_ptr<Channel> createSelfChannel();

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_CHANNELS_H
