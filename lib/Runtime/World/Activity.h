//===- Activity.h - what ranks do, for reports ------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sentences that every communicator uses when ranks do not come together:
// what each of them was doing, on which call or program they disagree.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_ACTIVITY_H
#define FSDP_LIB_RUNTIME_WORLD_ACTIVITY_H

#include "Support/Status.h"
#include "World/Collective.h"

namespace fsdprt {

/// What a rank is doing.
struct Activity {
  enum State {
    NotStarted,
    Starting,
    Outside,
    InCollective,
    Left
  } state = NotStarted;
  Call last; ///< number 0: none yet
};

/// "waiting in call 3, all_gather of bucket 't', 24 bytes, over grid axes [0]".
std::string describe(const Activity &activity);

/// "rank 1", "ranks 0, 2-63".
std::string describe(const std::vector<int64_t> &ranks);

/// Joins a clause per rank; ranks with the same one share it.
std::string describeRanks(const std::vector<std::string> &clauses);

/// "timeout: no end of a collective after 60 s: " and the report.
std::string describeTimeout(const std::string &what, double seconds,
                            const std::string &report);

/// Refuses what is no time to wait: a clock of nanoseconds in 64 bits ends
/// after three centuries.
Status checkTimeout(double seconds);

/// Compares the plan hashes of ranks 0, 1, ...; see fsdprtStart.
Status comparePlanHashes(std::vector<std::string> hashes);

/// Compares what the members of a group, given as ranks, are about to do.
Status compareCalls(const std::vector<int64_t> &members,
                    const std::vector<Call> &calls);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_ACTIVITY_H
