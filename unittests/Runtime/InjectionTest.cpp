//===- InjectionTest.cpp - every call that can fail does ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step that calls all of the driver and of NCCL, in which one call after
// another fails, against the recording fake of Fakes/Fake.h. Whatever fails,
// somebody says which function it was, no rank waits for the one that failed
// and nothing is left.
//
//===----------------------------------------------------------------------===//

#include "FakeWorld.h"

#include <array>

using namespace fsdprt::test;

namespace {

constexpr fsdprtStatus good = FSDPRT_SUCCESS;
const char image[] = "fake: pack=16,8";

#define TRY(...)                                                               \
  if (fsdprtStatus status = __VA_ARGS__)                                       \
  return status

/// `results`: the rank.
fsdprtStatus step(fsdprtContext *context, void *const *, void *const *results) {
  const int64_t count = 1 << 19;
  const int64_t rank = *reinterpret_cast<const int64_t *>(results);
  // Outlives a copy that nobody has waited for, because the wait has failed.
  static std::array<float, 16> hosts[2];
  std::array<float, 16> &host = hosts[rank];
  void *large = nullptr, *small = nullptr;
  TRY(fsdprtAlloc(context, 2 * 4 * count, &large)); // NCCL's
  TRY(fsdprtAlloc(context, sizeof(host), &small));  // the driver's
  TRY(fsdprtCopyIn(context, small, host.data(), sizeof(host)));
  void *constant = nullptr;
  TRY(fsdprtConstant(context, image, sizeof(image), &constant));
  TRY(fsdprtCopy(context, constant, small, sizeof(image)));
  const void *addresses[] = {small, small};
  TRY(fsdprtLaunch(context, image, sizeof(image), "pack", 1, 1, 256, addresses,
                   sizeof(addresses), large));
  TRY(allGather(context, "gather", {0, 1}, FSDPRT_F32, count,
                static_cast<float *>(large) + rank * count, large));
  TRY(reduceScatter(context, "reduce", {0}, FSDPRT_F32, 8, FSDPRT_PREMUL, 0.5,
                    0, large, small));
  TRY(allReduce(context, "reduce", {0}, FSDPRT_F32, 8, FSDPRT_AVG, 0, 0, small,
                small));
  TRY(fsdprtCopyOut(context, host.data(), small, sizeof(host)));
  TRY(fsdprtFree(context, small));
  return fsdprtFree(context, large);
}

struct Fault {
  const char *function;
  int code;
  const char *said; ///< nullptr: a log line says that there is a slower way
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.function; }

class Injection : public testing::TestWithParam<Fault> {};

} // namespace

TEST_P(Injection, IsSaidAndLeavesNothing) {
  const Fault &fault = GetParam();
  int reached = 0;
  for (int call = 1; call <= 4; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    FakeWorld world({2, 1});
    world.timeoutSeconds = 20;
    world.expectStart();
    fakes().fail(fault.function, call, fault.code);
    std::vector<fsdprtStatus> statuses =
        world.run([](fsdprtContext *context, int64_t rank) {
          return fsdprtRun(context, step, nullptr,
                           reinterpret_cast<void *const *>(&rank));
        });
    if (fakes().calls(fault.function) < call)
      continue;
    ++reached;
    std::string messages = world.message(0) + "\n" + world.message(1);
    if (!fault.said) {
      EXPECT_EQ(statuses, std::vector<fsdprtStatus>(2, good)) << messages;
      EXPECT_EQ(world.log().size(), 1u);
      continue;
    }
    // A rank that has nothing more to ask of the one that failed is done.
    EXPECT_NE(statuses, std::vector<fsdprtStatus>(2, good));
    EXPECT_NE(messages.find(fault.said), std::string::npos) << messages;
    EXPECT_EQ(messages.find("timeout"), std::string::npos) << messages;
  }
  EXPECT_GT(reached, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Driver, Injection,
    testing::Values(
        Fault{"cuMemAllocFromPoolAsync", 700,
              "cuMemAllocFromPoolAsync: error 700"},
        Fault{"cuMemcpyHtoDAsync_v2", 700, "cuMemcpyHtoDAsync: error 700"},
        Fault{"cuMemcpyDtoDAsync_v2", 700, "cuMemcpyDtoDAsync: error 700"},
        Fault{"cuMemcpyDtoHAsync_v2", 700, "cuMemcpyDtoHAsync: error 700"},
        Fault{"cuLibraryLoadData", 209,
              "cuLibraryLoadData: "
              "CUDA_ERROR_NO_BINARY_FOR_GPU; the artefact was compiled for "
              "other chips"},
        Fault{"cuLibraryGetKernel", 500,
              "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND"},
        Fault{"cuKernelGetFunction", 999, "cuKernelGetFunction: error 999"},
        Fault{"cuLaunchKernelEx", 701, "cuLaunchKernelEx: error 701"},
        Fault{"cuEventCreate", 999, "cuEventCreate: error 999"},
        Fault{"cuEventRecord", 999, "cuEventRecord: error 999"},
        Fault{"cuEventQuery", 719, "cuEventQuery: error 719"}));

INSTANTIATE_TEST_SUITE_P(
    Nccl, Injection,
    testing::Values(
        Fault{"ncclAllGather", 3,
              "call 1, all_gather of bucket 'gather', 524288 x f32: "
              "ncclAllGather: some error (the fake says so)"},
        Fault{"ncclReduceScatter", 3,
              "call 2, reduce_scatter of bucket 'reduce', 8 x f32, premul 0.5: "
              "ncclReduceScatter: some error (the fake says so)"},
        Fault{"ncclAllReduce", 3, "ncclAllReduce: some error"},
        Fault{"ncclCommSplit", 3, "ncclCommSplit: some error"},
        Fault{"ncclRedOpCreatePreMulSum", 3,
              "ncclRedOpCreatePreMulSum: some error"},
        // What went on is named, not that somebody asked.
        Fault{"ncclCommGetAsyncError", 3, "nccl"},
        Fault{"ncclMemAlloc", 1, nullptr},
        Fault{"ncclCommRegister", 5, nullptr}));
