//===- TensorType.cpp - the types of tensors in a manifest ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorType.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using llvm::StringRef;

static const Dtype dtypes[] = {
    {"f16", "F16", Dtype::Float, 2, 5, 10},
    {"bf16", "BF16", Dtype::Float, 2, 8, 7},
    {"f32", "F32", Dtype::Float, 4, 8, 23},
    {"f64", "F64", Dtype::Float, 8, 11, 52},
    {"f8E4M3FN", "F8_E4M3", Dtype::Float, 1, 4, 3},
    {"f8E5M2", "F8_E5M2", Dtype::Float, 1, 5, 2},
    {"i1", "BOOL", Dtype::Integer, 1, 0, 0},
    {"i8", "I8", Dtype::Integer, 1, 0, 0},
    {"i16", "I16", Dtype::Integer, 2, 0, 0},
    {"i32", "I32", Dtype::Integer, 4, 0, 0},
    {"i64", "I64", Dtype::Integer, 8, 0, 0},
    {"index", "I64", Dtype::Integer, 8, 0, 0},
};

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
  // An extent of 0 makes the product 0 but not the others small: bound them
  // without it, as strides of the layout are products of some of them.
  int64_t bound = type.dtype->bytes;
  type.elements = 1;
  for (int64_t extent : type.shape) {
    if (extent != 0 && bound > (int64_t(1) << 62) / extent)
      return std::nullopt;
    bound *= extent == 0 ? 1 : extent;
    type.elements *= extent;
  }
  return type;
}

std::string mlir::fsdp::describe(StringRef tag, llvm::ArrayRef<int64_t> shape) {
  std::string text = tag.str() + " [";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}
