//===- Nvtx.h - named ranges for NVIDIA's profilers -------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_NVTX_H
#define FSDP_LIB_RUNTIME_NVTX_H

namespace fsdprt {

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

#endif // FSDP_LIB_RUNTIME_NVTX_H
