//===- ReductionTest.cpp - the arithmetic of reductions, to the bit -------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 16-bit types are checked against a table of all their values: rounding is a
// search for the nearest one, which shares nothing with the library's integer
// arithmetic. Sums and products of two 16-bit values are formed in f64; f64 has
// more than twice their digits, so that rounding it again is harmless.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fsdprt::test;

namespace {

/// A 16-bit floating-point type as the list of its values.
class Table {
public:
  Table(int exponentBits, int fractionBits)
      : exponentBits(exponentBits), fractionBits(fractionBits) {
    for (uint32_t bits = 0; bits <= infinity(); ++bits)
      values.push_back(decode(bits));
  }

  uint16_t infinity() const {
    return ((1u << exponentBits) - 1) << fractionBits;
  }

  double decode(uint32_t bits) const {
    uint32_t exponent = bits >> fractionBits & ((1u << exponentBits) - 1);
    uint32_t fraction = bits & ((1u << fractionBits) - 1);
    int bias = (1 << (exponentBits - 1)) - 1;
    double value;
    if (exponent == (1u << exponentBits) - 1)
      value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
      value = std::ldexp(double(fraction), 1 - bias - fractionBits);
    else
      value = std::ldexp(double(fraction | 1u << fractionBits),
                         int(exponent) - bias - fractionBits);
    return bits & 0x8000 ? -value : value;
  }

  /// The nearest value, of two equally near ones the even one. Infinity counts
  /// as the next value after the largest.
  uint16_t encode(double value) const {
    if (std::isnan(value))
      return infinity() + 1;
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude))
      return sign | infinity();
    size_t above = std::upper_bound(values.begin(), values.end(), magnitude) -
                   values.begin();
    size_t below = above - 1;
    double next = above == infinity() ? 2 * values[below] - values[below - 1]
                                      : values[above];
    double down = magnitude - values[below], up = next - magnitude;
    bool takeAbove = up < down || (up == down && below % 2 == 1);
    return sign | uint16_t(takeAbove ? above : below);
  }

  bool same(uint16_t a, uint16_t b) const {
    return a == b || (std::isnan(decode(a)) && std::isnan(decode(b)));
  }

private:
  int exponentBits, fractionBits;
  std::vector<double> values; ///< of the bits 0 .. infinity
};

const Table &tableOf(fsdprtDtype dtype) {
  static const Table f16(5, 10), bf16(8, 7);
  return dtype == FSDPRT_F16 ? f16 : bf16;
}

std::vector<char> encode(fsdprtDtype dtype, double value) {
  auto bytes = [](auto x) {
    std::vector<char> result(sizeof(x));
    std::memcpy(result.data(), &x, sizeof(x));
    return result;
  };
  if (dtype == FSDPRT_F32)
    return bytes(float(value));
  if (dtype == FSDPRT_F64)
    return bytes(value);
  return bytes(tableOf(dtype).encode(value));
}

double decode(fsdprtDtype dtype, const std::vector<char> &bytes) {
  float f32;
  double f64;
  uint16_t f16;
  switch (dtype) {
  case FSDPRT_F32:
    std::memcpy(&f32, bytes.data(), 4);
    return f32;
  case FSDPRT_F64:
    std::memcpy(&f64, bytes.data(), 8);
    return f64;
  default:
    std::memcpy(&f16, bytes.data(), 2);
    return tableOf(dtype).decode(f16);
  }
}

