//===- HeadersTest.cpp - our declarations against NVIDIA's ----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime declares what it uses of CUDA, NCCL and NVTX itself. Where the
// real headers are at hand, this file does not compile if one of them differs;
// where the real libraries are, every function is looked up in them.
//
//===----------------------------------------------------------------------===//

// Ours come first: NVIDIA's headers rename functions by macros.
#include "Comm/Nccl.h"
#include "Device/Nvtx.h"
#include "Support/DynamicLibrary.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <type_traits>

using namespace fsdprt;

#ifdef FSDP_CUDA_INCLUDE
#include <cuda.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

namespace {

/// Whether a caller may pass a T where the callee expects a U: a pointer of
/// equal constness, a number or a structure of equal size.
template <typename T, typename U>
constexpr bool passesAs() {
  if constexpr (std::is_pointer_v<T> && std::is_pointer_v<U>)
    return std::is_const_v<std::remove_pointer_t<T>> ==
           std::is_const_v<std::remove_pointer_t<U>>;
  else
    return std::is_pointer_v<T> == std::is_pointer_v<U> &&
           std::is_class_v<T> == std::is_class_v<U> && sizeof(T) == sizeof(U);
}

#define SAME_NUMBER(ours, theirs)                                              \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs), #ours)

template <typename Real, typename Ours>
struct Same : std::false_type {};
template <typename R, typename... Real, typename S, typename... Ours>
struct Same<R(Real...), S(Ours...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(Real) == sizeof...(Ours))
      return (passesAs<Ours, Real>() && ...) && passesAs<R, S>();
    else
      return false;
  }
  static constexpr bool value = check();
};

} // namespace

