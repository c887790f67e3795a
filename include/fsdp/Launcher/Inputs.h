//===- Inputs.h - arguments of an entry, from files or fill -----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_INPUTS_H
#define FSDP_LAUNCHER_INPUTS_H

#include "fsdp/Launcher/Constants.h"
#include "fsdp/Launcher/Sources.h"

namespace mlir::fsdp::launch {

/// What arguments hold that no file has.
struct MadeUp {
  Constants constants;          ///< these win over files
  std::optional<uint64_t> seed; ///< of what is left
};

/// Where the arguments of an entry come from.
class Inputs {
public:
  /// Opens the files and finds every argument in them or in the fill, or
  /// refuses; with a file per rank those of `count` ranks from `first`. `notes`
  /// receives what is worth a word and no error.
  static llvm::Expected<Inputs> open(const EntrySignature &entry, int64_t first,
                                     int64_t count, SourceOptions options,
                                     const MadeUp &madeUp,
                                     std::vector<std::string> &notes);

  /// Writes what `rank` gets for argument `index` to `data`. From any thread.
  llvm::Error load(int64_t rank, size_t index, void *data) const;

private:
  Inputs(const EntrySignature &entry, Sources sources)
      : entry(entry), sources(std::move(sources)) {}
  void fillTensor(const EntryTensor &value, int64_t rank, char *data) const;
  void setTensor(const EntryTensor &value, int64_t rank,
                 llvm::StringRef element, char *data) const;

  const EntrySignature &entry;
  Sources sources;
  std::vector<std::string> constants; ///< by argument; empty: none
  std::optional<uint64_t> seed;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_INPUTS_H
