//===- Results.h - results of all ranks, as lines and files -----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_RESULTS_H
#define FSDP_LAUNCHER_RESULTS_H

#include "fsdp/Launcher/Manifest.h"
#include "fsdp/Launcher/Progress.h"
#include "fsdp/Support/OutputFile.h"

#include <functional>

namespace mlir::fsdp::launch {

/// Finds a rank's buffer of result number `index`.
using ResultBuffer = std::function<const void *(int64_t rank, size_t index)>;

/// What an entry has come to.
struct Results {
  std::vector<std::string> lines; ///< "NAME TYPE checksum=..." per tensor
  std::vector<OutputFile> files;  ///< finished, to be published
};

/// Puts shards together (padding dropped), compares what must be equal on
/// several ranks, and writes what shall become `path`: nothing if that is
/// empty, a file per rank if it has "{rank}". With a file per rank, and without
/// a file for results that each rank has of its own, the tensors are those of
/// the ranks and called NAME@RANK in the lines. `onlyRank`: with a file per
/// rank, one line and one file of this rank alone.
llvm::Expected<Results>
writeResults(const Manifest &manifest, const EntrySignature &entry,
             const ResultBuffer &buffer, llvm::StringRef path,
             std::optional<int64_t> onlyRank, Progress &progress);

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_RESULTS_H
