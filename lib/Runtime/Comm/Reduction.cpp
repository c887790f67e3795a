//===- Reduction.cpp - sums over the members of a group -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of elements is kept in registers' type (f32, or f64) in a small
// buffer while the members' rows are added to it one after another: each row is
// read once, from start to end of the block, by a loop without branches that
// the compiler turns into vector code. 16-bit types round by integer
// arithmetic, because the hardware's own conversions are not everywhere and
// one of them (vcvtneps2bf16) flushes subnormals.
//
// This file must be compiled with -ffp-contract=off: a fused multiply-add would
// round once where the rules round twice.
//
//===----------------------------------------------------------------------===//

#include "Comm/Reduction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace fsdprt;

int64_t fsdprt::sizeOf(fsdprtDtype dtype) {
  switch (dtype) {
  case FSDPRT_F16:
  case FSDPRT_BF16:
    return 2;
  case FSDPRT_F32:
    return 4;
  case FSDPRT_F64:
    return 8;
  case FSDPRT_BYTES:
    return 1;
  }
  return 1;
}

double fsdprt::roundTo(fsdprtDtype dtype, double value) {
  // Digits of the significand, and the exponents of the smallest normal and of
  // the largest number.
  int digits, smallest, largest;
  switch (dtype) {
  case FSDPRT_F16:
    digits = 11, smallest = -14, largest = 15;
    break;
  case FSDPRT_BF16:
    digits = 8, smallest = -126, largest = 127;
    break;
  case FSDPRT_F32:
    digits = 24, smallest = -126, largest = 127;
    break;
  default:
    return value;
  }
  if (value == 0 || !std::isfinite(value))
    return value;
  // The quantum is a power of two and the quotient has at most 53 digits, so
  // nearbyint is the only operation here that rounds.
  int exponent = std::max(std::ilogb(value), smallest);
  double quantum = std::ldexp(1.0, exponent - (digits - 1));
  double rounded = std::nearbyint(value / quantum) * quantum;
  if (std::fabs(rounded) >= std::ldexp(1.0, largest + 1))
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

#if defined(__GNUC__)
#define FSDPRT_INLINE inline __attribute__((always_inline))
#else
#define FSDPRT_INLINE inline
#endif

namespace {

template <typename To, typename From>
FSDPRT_INLINE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// `store` rounds; `round` is `load` of `store`.
struct BF16 {
  using Storage = uint16_t;
  using Value = float;

  static FSDPRT_INLINE float load(uint16_t x) {
    return bits<float>(static_cast<uint32_t>(x) << 16);
  }
  static FSDPRT_INLINE float round(float value) {
    uint32_t x = bits<uint32_t>(value);
    uint32_t nan = x | 0x00400000;
    uint32_t number = x + 0x7FFF + ((x >> 16) & 1);
    bool isNaN = (x & 0x7FFFFFFF) > 0x7F800000;
    return bits<float>((isNaN ? nan : number) & 0xFFFF0000);
  }
  static FSDPRT_INLINE uint16_t store(float value) {
    return static_cast<uint16_t>(bits<uint32_t>(round(value)) >> 16);
  }
};

struct F16 {
  using Storage = uint16_t;
  using Value = float;

  static FSDPRT_INLINE float load(uint16_t x) {
    // Move the exponent to f32's bias. Infinity and NaN go to f32's highest
    // exponent; a subnormal m * 2^-24 is read as 2^-14 + m * 2^-24, minus
    // 2^-14.
    uint32_t magnitude = static_cast<uint32_t>(x & 0x7FFF) << 13;
    uint32_t exponent = magnitude & 0x0F800000;
    uint32_t normal = magnitude + (112u << 23);
    uint32_t special = magnitude + (224u << 23);
    float subnormal =
        bits<float>(magnitude + (113u << 23)) - bits<float>(113u << 23);
    uint32_t result = exponent == 0x0F800000 ? special : normal;
    result = exponent == 0 ? bits<uint32_t>(subnormal) : result;
    return bits<float>(result | static_cast<uint32_t>(x & 0x8000) << 16);
  }
  static FSDPRT_INLINE uint16_t store(float value) {
    uint32_t x = bits<uint32_t>(value);
    uint32_t magnitude = x & 0x7FFFFFFF;
    // Below the smallest normal the sum with 0.5 has a unit of 2^-24 in the
    // last place, so that the addition rounds as the conversion should.
    uint32_t subnormal =
        bits<uint32_t>(bits<float>(magnitude) + 0.5f) - bits<uint32_t>(0.5f);
    uint32_t normal =
        (magnitude - (112u << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
    uint32_t special = magnitude > 0x7F800000 ? 0x7E00 : 0x7C00;
    uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    result = magnitude >= (143u << 23) ? special : result;
    return static_cast<uint16_t>(result | ((x >> 16) & 0x8000));
  }
  static FSDPRT_INLINE float round(float value) { return load(store(value)); }
};

template <typename T>
struct Native {
  using Storage = T;
  using Value = T;
  static FSDPRT_INLINE T load(T x) { return x; }
  static FSDPRT_INLINE T round(T x) { return x; }
  static FSDPRT_INLINE T store(T x) { return x; }
};

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

using Kernel = void (*)(const void *const *rows, int64_t members, int64_t count,
                        double multiplier, void *result);

template <typename T, bool multiply, bool wide>
FSDPRT_INLINE void reduceBlocks(const void *const *rows, int64_t members,
                                int64_t count, double multiplier,
                                void *result) {
  using Storage = typename T::Storage;
  using Value = typename T::Value;
  constexpr int64_t blockSize = 1024;
  const Value factor = static_cast<Value>(multiplier);
  Value sum[blockSize];
  for (int64_t begin = 0; begin < count; begin += blockSize) {
    const int64_t size = std::min(blockSize, count - begin);
    for (int64_t member = 0; member < members; ++member) {
      const Storage *row = static_cast<const Storage *>(rows[member]) + begin;
      if (member == 0) {
        for (int64_t i = 0; i < size; ++i) {
          Value x = T::load(row[i]);
          sum[i] = multiply ? T::round(x * factor) : x;
        }
        continue;
      }
      for (int64_t i = 0; i < size; ++i) {
        Value x = T::load(row[i]);
        x = multiply ? T::round(x * factor) : x;
        sum[i] = wide ? sum[i] + x : T::round(sum[i] + x);
      }
    }
    Storage *out = static_cast<Storage *>(result) + begin;
    for (int64_t i = 0; i < size; ++i)
      out[i] = T::store(sum[i]);
  }
}

template <typename T, bool multiply, bool wide>
void reduceBaseline(const void *const *rows, int64_t members, int64_t count,
                    double multiplier, void *result) {
  reduceBlocks<T, multiply, wide>(rows, members, count, multiplier, result);
}

// The same loop for wider vectors, where the machine that runs has them. AVX2
// alone brings no fused multiply-add, so both give the same bits.
#if defined(__GNUC__) && defined(__x86_64__)
template <typename T, bool multiply, bool wide>
__attribute__((target("avx2"))) void
reduceAvx2(const void *const *rows, int64_t members, int64_t count,
           double multiplier, void *result) {
  reduceBlocks<T, multiply, wide>(rows, members, count, multiplier, result);
}

template <typename T, bool multiply, bool wide>
Kernel kernel() {
  return __builtin_cpu_supports("avx2") ? reduceAvx2<T, multiply, wide>
                                        : reduceBaseline<T, multiply, wide>;
}
#else
template <typename T, bool multiply, bool wide>
Kernel kernel() {
  return reduceBaseline<T, multiply, wide>;
}
#endif

template <typename T>
Kernel kernel(const Reduction &reduction) {
  if (reduction.multiply)
    return reduction.wide ? kernel<T, true, true>() : kernel<T, true, false>();
  return reduction.wide ? kernel<T, false, true>() : kernel<T, false, false>();
}

Kernel kernel(const Reduction &reduction) {
  switch (reduction.dtype) {
  case FSDPRT_F16:
    return kernel<F16>(reduction);
  case FSDPRT_BF16:
    return kernel<BF16>(reduction);
  case FSDPRT_F32:
    return kernel<Native<float>>(reduction);
  case FSDPRT_F64:
    return kernel<Native<double>>(reduction);
  case FSDPRT_BYTES:
    break;
  }
  return nullptr;
}

} // namespace

void fsdprt::reduceRows(const Reduction &reduction, const void *const *rows,
                        int64_t members, int64_t count, void *result) {
  kernel(reduction)(rows, members, count, reduction.multiplier, result);
}

void fsdprt::store(fsdprtDtype dtype, double value, void *element) {
  value = roundTo(dtype, value);
  auto write = [&](auto bits) { std::memcpy(element, &bits, sizeof(bits)); };
  switch (dtype) {
  case FSDPRT_F16:
    return write(F16::store(static_cast<float>(value)));
  case FSDPRT_BF16:
    return write(BF16::store(static_cast<float>(value)));
  case FSDPRT_F32:
    return write(static_cast<float>(value));
  case FSDPRT_F64:
    return write(value);
  case FSDPRT_BYTES:
    break;
  }
}
