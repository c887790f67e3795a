//===- Elements.cpp - values of elements: fill, summary -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;

template <typename To, typename From>
static To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

uint64_t mlir::fsdp::launch::fnv1a64(const void *data, int64_t bytes,
                                     uint64_t start) {
  const unsigned char *at = static_cast<const unsigned char *>(data);
  uint64_t hash = start;
  for (int64_t i = 0; i < bytes; ++i)
    hash = (hash ^ at[i]) * 0x100000001B3;
  return hash;
}

//===----------------------------------------------------------------------===//
// Fill
//===----------------------------------------------------------------------===//

/// The finaliser of Steele, Lea and Flood's SplitMix.
static uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// `value`, of magnitude at most 1, rounded to a type with fewer bits than f32.
template <typename Storage, int exponentBits, int fractionBits>
static Storage narrow(float value) {
  constexpr int bias = (1 << (exponentBits - 1)) - 1;
  constexpr int shift = 23 - fractionBits;
  uint32_t x = bits<uint32_t>(value), magnitude = x & 0x7FFFFFFF, result;
  if (magnitude < uint32_t(127 + 1 - bias) << 23) {
    // Below the smallest normal the unit is constant. Rounding up to the
    // smallest normal gives its bits, too. (No fill value is as small in bf16,
    // whose exponents are those of f32.)
    float unit = std::ldexp(1.0f, std::max(1 - bias - fractionBits, -126));
    result = static_cast<uint32_t>(std::nearbyint(std::fabs(value) / unit));
  } else {
    uint32_t half = (1u << (shift - 1)) - 1;
    result = (magnitude + half + ((magnitude >> shift) & 1)) >> shift;
    result -= uint32_t(127 - bias) << fractionBits;
  }
  uint32_t sign = x >> 31 << (exponentBits + fractionBits);
  return static_cast<Storage>(result | sign);
}

template <typename Storage, typename Encode>
static void fillWith(uint64_t key, int64_t begin, int64_t count, void *data,
                     Encode encode) {
  Storage *out = static_cast<Storage *>(data);
  for (int64_t i = 0; i < count; ++i)
    out[i] = encode(splitmix64(key ^ static_cast<uint64_t>(begin + i)));
}

void mlir::fsdp::launch::fill(const Dtype &dtype, uint64_t key, int64_t begin,
                              int64_t count, void *data) {
  if (dtype.kind != Dtype::Float) {
    const uint64_t values = std::strcmp(dtype.name, "i1") == 0 ? 2
                            : dtype.isPacked()                 ? 256
                                                               : 100;
    auto integer = [values](uint64_t h) { return h % values; };
    switch (dtype.bytes) {
    case 1:
      return fillWith<uint8_t>(key, begin, count, data, integer);
    case 2:
      return fillWith<uint16_t>(key, begin, count, data, integer);
    case 4:
      return fillWith<uint32_t>(key, begin, count, data, integer);
    default:
      return fillWith<uint64_t>(key, begin, count, data, integer);
    }
  }
  // 24 bits with a sign are exact in f32; every narrower type is one rounding
  // away.
  auto number = [](uint64_t h) {
    int32_t numerator = static_cast<int32_t>(h >> 40) - (1 << 23);
    return static_cast<float>(numerator) * 0x1p-23f;
  };
  switch (dtype.fractionBits) {
  case 52:
    return fillWith<double>(key, begin, count, data, number);
  case 23:
    return fillWith<float>(key, begin, count, data, number);
  case 10:
    return fillWith<uint16_t>(key, begin, count, data, [&](uint64_t h) {
      return narrow<uint16_t, 5, 10>(number(h));
    });
  case 7:
    return fillWith<uint16_t>(key, begin, count, data, [&](uint64_t h) {
      return narrow<uint16_t, 8, 7>(number(h));
    });
  case 3:
    return fillWith<uint8_t>(key, begin, count, data, [&](uint64_t h) {
      return narrow<uint8_t, 4, 3>(number(h));
    });
  default:
    return fillWith<uint8_t>(key, begin, count, data, [&](uint64_t h) {
      return narrow<uint8_t, 5, 2>(number(h));
    });
  }
}

//===----------------------------------------------------------------------===//
// Decode
//===----------------------------------------------------------------------===//

