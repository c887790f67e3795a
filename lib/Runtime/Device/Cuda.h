//===- Cuda.h - the part of the CUDA driver API in use ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handful of types, constants and functions, declared here so that building
// needs no toolkit. A test compares them with NVIDIA's header where there is
// one (unittests/Runtime/HeadersTest.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_DEVICE_CUDA_H
#define FSDP_LIB_RUNTIME_DEVICE_CUDA_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdprt::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
using Context = struct ContextHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;
using MemoryPool = struct MemoryPoolHandle *;
using Library = struct LibraryHandle *;
using Kernel = struct KernelHandle *;
using Function = struct FunctionHandle *;

struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  Stream stream;
  void *attributes;
  unsigned attributeCount;
};

struct MemoryLocation {
  int type;
  int id;
};

struct PoolProperties {
  int allocation;
  int handles;
  MemoryLocation location;
  void *security;
  size_t maxBytes;
  unsigned short usage;
  unsigned char reserved[54];
};

enum : Result {
  success = 0,
  errorInvalidValue = 1,
  errorOutOfMemory = 2,
  errorNoBinaryForGpu = 209,
  errorNotFound = 500,
  errorNotReady = 600,
  errorCaptureUnsupported = 900,
};

constexpr unsigned streamNonBlocking = 1;
constexpr unsigned eventDisableTiming = 2;
constexpr int attributeCapabilityMajor = 75;
constexpr int attributeCapabilityMinor = 76;
constexpr int attributeMemoryPools = 115;
constexpr int poolReleaseThreshold = 4;
constexpr int allocationPinned = 1;   ///< what pools are made of
constexpr int locationDevice = 1;     ///< in the memory of device `id`
constexpr int captureModeRelaxed = 2; ///< of a thread, see RelaxedCapture
constexpr int jitErrorLog = 5;
constexpr int jitErrorLogBytes = 6;

/// The first driver that has all that is not optional.
constexpr int leastDriverVersion = 12000;

/// The driver's version, and its functions by name.
struct Api {
  int version = 0;
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  Result(*name) parameters = nullptr;
#include "Device/CudaFunctions.def"

  /// "cuMemAllocAsync: CUDA_ERROR_...: out of memory".
  std::string describe(const char *call, Result result) const;
};

/// The driver of this machine, loaded once. Returns what went wrong, "" if
/// nothing did. The file is libcuda.so.1, or what FSDPRT_LIBCUDA names.
std::string load(const Api *&api);

/// "13.0" for 13000.
std::string describeVersion(int version);

} // namespace fsdprt::cuda

#endif // FSDP_LIB_RUNTIME_DEVICE_CUDA_H