/// One element per rank through reduce_scatter and all_reduce; checks that both
/// give the same on every rank and returns it.
double reduce(fsdprtDtype dtype, const std::vector<double> &values,
              fsdprtReduction reduction, double multiplier = 0,
              bool accumulate = false) {
  const int64_t ranks = values.size();
  TestWorld world({ranks});
  std::vector<std::vector<char>> scattered(ranks), reduced(ranks);
  world.expectSuccess([&](fsdprtContext *context, int64_t rank) {
    std::vector<char> one = encode(dtype, values[rank]), send;
    for (int64_t i = 0; i < ranks; ++i)
      send.insert(send.end(), one.begin(), one.end());
    scattered[rank].resize(one.size());
    reduced[rank].resize(one.size());
    if (fsdprtStatus status =
            reduceScatter(context, "b", {0}, dtype, 1, reduction, multiplier,
                          accumulate, send.data(), scattered[rank].data()))
      return status;
    return allReduce(context, "b", {0}, dtype, 1, reduction, multiplier,
                     accumulate, one.data(), reduced[rank].data());
  });
  for (int64_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(scattered[rank], scattered[0]);
    EXPECT_EQ(reduced[rank], scattered[0]);
  }
  return decode(dtype, scattered[0]);
}

} // namespace

//===----------------------------------------------------------------------===//
// The rules' own examples
//===----------------------------------------------------------------------===//

TEST(Reduction, RankOrderAndRoundingPerAddition) {
  EXPECT_EQ(reduce(FSDPRT_BF16, {256, 1, 1, 1}, FSDPRT_AVG), 64);
  EXPECT_EQ(reduce(FSDPRT_BF16, {256, 1, 1, 1}, FSDPRT_AVG, 0, true), 65);
  EXPECT_EQ(reduce(FSDPRT_BF16, {1, 1, 1, 256}, FSDPRT_AVG), 65);
  EXPECT_EQ(reduce(FSDPRT_BF16, {1, 1, 1, 256}, FSDPRT_AVG, 0, true), 65);
  EXPECT_EQ(reduce(FSDPRT_F32, {256, 1, 1, 1}, FSDPRT_AVG), 64.75);
  EXPECT_EQ(reduce(FSDPRT_F32, {256, 1, 1, 1}, FSDPRT_AVG, 0, true), 64.75);
  EXPECT_EQ(reduce(FSDPRT_BF16, {256, 1, 1, 1}, FSDPRT_SUM), 256);
  EXPECT_EQ(reduce(FSDPRT_BF16, {256, 1, 1, 1}, FSDPRT_SUM, 0, true), 260);
}

TEST(Reduction, SumOfOnesStopsAt256) {
  std::vector<double> ones(512, 1);
  EXPECT_EQ(reduce(FSDPRT_BF16, ones, FSDPRT_SUM), 256);
  EXPECT_EQ(reduce(FSDPRT_BF16, ones, FSDPRT_SUM, 0, true), 512);
}

TEST(Reduction, MultipliesBeforeTheSumInTheDtype) {
  EXPECT_EQ(reduce(FSDPRT_F32, {1, 2, 4}, FSDPRT_AVG), 2.3333334922790527);
  EXPECT_EQ(reduce(FSDPRT_BF16, {100, 100, 100}, FSDPRT_AVG), 100.5);
  EXPECT_EQ(reduce(FSDPRT_BF16, {100, 100, 100}, FSDPRT_AVG, 0, true), 100.5);
  EXPECT_EQ(reduce(FSDPRT_F64, {1, 2, 4}, FSDPRT_AVG),
            1 * (1.0 / 3) + 2 * (1.0 / 3) + 4 * (1.0 / 3));
  // The multiplier is rounded to the dtype: 0.3 is 0.30078125 in bf16.
  EXPECT_EQ(reduce(FSDPRT_BF16, {64, 0}, FSDPRT_PREMUL, 0.3), 19.25);
  EXPECT_EQ(reduce(FSDPRT_F32, {1, 0}, FSDPRT_PREMUL, 0.3), double(0.3f));
}

TEST(Reduction, GroupOfOne) {
  EXPECT_EQ(reduce(FSDPRT_BF16, {3}, FSDPRT_AVG), 3);
  EXPECT_EQ(reduce(FSDPRT_F16, {3}, FSDPRT_SUM), 3);
  EXPECT_EQ(reduce(FSDPRT_F32, {3}, FSDPRT_PREMUL, 0.25), 0.75);
}

