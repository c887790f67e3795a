//===- Device.h - where buffers live ----------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One of the two axes of the runtime (the other is Communicator.h): which
// memory a context allocates from, and what runs kernels. Accounting, ownership
// and the checks of arguments are the context's business.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_DEVICE_H
#define FSDP_LIB_RUNTIME_DEVICE_H

#include "Status.h"

#include <cstdint>
#include <memory>

namespace fsdprt {

/// A kernel, its grid and its two parameters; see fsdprtLaunch.
struct Launch {
  const void *image;
  int64_t imageBytes;
  std::string kernel;
  int64_t blocksX, blocksY, threads;
  const void *addresses;
  int64_t addressBytes;
  void *bucket;
};

class Device {
public:
  virtual ~Device() = default;

  /// Returns `bytes` (not negative) bytes, aligned to 128, or null if there are
  /// not so many. 0 bytes are a valid and unique pointer too.
  virtual void *allocate(int64_t bytes) = 0;

  virtual void free(void *data) = 0;

  virtual Status launch(const Launch &launch) = 0;
};

/// Ordinary memory of the process.
std::unique_ptr<Device> createHostDevice();

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_DEVICE_H
