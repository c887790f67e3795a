//===- TensorType.h - the types of tensors in a manifest --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_TENSORTYPE_H
#define FSDP_LAUNCHER_TENSORTYPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp::launch {

/// An element type, under the three names that it has.
struct Dtype {
  /// Storage: a format that nobody computes with here.
  enum Kind { Integer, Unsigned, Float, Storage };

  const char *name; ///< in IR: "bf16"
  const char *tag;  ///< in safetensors: "BF16"
  Kind kind;
  int bits;
  /// Of what is no integer; the significand has one bit more than
  /// `fractionBits`.
  int exponentBits, fractionBits;
  /// Of an element; or 1 if several of them share bytes, and then a byte counts
  /// as an element wherever one does not say otherwise.
  int bytes = bits < 8 ? 1 : bits / 8;

  bool isInteger() const { return kind == Integer || kind == Unsigned; }
  bool isPacked() const { return bits < 8 && kind == Storage; }

  /// How many true elements are in a number of elements or bytes.
  int64_t trueElements(int64_t count) const {
    return isPacked() ? count * 8 / bits : count;
  }

  static llvm::ArrayRef<Dtype> all();

  /// Null if there is no such type.
  static const Dtype *byName(llvm::StringRef name);
  static const Dtype *byTag(llvm::StringRef tag);
};

/// `tensor<8x3xbf16>`, or a scalar, `index`.
struct TensorType {
  std::string text;           ///< as it stands in the manifest
  std::vector<int64_t> shape; ///< in true elements
  const Dtype *dtype = nullptr;
  int64_t elements = 0; ///< bytes if they are packed

  /// `shape` with the last size in bytes if elements are packed. Layouts are of
  /// this one.
  std::vector<int64_t> storageShape() const;

  int64_t bytes() const { return elements * dtype->bytes; }

  bool operator==(const TensorType &other) const {
    return dtype == other.dtype && shape == other.shape;
  }

  /// Empty if `text` is no type of this kind, or too large for 62 bits.
  static std::optional<TensorType> parse(llvm::StringRef text);
};

/// "BF16 [8, 3]", the way messages about files put it.
std::string describe(llvm::StringRef tag, llvm::ArrayRef<int64_t> shape);

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_TENSORTYPE_H