TEST(Reduction, SpecialValues) {
  for (fsdprtDtype dtype : {FSDPRT_F16, FSDPRT_BF16, FSDPRT_F32, FSDPRT_F64}) {
    double zero = reduce(dtype, {-0.0, -0.0}, FSDPRT_SUM);
    EXPECT_TRUE(zero == 0 && std::signbit(zero)) << dtype;
    EXPECT_FALSE(std::signbit(reduce(dtype, {-0.0, 0.0}, FSDPRT_SUM)));
    EXPECT_TRUE(std::isnan(reduce(dtype, {INFINITY, -INFINITY}, FSDPRT_SUM)));
    EXPECT_TRUE(std::isnan(reduce(dtype, {1, NAN}, FSDPRT_AVG)));
    EXPECT_EQ(reduce(dtype, {1, -INFINITY}, FSDPRT_AVG), -INFINITY);
  }
  EXPECT_EQ(reduce(FSDPRT_F16, {65504, 65504}, FSDPRT_SUM), INFINITY);
  EXPECT_EQ(reduce(FSDPRT_F16, {65504, 65504}, FSDPRT_AVG), 65504);
}

//===----------------------------------------------------------------------===//
// Every bit pattern
//===----------------------------------------------------------------------===//

/// Rank 0 has every bit pattern once, rank 1 a scrambled copy.
static void checkAllPatterns(fsdprtDtype dtype, fsdprtReduction reduction,
                             double multiplier, bool accumulate) {
  const Table &table = tableOf(dtype);
  constexpr int64_t count = 65536;
  auto pattern = [](int64_t rank, int64_t i) {
    return rank == 0 ? uint16_t(i) : uint16_t(i * 40503 + 12345 + (i >> 7));
  };
  std::vector<uint16_t> results[2];
  TestWorld world({2});
  world.expectSuccess([&](fsdprtContext *context, int64_t rank) {
    std::vector<uint16_t> send(2 * count);
    for (int64_t i = 0; i < count; ++i)
      send[i] = send[count + i] = pattern(rank, i);
    results[rank].resize(count);
    return reduceScatter(context, "b", {0}, dtype, count, reduction, multiplier,
                         accumulate, send.data(), results[rank].data());
  });
  const bool scale = reduction != FSDPRT_SUM;
  const double factor =
      table.decode(table.encode(reduction == FSDPRT_AVG ? 0.5 : multiplier));
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    double terms[2];
    for (int64_t rank = 0; rank < 2; ++rank) {
      terms[rank] = table.decode(pattern(rank, i));
      if (scale)
        terms[rank] = table.decode(table.encode(terms[rank] * factor));
    }
    // Of two terms f32 holds the sum to more digits than rounding looks at.
    uint16_t expected = table.encode(terms[0] + terms[1]);
    for (int64_t rank = 0; rank < 2; ++rank)
      if (!table.same(results[rank][i], expected) && ++wrong <= 5)
        ADD_FAILURE() << "element " << i << ": " << terms[0] << " + "
                      << terms[1] << " gave bits " << results[rank][i]
                      << ", expected " << expected;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Reduction, EveryF16) {
  checkAllPatterns(FSDPRT_F16, FSDPRT_SUM, 0, false);
  checkAllPatterns(FSDPRT_F16, FSDPRT_SUM, 0, true);
  checkAllPatterns(FSDPRT_F16, FSDPRT_AVG, 0, false);
  checkAllPatterns(FSDPRT_F16, FSDPRT_PREMUL, 0.3, false);
}

TEST(Reduction, EveryBF16) {
  checkAllPatterns(FSDPRT_BF16, FSDPRT_SUM, 0, false);
  checkAllPatterns(FSDPRT_BF16, FSDPRT_SUM, 0, true);
  checkAllPatterns(FSDPRT_BF16, FSDPRT_AVG, 0, false);
  checkAllPatterns(FSDPRT_BF16, FSDPRT_PREMUL, 0.3, false);
}
