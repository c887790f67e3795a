//===- Inputs.h - arguments of an entry, from files or fill -----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_FSDP_RUN_INPUTS_H
#define FSDP_TOOLS_FSDP_RUN_INPUTS_H

#include "Constants.h"
#include "Manifest.h"
#include "Safetensors.h"

namespace mlir::fsdp {

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

/// What arguments hold that no file has.
struct MadeUp {
  Constants constants;          ///< these win over files
  std::optional<uint64_t> seed; ///< of what is left
};

/// Where the arguments of an entry come from. Full tensors are cut into shards
/// while they are read; no full tensor is ever held for that.
class Inputs {
public:
  /// Opens the files (`path` may be empty) and finds every argument in them, or
  /// refuses; with a file per rank those of `count` ranks from `first`. `notes`
  /// receives what is worth a word and no error.
  static llvm::Expected<Inputs> open(const Entry &entry, int64_t first,
                                     int64_t count, llvm::StringRef path,
                                     const MadeUp &madeUp,
                                     std::vector<std::string> &notes);

  /// Writes what `rank` gets for argument `index` to `data`. From any thread.
  llvm::Error load(int64_t rank, size_t index, void *data) const;

private:
  explicit Inputs(const Entry &entry) : entry(entry) {}
  llvm::Error check(const SafetensorsReader &reader, const Value &value) const;
  llvm::Error cut(const SafetensorsReader &reader, const Value &value,
                  int64_t shard, char *data) const;
  void fillValue(const Value &value, int64_t rank, char *data) const;
  void setValue(const Value &value, int64_t rank, llvm::StringRef element,
                char *data) const;

  const Entry &entry;
  bool perRank = false;
  int64_t first = 0;                      ///< rank of the first reader
  std::vector<SafetensorsReader> readers; ///< one, or one per rank
  std::vector<std::string> constants;     ///< by argument; empty: none
  std::optional<uint64_t> seed;
};

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_FSDP_RUN_INPUTS_H
