//===- DeviceTest.cpp - what the runtime asks a GPU to do -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against the recording fake of Fakes/Fake.h.
//
//===----------------------------------------------------------------------===//

#include "FakeWorld.h"

using namespace fsdprt::test;
using fsdprt::cuda::errorNoBinaryForGpu;
using fsdprt::cuda::errorOutOfMemory;

namespace {

const char module_[] = "fake: add=16,8 broken=24,8";

/// One rank, or several, on one fake GPU; the ranks are threads.
class LocalWorld {
public:
  explicit LocalWorld(int64_t ranks = 1) : contexts(ranks) {
    fakes().reset();
    fsdprtOptions options = {};
    options.gridShape = &ranks;
    options.gridAxes = 1;
    options.timeoutSeconds = 60;
    options.device = "cuda";
    code = fsdprtCreateLocal(&options, contexts.data(), text, sizeof(text));
    if (code != FSDPRT_SUCCESS)
      return;
    run([](fsdprtContext *context, int64_t) {
      EXPECT_EQ(fsdprtStart(context, "plan"), FSDPRT_SUCCESS);
    });
  }
  ~LocalWorld() {
    for (fsdprtContext *context : contexts)
      fsdprtDestroy(context);
    EXPECT_EQ(fakes().alive(), "");
  }
  void run(const std::function<void(fsdprtContext *, int64_t)> &body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < contexts.size(); ++rank)
      threads.emplace_back([&, rank] { body(contexts[rank], rank); });
    for (std::thread &thread : threads)
      thread.join();
  }
  fsdprtContext *context() { return contexts[0]; }
  std::string message() { return fsdprtMessage(context()); }

  fsdprtStatus code;
  char text[500] = "";

private:
  std::vector<fsdprtContext *> contexts;
};

/// A launch of `kernel` with two addresses.
fsdprtStatus launch(fsdprtContext *context, const char *kernel,
                    const void *first = nullptr, const void *second = nullptr,
                    void *bucket = nullptr, const char *image = module_) {
  const void *addresses[] = {first, second};
  return fsdprtLaunch(context, image, sizeof(module_), kernel, 3, 2, 256,
                      addresses, sizeof(addresses), bucket);
}

} // namespace

TEST(CudaDevice, KernelGetsItsParametersInTheOrderOfTheStream) {
  LocalWorld world;
  fakes().setKernel("add", [](const void *addresses, void *bucket) {
    auto *inputs = static_cast<const float *const *>(addresses);
    for (int i = 0; i < 4; ++i)
      static_cast<float *>(bucket)[i] = inputs[0][i] + inputs[1][i];
  });
  fsdprtContext *context = world.context();
  float *a = upload(context, {1, 2, 3, 4}),
        *b = upload(context, {10, 20, 30, 40});
  void *bucket = nullptr;
  ASSERT_EQ(fsdprtAlloc(context, 16, &bucket), FSDPRT_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bucket) % 128, 0u);
  ASSERT_EQ(launch(context, "add", a, b, bucket), FSDPRT_SUCCESS)
      << world.message();
  // Freed and not yet read: the stream keeps them apart.
  ASSERT_EQ(fsdprtFree(context, a), FSDPRT_SUCCESS);
  EXPECT_EQ(download(context, bucket, 4), (std::vector<float>{11, 22, 33, 44}));
  // The module is loaded once.
  ASSERT_EQ(launch(context, "add", b, b, bucket), FSDPRT_SUCCESS);
  EXPECT_EQ(download(context, bucket, 4), (std::vector<float>{20, 40, 60, 80}));
  const std::string step =
      "launch add 3x2 blocks of 256, 16 bytes of addresses\n";
  EXPECT_EQ(fakes().record(0), "alloc 16\ncopy in 16\nalloc 16\ncopy in 16\n"
                               "alloc 16\n" +
                                   step + "free\ncopy out 16\n" + step +
                                   "copy out 16\n");
}

// Copies are work of the stream like any other: the buffer that is read may be
// freed before they have run.
TEST(CudaDevice, CopiesInTheOrderOfTheStream) {
  LocalWorld world;
  fsdprtContext *context = world.context();
  float *a = upload(context, {1, 2, 3, 4}), *b = upload(context, {0, 0, 0, 0});
  ASSERT_EQ(fsdprtCopy(context, a + 1, b, 12), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtCopy(context, b, b, 16), FSDPRT_SUCCESS); // nothing to do
  ASSERT_EQ(fsdprtCopy(context, nullptr, nullptr, 0), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtFree(context, a), FSDPRT_SUCCESS);
  EXPECT_EQ(download(context, b, 4), (std::vector<float>{2, 3, 4, 0}));
  EXPECT_EQ(fakes().record(0), "alloc 16\ncopy in 16\nalloc 16\ncopy in 16\n"
                               "copy 12\nfree\ncopy out 16\n");
  EXPECT_EQ(fsdprtCopy(context, nullptr, b, 4), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(),
            "copy of 4 bytes on the device from or to a null address");
}

