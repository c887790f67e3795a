//===- Elements.h - values of elements: fill, summary -----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What fsdp-run computes itself, defined to the bit so that an independent
// program makes the same: the values that --fill gives to inputs, and the
// checksums of results.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_LAUNCHER_ELEMENTS_H
#define FSDP_LIB_LAUNCHER_ELEMENTS_H

#include "fsdp/Launcher/TensorType.h"

namespace mlir::fsdp::launch {

/// The standard FNV-1a hash with 64 bits.
uint64_t fnv1a64(const void *data, int64_t bytes,
                 uint64_t start = 0xCBF29CE484222325);

/// Writes elements [begin, begin + count) of a tensor. With
/// h = splitmix64(key ^ f), element f is h mod 100 for integers (h mod 2 for
/// i1), and so are the bits of an f8E8M0FNU; else it is ((h >> 40) - 2^23) /
/// 2^23, rounded to the dtype. Of packed elements byte f is h mod 256.
void fill(const Dtype &dtype, uint64_t key, int64_t begin, int64_t count,
          void *data);

/// The key of a tensor's fill; `rank` for what each rank has of its own, else
/// 0.
inline uint64_t fillKey(uint64_t seed, llvm::StringRef name, int64_t rank) {
  return seed ^ fnv1a64(name.data(), name.size()) ^
         (static_cast<uint64_t>(rank) << 40);
}

/// True if `to` has every value of `from` and both are ordinary floating-point
/// types: f16 or bf16 to f32 or f64, f32 to f64.
bool canWiden(const Dtype &from, const Dtype &to);

/// Writes `count` elements of `from` as such of `to`, without loss.
void widen(const Dtype &from, const Dtype &to, const void *in, int64_t count,
           void *out);

/// What a result line says about a tensor, from its elements in order.
class Summary {
public:
  explicit Summary(const Dtype &dtype);

  void add(const void *data, int64_t elements);

  /// "checksum=0123456789abcdef min=-1 max=0.5"; NaNs are counted, and take no
  /// part in the minimum and maximum.
  std::string text() const;

  /// The smallest number.
  std::string minimum() const;

private:
  std::string number(double real, int64_t integer) const;
  template <typename Storage, typename Decode>
  void addFloats(const void *data, int64_t elements, Decode decode);
  template <typename Storage>
  void addIntegers(const void *data, int64_t elements);
  void addPacked(const void *data, int64_t bytes);

  const Dtype &dtype;
  const float *values; ///< by bits, of types whose decoding is slow
  uint64_t hash = 0xCBF29CE484222325;
  int64_t numbers = 0, nans = 0;
  double minFloat = 0, maxFloat = 0;
  int64_t minInteger = 0, maxInteger = 0;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LIB_LAUNCHER_ELEMENTS_H
