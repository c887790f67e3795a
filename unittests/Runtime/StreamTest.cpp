//===- StreamTest.cpp - a rank in a stream of the caller's ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against the recording fake of Fakes/Fake.h, in which work is done when
// somebody asks for its end, and not before.
//
//===----------------------------------------------------------------------===//

#include "FakeWorld.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {

/// A program that uses the driver itself.
class Caller {
public:
  Caller() {
    fakes().reset();
    void *library = dlopen(FSDP_FAKE_LIBRARY, RTLD_NOW);
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  driver.name =                                                                \
      reinterpret_cast<decltype(driver.name)>(dlsym(library, #symbol));
#include "Device/CudaFunctions.def"
    driver.cuDevicePrimaryCtxRetain(&context, 0);
    driver.cuCtxPushCurrent(context);
    driver.cuStreamCreate(&stream, cuda::streamNonBlocking);
  }
  ~Caller() {
    driver.cuStreamDestroy(stream);
    driver.cuCtxPopCurrent(&context);
    driver.cuDevicePrimaryCtxRelease(0);
    EXPECT_EQ(fakes().alive(), "");
  }

  /// One rank in the stream.
  fsdprtStatus create(fsdprtContext *&rank, int64_t ranks = 1,
                      const char *device = "cuda") {
    fsdprtOptions options = {};
    options.gridShape = &ranks;
    options.gridAxes = 1;
    options.device = device;
    options.stream = stream;
    return fsdprtCreateLocal(&options, &rank, text, sizeof(text));
  }

  cuda::Api driver;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  char text[300] = "";
};

/// Launches a kernel that writes 7 to the result.
fsdprtStatus writeSeven(fsdprtContext *context, void *const *,
                        void *const *results) {
  const char image[] = "fake: seven=8,8";
  const void *addresses[] = {nullptr};
  return fsdprtLaunch(context, image, sizeof(image), "seven", 1, 1, 32,
                      addresses, sizeof(addresses), results[0]);
}

} // namespace

TEST(Stream, RunDoesNotWait) {
  Caller caller;
  fakes().setKernel("seven", [](const void *, void *bucket) {
    *static_cast<float *>(bucket) = 7;
  });
  fsdprtContext *rank = nullptr;
  ASSERT_EQ(caller.create(rank), FSDPRT_SUCCESS) << caller.text;
  ASSERT_EQ(fsdprtStart(rank, "plan"), FSDPRT_SUCCESS);
  float result = 0;
  void *results[] = {&result};
  ASSERT_EQ(fsdprtRun(rank, writeSeven, nullptr, results), FSDPRT_SUCCESS)
      << fsdprtMessage(rank);
  EXPECT_EQ(result, 0);
  // Nothing goes before the work is done, and what is the caller's stays.
  fsdprtDestroy(rank);
  EXPECT_EQ(result, 7);
  EXPECT_EQ(fakes().alive(), "1 contexts, 1 streams");
}

TEST(Stream, WorkIsInTheCallersStream) {
  Caller caller;
  fsdprtContext *rank = nullptr;
  ASSERT_EQ(caller.create(rank), FSDPRT_SUCCESS) << caller.text;
  ASSERT_EQ(fsdprtStart(rank, "plan"), FSDPRT_SUCCESS);
  float result = 0;
  void *results[] = {&result};
  ASSERT_EQ(fsdprtRun(rank, writeSeven, nullptr, results), FSDPRT_SUCCESS);
  // The caller's is the only stream there is.
  EXPECT_EQ(fakes().alive().find("2 streams"), std::string::npos);
  EXPECT_EQ(fakes().record(0),
            "launch seven 1x1 blocks of 32, 8 bytes of addresses\n");
  fsdprtDestroy(rank);
}

TEST(Stream, NeedsARankOfItsOwn) {
  Caller caller;
  fsdprtContext *ranks[2] = {};
  EXPECT_EQ(caller.create(ranks[0], 2), FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(caller.text,
               "a stream for 2 ranks of one process, expected one rank: they "
               "would wait for each other in it");
}

TEST(Stream, NeedsAGpu) {
  Caller caller;
  fsdprtContext *rank = nullptr;
  EXPECT_EQ(caller.create(rank, 1, "host"), FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(caller.text, "device 'host' has no streams, expected null or "
                            "device 'cuda'");
}
