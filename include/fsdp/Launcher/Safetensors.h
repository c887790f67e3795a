//===- Safetensors.h - tensors in files -------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: eight bytes of header length (little endian), a JSON
// header, the data. The reader checks the whole header before anything is read:
// every tensor's size, and that the data has no gap, no overlap and its full
// length. A dtype that it does not know is no fault until somebody asks for the
// tensor. Data moves by position, from any thread, and is never mapped, so that
// a file of any size costs no memory.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_SAFETENSORS_H
#define FSDP_LAUNCHER_SAFETENSORS_H

#include "fsdp/Launcher/TensorType.h"
#include "fsdp/Support/OutputFile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir::fsdp::launch {

/// A file that is open for reading by position.
class File {
public:
  static llvm::Expected<File> open(llvm::StringRef path);
  File(File &&other)
      : path(std::move(other.path)), descriptor(other.descriptor) {
    other.descriptor = -1;
  }
  File &operator=(File &&) = delete;
  ~File();

  const std::string &getPath() const { return path; }
  llvm::Expected<int64_t> size() const;
  llvm::Expected<std::string> readAll(int64_t limit) const;
  llvm::Error read(int64_t offset, void *data, int64_t bytes) const;

private:
  File(llvm::StringRef path, int descriptor)
      : path(path), descriptor(descriptor) {}
  llvm::Error lastError(llvm::StringRef what) const;

  std::string path;
  int descriptor;
};

class SafetensorsReader {
public:
  struct Tensor {
    std::string tag; ///< "BF16"
    std::vector<int64_t> shape;
    int64_t offset; ///< in the file
    int64_t bytes;
  };

  static llvm::Expected<SafetensorsReader> open(File file);

  const std::string &path() const { return file.getPath(); }

  /// Null if there is none.
  const Tensor *find(llvm::StringRef name) const;

  /// Names of all tensors, sorted.
  std::vector<std::string> names() const;

  /// Reads bytes [begin, begin + bytes) of a tensor.
  llvm::Error read(const Tensor &tensor, int64_t begin, void *data,
                   int64_t bytes) const {
    return file.read(tensor.offset + begin, data, bytes);
  }

private:
  explicit SafetensorsReader(File file) : file(std::move(file)) {}
  llvm::Error parse();

  File file;
  llvm::StringMap<Tensor> tensors;
};

class SafetensorsWriter {
public:
  struct Tensor {
    std::string name;
    const TensorType *type;
  };

  /// Begins a file with its header; the tensors stand in the data in the order
  /// of the list.
  static llvm::Expected<SafetensorsWriter>
  create(llvm::StringRef path, llvm::ArrayRef<Tensor> tensors);

  /// Writes bytes [begin, begin + bytes) of tensor number `index`.
  llvm::Error write(size_t index, int64_t begin, const void *data,
                    int64_t bytes) const {
    return file.write(offsets[index] + begin, data, bytes);
  }

  /// Gives the file away once all is written.
  OutputFile takeFile() { return std::move(file); }

private:
  explicit SafetensorsWriter(OutputFile file) : file(std::move(file)) {}

  OutputFile file;
  std::vector<int64_t> offsets; ///< in the file
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_SAFETENSORS_H