namespace fsdprt::cuda {
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  static_assert(Same<decltype(::symbol), Result parameters>::value, #symbol);
#include "Device/CudaFunctions.def"

#define SAME_FIELD(ours, theirs)                                               \
  static_assert(                                                               \
      offsetof(PoolProperties, ours) == offsetof(::CUmemPoolProps, theirs) &&  \
          sizeof(PoolProperties::ours) == sizeof(::CUmemPoolProps::theirs),    \
      #ours)
SAME_FIELD(allocation, allocType);
SAME_FIELD(handles, handleTypes);
SAME_FIELD(location, location);
SAME_FIELD(security, win32SecurityAttributes);
SAME_FIELD(maxBytes, maxSize);
SAME_FIELD(usage, usage);
SAME_FIELD(reserved, reserved);
#undef SAME_FIELD
static_assert(sizeof(PoolProperties) == sizeof(::CUmemPoolProps));

#define SAME_FIELD(ours, theirs)                                               \
  static_assert(                                                               \
      offsetof(LaunchConfig, ours) == offsetof(::CUlaunchConfig, theirs) &&    \
          sizeof(LaunchConfig::ours) == sizeof(::CUlaunchConfig::theirs),      \
      #ours)
SAME_FIELD(gridX, gridDimX);
SAME_FIELD(gridY, gridDimY);
SAME_FIELD(gridZ, gridDimZ);
SAME_FIELD(blockX, blockDimX);
SAME_FIELD(blockY, blockDimY);
SAME_FIELD(blockZ, blockDimZ);
SAME_FIELD(sharedBytes, sharedMemBytes);
SAME_FIELD(stream, hStream);
SAME_FIELD(attributes, attrs);
SAME_FIELD(attributeCount, numAttrs);
#undef SAME_FIELD
static_assert(sizeof(LaunchConfig) == sizeof(::CUlaunchConfig));

SAME_NUMBER(success, CUDA_SUCCESS);
SAME_NUMBER(errorInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_NUMBER(errorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(errorNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_NUMBER(errorNotFound, CUDA_ERROR_NOT_FOUND);
SAME_NUMBER(errorNotReady, CUDA_ERROR_NOT_READY);
SAME_NUMBER(errorCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_NUMBER(streamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(eventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(attributeCapabilityMajor,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(attributeCapabilityMinor,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(attributeMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_NUMBER(poolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_NUMBER(allocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_NUMBER(locationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(captureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_NUMBER(jitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
SAME_NUMBER(jitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
} // namespace fsdprt::cuda

namespace fsdprt::nccl {
#define FSDPRT_NCCL(result, name, parameters)                                  \
  static_assert(Same<decltype(::name), result parameters>::value, #name);
#include "Comm/NcclFunctions.def"

#define SAME_FIELD(field)                                                      \
  static_assert(offsetof(Config, field) == offsetof(::ncclConfig_t, field) &&  \
                    sizeof(Config::field) == sizeof(::ncclConfig_t::field),    \
                #field)
SAME_FIELD(size);
SAME_FIELD(magic);
SAME_FIELD(version);
SAME_FIELD(blocking);
SAME_FIELD(cgaClusterSize);
SAME_FIELD(minCTAs);
SAME_FIELD(maxCTAs);
SAME_FIELD(netName);
SAME_FIELD(splitShare);
#undef SAME_FIELD

SAME_NUMBER(success, ncclSuccess);
SAME_NUMBER(remoteError, ncclRemoteError);
SAME_NUMBER(inProgress, ncclInProgress);
SAME_NUMBER(uint8, ncclUint8);
SAME_NUMBER(float16, ncclFloat16);
SAME_NUMBER(float32, ncclFloat32);
SAME_NUMBER(float64, ncclFloat64);
SAME_NUMBER(bfloat16, ncclBfloat16);
SAME_NUMBER(sum, ncclSum);
SAME_NUMBER(avg, ncclAvg);
SAME_NUMBER(scalarHostImmediate, ncclScalarHostImmediate);
static_assert(sizeof(UniqueId) == sizeof(::ncclUniqueId));
SAME_NUMBER(leastVersion, NCCL_VERSION(2, 18, 0));

TEST(Headers, ConfigStartsAsNcclWantsIt) {
  Config ours;
  ::ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.cgaClusterSize, theirs.cgaClusterSize);
  EXPECT_EQ(ours.minCTAs, theirs.minCTAs);
  EXPECT_EQ(ours.maxCTAs, theirs.maxCTAs);
  EXPECT_EQ(ours.netName, theirs.netName);
  EXPECT_EQ(ours.splitShare, theirs.splitShare);
}
} // namespace fsdprt::nccl

SAME_NUMBER(nvtx::coreRangePushA, NVTX_CBID_CORE_RangePushA);
SAME_NUMBER(nvtx::coreRangePop, NVTX_CBID_CORE_RangePop);
SAME_NUMBER(nvtx::coreSlots, NVTX_CBID_CORE_SIZE);
SAME_NUMBER(nvtx::moduleCore, NVTX_CB_MODULE_CORE);
SAME_NUMBER(nvtx::tableCallbacks, NVTX_ETID_CALLBACKS);
SAME_NUMBER(nvtx::tableVersion, NVTX_ETID_VERSIONINFO);
static_assert(sizeof(nvtx::Callbacks) == sizeof(NvtxExportTableCallbacks) &&
              offsetof(nvtx::Callbacks, get) ==
                  offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(sizeof(nvtx::Version) == sizeof(NvtxExportTableVersionInfo) &&
              offsetof(nvtx::Version, setInjectionVersion) ==
                  offsetof(NvtxExportTableVersionInfo,
                           SetInjectionNvtxVersion));
#else
TEST(Headers, Compared) { GTEST_SKIP() << "no headers of CUDA and NCCL"; }
#endif

/// The first of the paths that exists, "" if none does.
static std::string firstOf(const std::vector<std::string> &paths) {
  for (const std::string &path : paths)
    if (std::filesystem::exists(path))
      return path;
  return "";
}

TEST(Libraries, DriverHasEveryFunction) {
  // A toolkit has a stub of the driver, with every symbol and nothing in it.
  std::string path = firstOf({"/usr/local/cuda/lib64/stubs/libcuda.so",
                              "/usr/lib/x86_64-linux-gnu/libcuda.so.1"});
  if (path.empty())
    GTEST_SKIP() << "no driver and no stub of it";
  DynamicLibrary library;
  ASSERT_EQ(library.open({path}), "");
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  EXPECT_NE(library.find(#symbol), nullptr) << #symbol;
#include "Device/CudaFunctions.def"
}

TEST(Libraries, NcclHasEveryFunctionAndAnswers) {
  std::string path = firstOf({"/usr/local/cuda/lib64/libnccl.so.2",
                              "/usr/lib/x86_64-linux-gnu/libnccl.so.2"});
  if (path.empty())
    GTEST_SKIP() << "no NCCL";
  setenv("FSDPRT_LIBNCCL", path.c_str(), 1);
  const nccl::Api *api = nullptr;
  ASSERT_EQ(nccl::load(api), "");
  int version = 0;
  EXPECT_EQ(api->ncclGetVersion(&version), nccl::success);
  EXPECT_GE(version, nccl::leastVersion);
  EXPECT_NE(api->ncclMemAlloc, nullptr);
  EXPECT_NE(api->ncclCommRegister, nullptr);
  // It works without a GPU: an id is a port of this machine.
  nccl::UniqueId id = {};
  EXPECT_EQ(api->ncclGetUniqueId(&id), nccl::success);
  EXPECT_STRNE(api->ncclGetErrorString(nccl::remoteError), "");
}
