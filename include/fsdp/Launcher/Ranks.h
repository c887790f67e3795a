//===- Ranks.h - runs an entry on every rank --------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_RANKS_H
#define FSDP_LAUNCHER_RANKS_H

#include "fsdp/Launcher/Inputs.h"
#include "fsdp/Launcher/Manifest.h"
#include "fsdp/Launcher/Progress.h"
#include "fsdp/Runtime/Runtime.h"

namespace mlir::fsdp::launch {

struct RunOptions {
  std::string comm = "local", device = "host";
  std::optional<int64_t> rank; ///< which one this process is, if it is known
  int64_t localRank = 0;       ///< read if `rank` is
  std::string rendezvous;      ///< see fsdprtOptions
  std::string sumOrder;        ///< likewise
  int64_t warmUps = 0;         ///< runs before those that are timed
  int64_t repeats = 1;
  double timeoutSeconds = 60;
  int64_t stallRank = 0, stallCall = 0; ///< see fsdprtOptions
  bool trace = false;
  std::vector<std::string> agreed; ///< what has to be equal on all ranks
};

/// A span of time on a rank, for --trace.
struct TraceEvent {
  std::string name;
  int64_t rank;
  int64_t call;  ///< 0: an entry, not a collective
  int64_t bytes; ///< of a collective
  int64_t beginNanoseconds, endNanoseconds;
};

/// The ranks of a run that are in this process, with their buffers: all of
/// them, one thread each, or one of many processes.
class Ranks {
public:
  static llvm::Expected<Ranks> create(const Manifest &manifest,
                                      const EntrySignature &entry,
                                      const RunOptions &options);
  Ranks(Ranks &&) = default;
  ~Ranks();

  /// The ranks of this process are those from first() to first() + count() - 1.
  int64_t first() const;
  int64_t count() const;

  /// True if the others are other processes.
  bool separate() const;

  /// What the others can be reached through, if separate().
  fsdprtContext *context() const;

  /// Tells the others of a failure; true if they did not know of one. Then this
  /// process is the one to report it.
  bool abort(const std::string &message);

  /// Loads the arguments and runs the entry, all on one thread per rank. After
  /// an error threads may still be running: nothing is left to do but to leave
  /// the process without waiting for them.
  llvm::Error run(fsdprtEntry function, const Inputs &inputs,
                  Progress &progress);

  /// Seconds of each repeat, from the first rank's begin to the last one's end.
  const std::vector<double> &seconds() const;

  /// The largest peak of these ranks.
  int64_t peakBytes() const;

  /// A result of a rank, in the memory of this process.
  const void *result(int64_t rank, size_t index) const;

  /// These ranks' events, rank by rank. Times count from a moment that all
  /// ranks share.
  std::vector<TraceEvent> trace() const;

private:
  struct State;
  explicit Ranks(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_RANKS_H
