//===- Nccl.h - the part of NCCL in use -------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Cuda.h: declared here, compared with NVIDIA's header by a test.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_NCCL_H
#define FSDP_LIB_RUNTIME_COMM_NCCL_H

#include "Device/Cuda.h"

#include <climits>

namespace fsdprt::nccl {

using Result = int;
using DataType = int;
using RedOp = int;
using Comm = struct CommHandle *;

struct UniqueId {
  char bytes[128];
};

enum : Result { success = 0, remoteError = 6, inProgress = 7 };
enum : DataType {
  uint8 = 1,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9
};
enum : RedOp { sum = 0, avg = 4 };
constexpr int scalarHostImmediate = 1;

/// The first NCCL with ncclCommSplit.
constexpr int leastVersion = 21800;

/// The configuration as it was in that version; size and version tell a newer
/// library which fields are there.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = leastVersion;
  int blocking = 0; ///< 0: calls return at once, their end is asked for
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN; ///< 1: its splits have no resources of their own
};

/// The functions of the library, by name.
struct Api {
#define FSDPRT_NCCL(result, name, parameters)                                  \
  result(*name) parameters = nullptr;
#include "Comm/NcclFunctions.def"
};

/// As cuda::load, with libnccl.so.2 and FSDPRT_LIBNCCL.
std::string load(const Api *&api);

/// "2.28.9" for 22809.
std::string describeVersion(int version);

} // namespace fsdprt::nccl

#endif // FSDP_LIB_RUNTIME_COMM_NCCL_H