// A constant of the artefact goes to the device once and stays there.
TEST(CudaDevice, ConstantsAreCopiedOnce) {
  LocalWorld world;
  static const float values[] = {1.5, 2.5};
  static void *place;
  auto step = [](fsdprtContext *context, void *const *, void *const *) {
    return fsdprtConstant(context, values, sizeof(values), &place);
  };
  ASSERT_EQ(fsdprtRun(world.context(), step, nullptr, nullptr), FSDPRT_SUCCESS)
      << world.message();
  void *first = place;
  EXPECT_NE(first, values);
  EXPECT_EQ(download(world.context(), first, 2),
            (std::vector<float>{1.5, 2.5}));
  // Nothing is left to do for a graph.
  fakes().setCapturing(true);
  ASSERT_EQ(fsdprtRun(world.context(), step, nullptr, nullptr), FSDPRT_SUCCESS);
  fakes().setCapturing(false);
  EXPECT_EQ(place, first);
  EXPECT_EQ(fakes().record(0), "alloc 8\ncopy in 8\ncopy out 8\n");
  fsdprtStatistics statistics;
  fsdprtGetStatistics(world.context(), &statistics);
  EXPECT_EQ(statistics.liveBytes, 8);
}

TEST(CudaDevice, ConstantIsNotCopiedIntoAGraph) {
  LocalWorld world;
  static const float value = 1;
  void *place = nullptr;
  fakes().setCapturing(true);
  EXPECT_EQ(fsdprtConstant(world.context(), &value, 4, &place),
            FSDPRT_INVALID_ARGUMENT);
  fakes().setCapturing(false);
  EXPECT_EQ(world.message(),
            "constant of 4 bytes: device 0 (Fake GPU, sm_90) does not have it "
            "yet, and a graph is being captured: expected that the entry has "
            "run before");
}

TEST(CudaDevice, EmptyBufferIsABuffer) {
  LocalWorld world;
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(fsdprtAlloc(world.context(), 0, &a), FSDPRT_SUCCESS);
  ASSERT_EQ(fsdprtAlloc(world.context(), 0, &b), FSDPRT_SUCCESS);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  EXPECT_EQ(fsdprtCopyIn(world.context(), a, nullptr, 0), FSDPRT_SUCCESS);
}

TEST(CudaDevice, OutOfMemoryIsSaid) {
  LocalWorld world;
  void *data = nullptr;
  ASSERT_EQ(fsdprtAlloc(world.context(), 100, &data), FSDPRT_SUCCESS);
  fakes().fail("cuMemAllocFromPoolAsync", 1, errorOutOfMemory);
  EXPECT_EQ(fsdprtAlloc(world.context(), 5000, &data), FSDPRT_OUT_OF_MEMORY);
  EXPECT_EQ(world.message(),
            "out of memory: no 5000 bytes beside 100 allocated bytes");
}

TEST(CudaDevice, UnknownKernel) {
  LocalWorld world;
  EXPECT_EQ(launch(world.context(), "subtract"), FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(), "kernel 'subtract': device 0 (Fake GPU, sm_90): "
                             "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND");
}

TEST(CudaDevice, KernelWithOtherParameters) {
  LocalWorld world;
  EXPECT_EQ(launch(world.context(), "broken"), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(), "kernel 'broken': parameter 0 has 24 "
                             "bytes, expected 16 bytes");
}

TEST(CudaDevice, PtxSaysWhatItsParametersAre) {
  LocalWorld world;
  const char ptx[] = ".version 8.0\n.entry two(.param .align 8 .b8 two_0[16],\n"
                     " .param .u64 two_1)\n{}\n.entry one(.param .align 8 .b8 "
                     "one_0[16])\n{}\n";
  EXPECT_EQ(launch(world.context(), "two", nullptr, nullptr, nullptr, ptx),
            FSDPRT_SUCCESS)
      << world.message();
  EXPECT_EQ(launch(world.context(), "one", nullptr, nullptr, nullptr, ptx),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(), "kernel 'one': parameter 1 is missing, "
                             "expected 8 bytes");
}

