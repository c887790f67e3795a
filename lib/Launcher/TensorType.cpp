//===- TensorType.cpp - the types of tensors in a manifest ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/TensorType.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::StringRef;

static const Dtype dtypes[] = {
    {"f16", "F16", Dtype::Float, 16, 5, 10},
    {"bf16", "BF16", Dtype::Float, 16, 8, 7},
    {"f32", "F32", Dtype::Float, 32, 8, 23},
    {"f64", "F64", Dtype::Float, 64, 11, 52},
    {"f8E4M3FN", "F8_E4M3", Dtype::Float, 8, 4, 3},
    {"f8E5M2", "F8_E5M2", Dtype::Float, 8, 5, 2},
    {"f8E8M0FNU", "F8_E8M0", Dtype::Storage, 8, 8, 0},
    {"f6E2M3FN", "F6_E2M3", Dtype::Storage, 6, 2, 3},
    {"f6E3M2FN", "F6_E3M2", Dtype::Storage, 6, 3, 2},
    {"f4E2M1FN", "F4", Dtype::Storage, 4, 2, 1},
    {"i1", "BOOL", Dtype::Integer, 8, 0, 0},
    {"i8", "I8", Dtype::Integer, 8, 0, 0},
    {"i16", "I16", Dtype::Integer, 16, 0, 0},
    {"i32", "I32", Dtype::Integer, 32, 0, 0},
    {"i64", "I64", Dtype::Integer, 64, 0, 0},
    {"ui8", "U8", Dtype::Unsigned, 8, 0, 0},
    {"ui16", "U16", Dtype::Unsigned, 16, 0, 0},
    {"ui32", "U32", Dtype::Unsigned, 32, 0, 0},
    {"ui64", "U64", Dtype::Unsigned, 64, 0, 0},
    {"index", "I64", Dtype::Integer, 64, 0, 0},
};

llvm::ArrayRef<Dtype> Dtype::all() { return dtypes; }

const Dtype *Dtype::byName(StringRef name) {
  for (const Dtype &dtype : dtypes)
    if (name == dtype.name)
      return &dtype;
  return nullptr;
}

const Dtype *Dtype::byTag(StringRef tag) {
  for (const Dtype &dtype : dtypes)
    if (tag == dtype.tag)
      return &dtype;
  return nullptr;
}

/// Elements of groups that fill whole bytes.
static int64_t groupOf(const Dtype &dtype) {
  return !dtype.isPacked() ? 1 : dtype.bits == 4 ? 2 : 4;
}

std::vector<int64_t> TensorType::storageShape() const {
  std::vector<int64_t> result = shape;
  if (int64_t group = groupOf(*dtype); group != 1)
    result.back() = result.back() / group * (group * dtype->bits / 8);
  return result;
}

std::optional<TensorType> TensorType::parse(StringRef text) {
  TensorType type;
  type.text = text.str();
  StringRef rest = text;
  if (rest.consume_front("tensor<") && !rest.consume_back(">"))
    return std::nullopt;
  while (!rest.empty() && llvm::isDigit(rest.front())) {
    int64_t extent;
    if (rest.consumeInteger(10, extent) || !rest.consume_front("x"))
      return std::nullopt;
    type.shape.push_back(extent);
  }
  type.dtype = Dtype::byName(rest);
  if (!type.dtype || (!type.shape.empty() && rest.size() == text.size()))
    return std::nullopt;
  if (type.dtype->isPacked() &&
      (type.shape.empty() || type.shape.back() % groupOf(*type.dtype) != 0))
    return std::nullopt; // no whole bytes
  // An extent of 0 makes the product 0 but not the others small: bound them
  // without it, as strides of the layout are products of some of them.
  int64_t bound = type.dtype->bytes;
  type.elements = 1;
  for (int64_t extent : type.storageShape()) {
    if (extent != 0 && bound > (int64_t(1) << 62) / extent)
      return std::nullopt;
    bound *= extent == 0 ? 1 : extent;
    type.elements *= extent;
  }
  return type;
}

std::string mlir::fsdp::launch::describe(StringRef tag,
                                         llvm::ArrayRef<int64_t> shape) {
  std::string text = tag.str() + " [";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}
