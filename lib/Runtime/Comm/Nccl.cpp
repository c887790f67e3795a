//===- Nccl.cpp - the part of NCCL in use ---------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/Nccl.h"

#include "Support/DynamicLibrary.h"

using namespace fsdprt;
using namespace fsdprt::nccl;

std::string nccl::describeVersion(int version) {
  // Before 2.9 the major version stood one digit further right.
  int major = version < 10000 ? version / 1000 : version / 10000;
  int rest = version < 10000 ? version % 1000 : version % 10000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
         std::to_string(rest % 100);
}

static std::string fill(Api &api) {
  static DynamicLibrary library;
  std::string name = fileFromEnvironment("FSDPRT_LIBNCCL", "libnccl.so.2");
  if (std::string why = library.open({name}); !why.empty())
    return why;
#define FSDPRT_NCCL(result, name, parameters)                                  \
  api.name = reinterpret_cast<decltype(api.name)>(library.find(#name));
#include "Comm/NcclFunctions.def"
  // First the version: an old library lacks functions, and that is why.
  int version = 0;
  if (!api.ncclGetVersion)
    return name + " has no function ncclGetVersion";
  if (api.ncclGetVersion(&version) != success || version < leastVersion)
    return name + " has version " + describeVersion(version) + ", expected " +
           describeVersion(leastVersion) + " or newer";
#define FSDPRT_NCCL_OPTIONAL(result, name, parameters)
#define FSDPRT_NCCL(result, fn, parameters)                                    \
  if (!api.fn)                                                                 \
    return name + " has no function " #fn;
#include "Comm/NcclFunctions.def"
  return {};
}

std::string nccl::load(const Api *&api) { return loadOnce<Api, fill>(api); }