TEST(CudaDevice, PtxThatTheDriverDoesNotKnow) {
  LocalWorld world;
  const char ptx[] = ".version 9.1\n.entry two(.param .align 8 .b8 two_0[16],\n"
                     " .param .u64 two_1)\n{}\n";
  EXPECT_EQ(launch(world.context(), "two", nullptr, nullptr, nullptr, ptx),
            FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "kernel 'two': device 0 (Fake GPU, sm_90): cuLibraryLoadData: "
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
}

TEST(CudaDevice, PtxWithMoreParametersThanItsVersionAllows) {
  LocalWorld world;
  const char ptx[] = ".version 8.0\n.entry two(.param .align 8 .b8 two_0[4352],"
                     "\n .param .u64 two_1)\n{}\n";
  EXPECT_EQ(launch(world.context(), "two", nullptr, nullptr, nullptr, ptx),
            FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "kernel 'two': device 0 (Fake GPU, sm_90): cuLibraryLoadData: "
            "CUDA_ERROR_INVALID_PTX");
}

TEST(CudaDevice, DriverThatAnArtefactNeeds) {
  LocalWorld world;
  fsdprtContext *context = world.context();
  EXPECT_EQ(fsdprtRequireDriver(context, 0), FSDPRT_SUCCESS);
  EXPECT_EQ(fsdprtRequireDriver(context, 13000), FSDPRT_SUCCESS);
  EXPECT_EQ(fsdprtRequireDriver(context, 13010), FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "the artefact needs a driver of CUDA 13.1 or newer, but that of "
            "device 0 (Fake GPU, sm_90) is of CUDA 13.0");
  EXPECT_EQ(launch(context, "add"), FSDPRT_DEVICE_ERROR);
}

TEST(CudaDevice, ArtefactForOtherChips) {
  LocalWorld world;
  fakes().fail("cuLibraryLoadData", 1, errorNoBinaryForGpu);
  EXPECT_EQ(launch(world.context(), "add"), FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "kernel 'add': device 0 (Fake GPU, sm_90): cuLibraryLoadData: "
            "CUDA_ERROR_NO_BINARY_FOR_GPU; the artefact was compiled for other "
            "chips");
}

// A driver that loads lazily compiles late, and then says what went wrong.
TEST(CudaDevice, CompilationThatFailsLateIsExplained) {
  LocalWorld world;
  fakes().fail("cuKernelGetFunction", 1, errorNoBinaryForGpu);
  EXPECT_EQ(launch(world.context(), "add"), FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "kernel 'add': device 0 (Fake GPU, sm_90): cuKernelGetFunction: "
            "CUDA_ERROR_NO_BINARY_FOR_GPU; the artefact was compiled for other "
            "chips; fatal: the fake compiles no add");
}

TEST(CudaDevice, KernelIsLoadedBeforeItIsCaptured) {
  LocalWorld world;
  fakes().setCapturing(true);
  EXPECT_EQ(launch(world.context(), "add"), FSDPRT_INVALID_ARGUMENT);
  EXPECT_EQ(world.message(),
            "kernel 'add': not loaded yet while a graph is captured, expected "
            "an entry that has run once before");
  EXPECT_EQ(fakes().calls("cuLibraryLoadData"), 0);
  fakes().setCapturing(false);
}

// Another thread records a graph in the usual mode, in which whatever this one
// asks of the driver may break the recording.
TEST(CudaDevice, RecordingOfSomebodyElseGoesOn) {
  LocalWorld world;
  fakes().setForeignCapture(true);
  float *data = upload(world.context(), {1, 2, 3, 4});
  EXPECT_EQ(launch(world.context(), "add", data, data, data), FSDPRT_SUCCESS)
      << world.message();
  EXPECT_EQ(download(world.context(), data, 4),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(fsdprtFree(world.context(), data), FSDPRT_SUCCESS);
  EXPECT_EQ(fakes().brokeCapture(), "");
}

// What is freed is kept, in a pool that nobody else has to do with.
TEST(CudaDevice, MemoryIsOfAPoolOfItsOwn) {
  LocalWorld world;
  EXPECT_NE(fakes().alive().find("1 pools"), std::string::npos);
  upload(world.context(), {1});
  EXPECT_EQ(fakes().calls("cuMemAllocFromPoolAsync"), 1);
}

TEST(CudaDevice, LaunchThatFails) {
  LocalWorld world;
  fakes().fail("cuLaunchKernelEx", 1, 701);
  EXPECT_EQ(launch(world.context(), "add"), FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(), "launch of kernel 'add': device 0 (Fake GPU, "
                             "sm_90): cuLaunchKernelEx: error 701");
}

// A kernel that fails is noticed by whoever waits for it.
TEST(CudaDevice, RunWaitsForTheDevice) {
  LocalWorld world;
  fakes().fail("cuEventQuery", 1, 700);
  EXPECT_EQ(fsdprtRun(
                world.context(),
                [](fsdprtContext *context, void *const *, void *const *) {
                  return launch(context, "add");
                },
                nullptr, nullptr),
            FSDPRT_DEVICE_ERROR);
  EXPECT_EQ(world.message(),
            "device 0 (Fake GPU, sm_90): cuEventQuery: error 700");
}

// Nothing in a step may keep it from being recorded in a graph: no wait, no
// event, no module that is loaded.
TEST(CudaDevice, StepCanBeCaptured) {
  LocalWorld world;
  auto step = [](fsdprtContext *context, void *const *, void *const *) {
    void *bucket = nullptr;
    if (fsdprtStatus status = fsdprtAlloc(context, 64, &bucket))
      return status;
    if (fsdprtStatus status = launch(context, "add", bucket, bucket, bucket))
      return status;
    return fsdprtFree(context, bucket);
  };
  ASSERT_EQ(fsdprtRun(world.context(), step, nullptr, nullptr), FSDPRT_SUCCESS);
  fakes().setCapturing(true);
  EXPECT_EQ(fsdprtRun(world.context(), step, nullptr, nullptr), FSDPRT_SUCCESS)
      << world.message();
  fakes().setCapturing(false);
}

TEST(CudaDevice, FailuresOfCreationLeaveNothing) {
  for (const char *function :
       {"cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuEventCreate"}) {
    fakes().reset();
    fakes().fail(function, 1, 999);
    int64_t ranks = 1;
    fsdprtOptions options = {};
    options.gridShape = &ranks;
    options.gridAxes = 1;
    options.device = "cuda";
    fsdprtContext *context = nullptr;
    char text[200] = "";
    EXPECT_EQ(fsdprtCreateLocal(&options, &context, text, sizeof(text)),
              FSDPRT_DEVICE_ERROR);
    EXPECT_EQ(text, "device 0 (Fake GPU, sm_90): " + std::string(function) +
                        ": error 999");
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(fakes().alive(), "");
  }
}

TEST(CudaDevice, NoSuchDevice) {
  int64_t ranks = 1;
  fsdprtOptions options = {};
  options.gridShape = &ranks;
  options.gridAxes = 1;
  options.device = "cuda";
  options.hasRank = 1;
  options.localRank = 8;
  fakes();
  fsdprtContext *context = nullptr;
  char text[200] = "";
  EXPECT_EQ(fsdprtCreateLocal(&options, &context, text, sizeof(text)),
            FSDPRT_INVALID_ARGUMENT);
  EXPECT_STREQ(text, "there is no cuda device 8, expected one of the 8 that "
                     "this process can see");
}

// Ranks that share a GPU exchange data by way of the host, in place or not.
TEST(CudaDevice, ThreadsShareOneGpu) {
  LocalWorld world(4);
  world.run([](fsdprtContext *context, int64_t rank) {
    float *all = upload(context, std::vector<float>(8));
    std::vector<float> mine = {float(rank), float(10 * rank)};
    ASSERT_EQ(fsdprtCopyIn(context, all + 2 * rank, mine.data(), 8),
              FSDPRT_SUCCESS);
    ASSERT_EQ(allGather(context, "b", {0}, FSDPRT_F32, 2, all + 2 * rank, all),
              FSDPRT_SUCCESS);
    EXPECT_EQ(download(context, all, 8),
              (std::vector<float>{0, 0, 1, 10, 2, 20, 3, 30}));
    float *row = upload(context, {0, 0});
    ASSERT_EQ(reduceScatter(context, "b", {0}, FSDPRT_F32, 2, FSDPRT_SUM, 0, 0,
                            all, row),
              FSDPRT_SUCCESS);
    EXPECT_EQ(download(context, row, 2),
              (std::vector<float>{4.0f * rank, 40.0f * rank}));
    ASSERT_EQ(
        allReduce(context, "b", {0}, FSDPRT_F32, 2, FSDPRT_AVG, 0, 0, row, row),
        FSDPRT_SUCCESS);
    EXPECT_EQ(download(context, row, 2), (std::vector<float>{6, 60}));
  });
}
