//===- LaunchTest.cpp - launches that no device sees ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the context refuses before it asks its device, and what the host says.
//
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

#include <tuple>

using namespace fsdprt::test;

namespace {

/// A launch that is right but for what a test changes.
struct Sample {
  const void *image = "module";
  int64_t imageBytes = 7;
  const char *kernel = "chunk_cat_0";
  int64_t blocksX = 3, blocksY = 4, threads = 256;
  int64_t addressBytes = 16;
};

/// The message of one rank that makes the launch.
std::string message(const Sample &sample) {
  TestWorld world({1});
  const void *addresses[2] = {};
  EXPECT_EQ(fsdprtLaunch(world[0], sample.image, sample.imageBytes,
                         sample.kernel, sample.blocksX, sample.blocksY,
                         sample.threads, addresses, sample.addressBytes,
                         nullptr),
            FSDPRT_INVALID_ARGUMENT);
  return world.message(0);
}

} // namespace

TEST(Launch, HostRunsNoKernels) {
  EXPECT_EQ(message({}), "launch of kernel 'chunk_cat_0': the host runs no "
                         "kernels, expected a cuda device");
}

TEST(Launch, HostHasNoDriver) {
  TestWorld world({1});
  EXPECT_EQ(fsdprtRequireDriver(world[0], 99990), FSDPRT_SUCCESS);
}

TEST(Launch, WhatNoDeviceCouldRunIsRefused) {
  Sample sample;
  sample.kernel = nullptr;
  EXPECT_EQ(message(sample), "launch of kernel '': the name is empty");
  sample = {};
  sample.image = nullptr;
  EXPECT_EQ(message(sample),
            "launch of kernel 'chunk_cat_0': the image is empty");
  sample = {};
  sample.addressBytes = 0;
  EXPECT_EQ(message(sample),
            "launch of kernel 'chunk_cat_0': there are no addresses");
  for (auto [x, y, threads] : {std::tuple<int64_t, int64_t, int64_t>{0, 4, 256},
                               {3, 65536, 256},
                               {3, 4, 1025}}) {
    sample = {};
    sample.blocksX = x;
    sample.blocksY = y;
    sample.threads = threads;
    EXPECT_EQ(message(sample), "launch of kernel 'chunk_cat_0': a grid of " +
                                   std::to_string(x) + " x " +
                                   std::to_string(y) + " blocks of " +
                                   std::to_string(threads) + " threads");
  }
}
