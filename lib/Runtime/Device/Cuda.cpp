//===- Cuda.cpp - the part of the CUDA driver API in use ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device/Cuda.h"

#include "Support/DynamicLibrary.h"

using namespace fsdprt;
using namespace fsdprt::cuda;

std::string Api::describe(const char *call, Result result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return std::string(call) + ": " +
         (name ? name : "error " + std::to_string(result)) +
         (text ? std::string(": ") + text : std::string());
}

std::string cuda::describeVersion(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

static std::string fill(Api &api) {
  static DynamicLibrary library;
  std::string name = fileFromEnvironment("FSDPRT_LIBCUDA", "libcuda.so.1");
  if (std::string why = library.open({name}); !why.empty())
    return why;
#define FSDPRT_CUDA(name, symbol, parameters)                                  \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#symbol));
#include "Device/CudaFunctions.def"
  // First the version: an old driver lacks functions, and that is why.
  int &version = api.version;
  if (!api.cuDriverGetVersion)
    return name + " has no function cuDriverGetVersion";
  if (api.cuDriverGetVersion(&version) != success ||
      version < leastDriverVersion)
    return name + " is of CUDA " + describeVersion(version) + ", expected " +
           describeVersion(leastDriverVersion) + " or newer";
#define FSDPRT_CUDA_OPTIONAL(name, symbol, parameters)
#define FSDPRT_CUDA(fn, symbol, parameters)                                    \
  if (!api.fn)                                                                 \
    return name + " has no function " #symbol;
#include "Device/CudaFunctions.def"
  if (Result result = api.cuInit(0))
    return api.describe("cuInit", result);
  return {};
}

std::string cuda::load(const Api *&api) { return loadOnce<Api, fill>(api); }
