//===- Checkpoint.h - tensors in one file or in several ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What --in names: a safetensors file, or the index of several, as large models
// have it (model.safetensors.index.json), which says which tensor is in which
// file of its folder. Of those only the files are opened that hold what
// somebody asks for.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_CHECKPOINT_H
#define FSDP_LAUNCHER_CHECKPOINT_H

#include "fsdp/Launcher/Safetensors.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::fsdp::launch {

class Checkpoint {
public:
  /// A tensor and its file; null if there is none.
  struct Place {
    const SafetensorsReader *reader = nullptr;
    const SafetensorsReader::Tensor *tensor = nullptr;
  };

  /// `wanted`: the names that find() will be asked for.
  static llvm::Expected<Checkpoint> open(llvm::StringRef path,
                                         const llvm::StringSet<> &wanted);

  const std::string &getPath() const { return path; }

  Place find(llvm::StringRef name) const;

  /// Names of all tensors, sorted.
  std::vector<std::string> names() const;

private:
  explicit Checkpoint(llvm::StringRef path) : path(path) {}
  llvm::Error openIndex(const File &file, const llvm::StringSet<> &wanted);
  llvm::Error addFile(File file);

  std::string path;
  bool isIndex = false;
  std::vector<std::unique_ptr<SafetensorsReader>> readers;
  llvm::StringMap<std::string> files; ///< of an index, by tensor
  llvm::StringMap<Place> places;      ///< of an index, what is wanted
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_CHECKPOINT_H
