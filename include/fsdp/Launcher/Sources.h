//===- Sources.h - arguments of an entry, in files --------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file has full tensors, which are cut into shards while they are read, or,
// with "{rank}" in its name, what one rank holds. No full tensor is ever in
// memory for that.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_SOURCES_H
#define FSDP_LAUNCHER_SOURCES_H

#include "fsdp/Launcher/Checkpoint.h"
#include "fsdp/Launcher/Manifest.h"

namespace mlir::fsdp::launch {

/// What stands for the entry's name and for a rank in names of files.
inline constexpr llvm::StringRef entryMark = "{entry}", rankMark = "{rank}";

/// Replaces each `mark` in a file name.
std::string replaceMark(llvm::StringRef path, llvm::StringRef mark,
                        llvm::StringRef by);

/// Replaces each "{rank}" in a file name.
std::string pathOfRank(llvm::StringRef path, int64_t rank);

/// True if the file name has "{rank}": a file for each rank, with its own local
/// tensors, in place of one file with full tensors.
bool isPerRank(llvm::StringRef path);

/// Whether a file may have another dtype than the argument.
enum class Convert { None, Widen };

/// What is asked of files.
struct SourceOptions {
  std::vector<std::string> paths;
  Convert convert = Convert::None;

  enum Use { Never, IfThere, Always };
  std::vector<Use> use; ///< by argument
};

class Sources {
public:
  /// Opens the files for `count` ranks from `first` and finds the arguments in
  /// them, or refuses. `notes` receives what is worth a word and no error.
  static llvm::Expected<Sources> open(const EntrySignature &entry,
                                      int64_t first, int64_t count,
                                      const SourceOptions &options,
                                      std::vector<std::string> &notes);

  /// True if a file has argument number `index`.
  bool has(int64_t rank, size_t index) const {
    return !places.empty() && getSource(rank, index).place.tensor;
  }

  /// Writes what `rank` gets for the argument to `data`. From any thread.
  llvm::Error load(int64_t rank, size_t index, void *data) const;

private:
  /// Where an argument of a rank is.
  struct Source {
    Checkpoint::Place place;
    const Dtype *dtype = nullptr; ///< in the file
    bool perRank = false;         ///< the file has what the rank holds,
    bool isPadded = true;         ///< with padding or without
  };
  struct Runs;

  explicit Sources(const EntrySignature &entry) : entry(entry) {}
  llvm::Error openRank(int64_t rank, const SourceOptions &options);
  llvm::Expected<Source> check(const EntryTensor &value, int64_t rank,
                               Checkpoint::Place place, bool perRank,
                               Convert convert) const;
  void note(const SourceOptions &options, std::vector<std::string> &notes);
  const Source &getSource(int64_t rank, size_t index) const {
    return places[places.size() == 1 ? 0 : rank - first][index];
  }

  const EntrySignature &entry;
  int64_t first = 0; ///< the rank of places[0]
  std::vector<std::unique_ptr<Checkpoint>> checkpoints; ///< that all ranks read
  std::vector<std::vector<std::unique_ptr<Checkpoint>>> ofRanks;
  std::vector<std::vector<Source>> places; ///< by rank, or of all; by argument
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_SOURCES_H
