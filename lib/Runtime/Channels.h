//===- Channels.h - channels that need no MPI ------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_CHANNELS_H
#define FSDP_LIB_RUNTIME_CHANNELS_H

#include "Channel.h"

#include <memory>

namespace fsdprt {

/// Rank 0 listens at `host`:`port`, the others connect to it, and what they
/// have to say to each other goes through it. Returns when all are connected;
/// a timeout (0: none) names those who are not. Anybody who can reach the port
/// can take part: it is for a network of one's own.
Status createTcpChannel(const std::string &host, int64_t port, int64_t rank,
                        int64_t ranks, double timeoutSeconds,
                        std::unique_ptr<Channel> &channel);

/// Messages are files whose names begin with `path`, in a folder that all ranks
/// see. `path` must be one that no run has used before.
Status createFileChannel(const std::string &path, int64_t rank, int64_t ranks,
                         std::unique_ptr<Channel> &channel);

/// A world of one rank.
std::unique_ptr<Channel> createSelfChannel();

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_CHANNELS_H