/// The value of a number of up to 16 bits, of any format.
static float decode(const Dtype &dtype, uint32_t x) {
  uint32_t exponents = 1u << dtype.exponentBits;
  uint32_t exponent = (x >> dtype.fractionBits) & (exponents - 1);
  uint32_t fraction = x & ((1u << dtype.fractionBits) - 1);
  int bias = static_cast<int>(exponents / 2) - 1;
  if (dtype.fractionBits == 0) // f8E8M0FNU: a power of two or a NaN
    return x == exponents - 1 ? std::numeric_limits<float>::quiet_NaN()
                              : std::ldexp(1.0f, int(x) - bias);
  bool hasInfinity =
      dtype.kind == Dtype::Float && std::strcmp(dtype.name, "f8E4M3FN") != 0;
  float value;
  if (hasInfinity && exponent == exponents - 1)
    value = fraction ? std::numeric_limits<float>::quiet_NaN()
                     : std::numeric_limits<float>::infinity();
  else if (dtype.bits == 8 && !hasInfinity && exponent == exponents - 1 &&
           fraction == 7)
    value = std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(float(fraction), 1 - bias - dtype.fractionBits);
  else
    value = std::ldexp(float(fraction | 1u << dtype.fractionBits),
                       int(exponent) - bias - dtype.fractionBits);
  return x >> (dtype.bits - 1) ? -value : value;
}

static std::vector<float> decodeAll(const Dtype &dtype) {
  std::vector<float> values;
  bool isNarrow = !dtype.isInteger() && dtype.bits <= 16;
  for (uint32_t x = 0; isNarrow && x < 1u << dtype.bits; ++x)
    values.push_back(decode(dtype, x));
  return values;
}

/// The values of a type by their bits, from a table that is made once; null for
/// a type that needs none.
static const float *valuesOf(const Dtype &dtype) {
  static const std::vector<std::vector<float>> tables = [] {
    std::vector<std::vector<float>> tables;
    for (const Dtype &dtype : Dtype::all())
      tables.push_back(decodeAll(dtype));
    return tables;
  }();
  return tables[&dtype - Dtype::all().begin()].data();
}

//===----------------------------------------------------------------------===//
// Widen
//===----------------------------------------------------------------------===//

bool mlir::fsdp::launch::canWiden(const Dtype &from, const Dtype &to) {
  return from.kind == Dtype::Float && to.kind == Dtype::Float &&
         from.bytes >= 2 && to.bytes >= 4 && from.bytes < to.bytes;
}

template <typename From, typename To, typename Decode>
static void widenWith(const void *in, int64_t count, void *out, Decode decode) {
  const char *from = static_cast<const char *>(in); // of any alignment
  To *to = static_cast<To *>(out);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    to[i] = decode(value);
  }
}

void mlir::fsdp::launch::widen(const Dtype &from, const Dtype &to,
                               const void *in, int64_t count, void *out) {
  auto toEither = [&](auto sample, auto decode) {
    using From = decltype(sample);
    return to.bytes == 4 ? widenWith<From, float>(in, count, out, decode)
                         : widenWith<From, double>(in, count, out, decode);
  };
  switch (from.fractionBits) {
  case 23:
    return widenWith<float, double>(in, count, out, [](float x) { return x; });
  case 7:
    return toEither(uint16_t(), [](uint16_t x) {
      return bits<float>(static_cast<uint32_t>(x) << 16);
    });
  default:
    return toEither(uint16_t(), [values = valuesOf(from)](uint16_t x) {
      return values[x];
    });
  }
}

//===----------------------------------------------------------------------===//
// Summary
//===----------------------------------------------------------------------===//

Summary::Summary(const Dtype &dtype) : dtype(dtype), values(valuesOf(dtype)) {}

template <typename Storage, typename Decode>
void Summary::addFloats(const void *data, int64_t elements, Decode decode) {
  const Storage *in = static_cast<const Storage *>(data);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto min = decode(Storage()), max = min;
  min = static_cast<decltype(min)>(infinity), max = -min;
  int64_t unordered = 0;
  for (int64_t i = 0; i < elements; ++i) {
    auto value = decode(in[i]);
    min = value < min ? value : min;
    max = value > max ? value : max;
    unordered += value != value;
  }
  nans += unordered;
  if (unordered == elements)
    return;
  minFloat = numbers == 0 ? min : std::min<double>(minFloat, min);
  maxFloat = numbers == 0 ? max : std::max<double>(maxFloat, max);
  numbers += elements - unordered;
}

