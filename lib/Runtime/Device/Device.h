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

#ifndef FSDP_LIB_RUNTIME_DEVICE_DEVICE_H
#define FSDP_LIB_RUNTIME_DEVICE_DEVICE_H

#include "Support/Status.h"

#include <cstdint>
#include <functional>
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

  /// Sets `data` to `bytes` (not negative) bytes, aligned to 128. 0 bytes are a
  /// valid and unique pointer too. If there are not so many, the code is
  /// FSDPRT_OUT_OF_MEMORY; the context knows the words.
  virtual Status allocate(int64_t bytes, void *&data) = 0;

  /// Work that has been given to the device may still use the buffer.
  virtual void free(void *data) = 0;

  /// Fails if the device's driver is older than `version` of CUDA.
  virtual Status requireDriver(int version) = 0;

  virtual Status launch(const Launch &launch) = 0;

  /// From one buffer to another one, after all work given to the device before.
  virtual Status copy(void *to, const void *from, int64_t bytes) = 0;

  /// Sets `data` to a buffer with the `bytes` bytes at `host`, which never
  /// change and never go. Where the device can read the process' memory, that
  /// is `host` itself.
  virtual Status upload(const void *host, int64_t bytes, void *&data) = 0;

  /// Between the memory of the process and a buffer. Both return when the host
  /// memory is free again, which is after all work given to the device before.
  virtual Status copyIn(void *data, const void *host, int64_t bytes) = 0;
  virtual Status copyOut(void *host, const void *data, int64_t bytes) = 0;

  /// Waits for all work given to the device, or until `check`, which it calls
  /// now and then, finds a reason not to.
  virtual Status finish(const std::function<Status()> &check) = 0;
};

/// Ordinary memory of the process.
std::unique_ptr<Device> createHostDevice();

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_DEVICE_DEVICE_H
