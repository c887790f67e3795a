//===- Nvtx.h - named ranges for NVIDIA's profilers -------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_DEVICE_NVTX_H
#define FSDP_LIB_RUNTIME_DEVICE_NVTX_H

#include <cstddef>
#include <cstdint>

namespace fsdprt {

/// What a profiler's library is given; the numbers are NVTX's.
namespace nvtx {

using Slot = void (*)();

enum { coreRangePushA = 9, coreRangePop = 11, coreSlots = 16 };
enum : int { moduleCore = 1 };
enum : uint32_t { tableCallbacks = 1, tableVersion = 3 };

struct Callbacks {
  size_t bytes;
  /// Addresses of a module's slots, from index 0, which is none.
  int (*get)(int module, Slot ***table, unsigned *size);
};

struct Version {
  size_t bytes;
  uint32_t version, reserved;
  void (*setInjectionVersion)(uint32_t);
};

} // namespace nvtx

/// A range of the profiler's time line, as long as the object lives. Without a
/// profiler it costs a load and a branch.
class NvtxRange {
public:
  explicit NvtxRange(const char *name);
  ~NvtxRange();

  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_DEVICE_NVTX_H
