//===- DeviceHost.cpp - buffers in the memory of the process --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace fsdprt;

namespace {

class DeviceHost final : public Device {
public:
  Status allocate(int64_t bytes, void *&data) override {
    // Large buffers ask for huge pages: a packed layer is touched for the first
    // time by the pack itself, and half a million page faults cost more than
    // the copy.
    constexpr size_t alignment = 128, hugePage = size_t(2) << 20;
    bool large = static_cast<size_t>(bytes) >= 4 * hugePage;
    size_t unit = large ? hugePage : alignment;
    if (static_cast<size_t>(bytes) > SIZE_MAX - unit)
      return {FSDPRT_OUT_OF_MEMORY, {}};
    size_t size = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
    data = std::aligned_alloc(unit, size);
    if (!data)
      return {FSDPRT_OUT_OF_MEMORY, {}};
#if defined(MADV_HUGEPAGE)
    if (large)
      (void)madvise(data, size, MADV_HUGEPAGE); // a wish, nothing depends on it
#endif
    return {};
  }

  void free(void *data) override { std::free(data); }

  Status launch(const Launch &launch) override {
    return {FSDPRT_INVALID_ARGUMENT,
            "launch of kernel '" + launch.kernel +
                "': the host runs no kernels, expected a cuda device"};
  }

  Status copyIn(void *data, const void *host, int64_t bytes) override {
    std::memcpy(data, host, bytes);
    return {};
  }

  Status copyOut(void *host, const void *data, int64_t bytes) override {
    std::memcpy(host, data, bytes);
    return {};
  }

  Status finish(const std::function<Status()> &) override { return {}; }
};

} // namespace

std::unique_ptr<Device> fsdprt::createHostDevice() {
  return std::make_unique<DeviceHost>();
}
