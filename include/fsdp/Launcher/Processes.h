//===- Processes.h - ranks that are processes, after a run ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0 prints and writes what all of them have come to, so the others send it
// what it lacks. Every function is collective over all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_PROCESSES_H
#define FSDP_LAUNCHER_PROCESSES_H

#include "fsdp/Launcher/Manifest.h"
#include "fsdp/Launcher/Results.h"
#include "fsdp/Runtime/Runtime.h"

namespace mlir::fsdp::launch {

class Processes {
public:
  Processes(fsdprtContext *context, int64_t rank, int64_t ranks,
            double timeoutSeconds)
      : context(context), rank(rank), ranks(ranks),
        timeoutSeconds(timeoutSeconds) {}

  /// Each value becomes the largest one of all ranks.
  llvm::Error maximum(std::vector<double> &values) const;

  /// Rank 0 gets every rank's text, the others nothing.
  llvm::Expected<std::vector<std::string>> gather(const std::string &what,
                                                  llvm::StringRef mine) const;

  /// The results of all ranks, for rank 0. `buffer` finds those of this rank.
  /// Equal results travel and are kept once.
  class AllResults {
  public:
    const void *find(int64_t rank, size_t index) const {
      return buffers[index][rank];
    }

  private:
    friend class Processes;
    std::vector<std::vector<const void *>> buffers; ///< by result, by rank
    std::vector<std::unique_ptr<char[]>> received;
  };
  llvm::Expected<AllResults> results(const EntrySignature &entry,
                                     const ResultBuffer &buffer) const;

private:
  llvm::Error exchange(const std::string &what, const void *send, int64_t bytes,
                       void *receive) const;
  llvm::Error collect(const std::string &what, int64_t from, const void *send,
                      int64_t bytes, void *receive) const;

  fsdprtContext *const context;
  const int64_t rank, ranks;
  const double timeoutSeconds;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_PROCESSES_H
