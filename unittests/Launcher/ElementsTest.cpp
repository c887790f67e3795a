//===- ElementsTest.cpp - values of elements ------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value of the narrow types, against LLVM's arithmetic.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Launcher/Elements.h"

#include "llvm/ADT/APFloat.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::APFloat;

namespace {

const Dtype &get(const char *name) { return *Dtype::byName(name); }

template <typename To>
void checkAll(const char *name, const llvm::fltSemantics &semantics,
              const char *toName) {
  std::vector<uint16_t> in(1 << 16);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = i;
  std::vector<To> out(in.size());
  widen(get(name), get(toName), in.data(), in.size(), out.data());
  for (size_t i = 0; i < in.size(); ++i) {
    APFloat expected(semantics, llvm::APInt(16, i));
    bool loses;
    expected.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &loses);
    double value = expected.convertToDouble(), found = out[i];
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(found)) << i;
    else
      EXPECT_EQ(std::memcmp(&value, &found, sizeof(value)), 0) << i;
  }
}

TEST(ElementsTest, WidensEveryValue) {
  checkAll<float>("bf16", APFloat::BFloat(), "f32");
  checkAll<double>("bf16", APFloat::BFloat(), "f64");
  checkAll<float>("f16", APFloat::IEEEhalf(), "f32");
  checkAll<double>("f16", APFloat::IEEEhalf(), "f64");
}

TEST(ElementsTest, WidensF32) {
  const float in[] = {0.1f, -0.0f, INFINITY, 1e-45f, 3.4e38f};
  double out[5];
  widen(get("f32"), get("f64"), in, 5, out);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(out[i], double(in[i]));
  EXPECT_TRUE(std::signbit(out[1]));
}

TEST(ElementsTest, WidensNothingElse) {
  const char *floats[] = {"f16", "bf16", "f32", "f64"};
  const char *all[] = {"f16",      "bf16",   "f32", "f64", "i8",
                       "f8E4M3FN", "f8E5M2", "i16", "i32", "i64"};
  for (const char *from : all)
    for (const char *to : all) {
      bool isFloat = false;
      for (const char *name : floats)
        isFloat |= !std::strcmp(name, from);
      bool isWider = !std::strcmp(to, "f64") ||
                     (!std::strcmp(to, "f32") && std::strcmp(from, "f32"));
      EXPECT_EQ(canWiden(get(from), get(to)),
                isFloat && isWider && std::strcmp(from, "f64") != 0)
          << from << " to " << to;
    }
}

} // namespace
