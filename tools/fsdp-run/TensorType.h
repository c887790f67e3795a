//===- TensorType.h - the types of tensors in a manifest --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_FSDP_RUN_TENSORTYPE_H
#define FSDP_TOOLS_FSDP_RUN_TENSORTYPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// An element type, under the three names that it has.
struct Dtype {
  enum Kind { Integer, Float };

  const char *name; ///< in IR: "bf16"
  const char *tag;  ///< in safetensors: "BF16"
  Kind kind;
  int bytes;
  /// Of a Float; the significand has one bit more than `fractionBits`.
  int exponentBits, fractionBits;

  /// Null if there is no such type.
  static const Dtype *byName(llvm::StringRef name);
  static const Dtype *byTag(llvm::StringRef tag);
};

/// `tensor<8x3xbf16>`, or a scalar, `index`.
struct TensorType {
  std::string text; ///< as it stands in the manifest
  std::vector<int64_t> shape;
  const Dtype *dtype = nullptr;
  int64_t elements = 0;

  int64_t bytes() const { return elements * dtype->bytes; }

  bool operator==(const TensorType &other) const {
    return dtype == other.dtype && shape == other.shape;
  }

  /// Empty if `text` is no type of this kind, or too large for 62 bits.
  static std::optional<TensorType> parse(llvm::StringRef text);
};

/// "BF16 [8, 3]", the way messages about files put it.
std::string describe(llvm::StringRef tag, llvm::ArrayRef<int64_t> shape);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_FSDP_RUN_TENSORTYPE_H