template <typename Storage>
void Summary::addIntegers(const void *data, int64_t elements) {
  // Of 64 bits, signed or not.
  using Wide = std::conditional_t<std::is_signed_v<Storage>, int64_t, uint64_t>;
  const Storage *in = static_cast<const Storage *>(data);
  if (elements == 0)
    return;
  Wide min = *std::min_element(in, in + elements);
  Wide max = *std::max_element(in, in + elements);
  minInteger = numbers == 0 ? min : std::min<Wide>(minInteger, min);
  maxInteger = numbers == 0 ? max : std::max<Wide>(maxInteger, max);
  numbers += elements;
}

/// Two elements of 4 bits per byte, or four of 6 bits per three bytes, from the
/// lowest bit on.
void Summary::addPacked(const void *data, int64_t bytes) {
  const unsigned char *in = static_cast<const unsigned char *>(data);
  uint8_t codes[4];
  const int group = dtype.bits == 4 ? 1 : 3;
  for (int64_t i = 0; i + group <= bytes; i += group) {
    uint32_t word = in[i];
    if (group == 3)
      word |= uint32_t(in[i + 1]) << 8 | uint32_t(in[i + 2]) << 16;
    const int count = 8 * group / dtype.bits;
    for (int element = 0; element < count; ++element)
      codes[element] =
          word >> (element * dtype.bits) & ((1u << dtype.bits) - 1);
    addFloats<uint8_t>(codes, count, [this](uint8_t x) { return values[x]; });
  }
}

void Summary::add(const void *data, int64_t elements) {
  hash = fnv1a64(data, elements * dtype.bytes, hash);
  if (dtype.kind == Dtype::Integer) {
    switch (dtype.bytes) {
    case 1:
      return addIntegers<int8_t>(data, elements);
    case 2:
      return addIntegers<int16_t>(data, elements);
    case 4:
      return addIntegers<int32_t>(data, elements);
    default:
      return addIntegers<int64_t>(data, elements);
    }
  }
  if (dtype.kind == Dtype::Unsigned) {
    switch (dtype.bytes) {
    case 1:
      return addIntegers<uint8_t>(data, elements);
    case 2:
      return addIntegers<uint16_t>(data, elements);
    case 4:
      return addIntegers<uint32_t>(data, elements);
    default:
      return addIntegers<uint64_t>(data, elements);
    }
  }
  if (dtype.isPacked())
    return addPacked(data, elements);
  switch (dtype.fractionBits) {
  case 52:
    return addFloats<double>(data, elements, [](double x) { return x; });
  case 23:
    return addFloats<float>(data, elements, [](float x) { return x; });
  case 7:
    return addFloats<uint16_t>(data, elements, [](uint16_t x) {
      return bits<float>(static_cast<uint32_t>(x) << 16);
    });
  case 10:
    return addFloats<uint16_t>(data, elements,
                               [this](uint16_t x) { return values[x]; });
  default:
    return addFloats<uint8_t>(data, elements,
                              [this](uint8_t x) { return values[x]; });
  }
}

std::string Summary::number(double real, int64_t integer) const {
  char text[32];
  if (dtype.kind == Dtype::Integer)
    std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(integer));
  else if (dtype.kind == Dtype::Unsigned)
    std::snprintf(text, sizeof(text), "%llu",
                  static_cast<unsigned long long>(integer));
  else
    std::snprintf(text, sizeof(text), "%.*g", dtype.bytes == 8 ? 17 : 9, real);
  return text;
}

std::string Summary::minimum() const {
  return numbers != 0 ? number(minFloat, minInteger) : nans ? "nan" : "none";
}

std::string Summary::text() const {
  char checksum[32];
  std::snprintf(checksum, sizeof(checksum), "checksum=%016llx ",
                static_cast<unsigned long long>(hash));
  std::string text = checksum + ("min=" + minimum()) + " max=" +
                     (numbers != 0 ? number(maxFloat, maxInteger) : minimum());
  if (nans)
    text += " nan=" + std::to_string(nans);
  return text;
}
