//===- DeviceHost.cpp - buffers in the memory of the process --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The system clears each page before its first use, which takes longer than to
// pack or to reduce what is written there, and the C library gives large blocks
// back to it at once. So large blocks are kept when they are freed: the next
// run of an entry asks for the same sizes again. At most as many bytes are kept
// as were in use at once, those that were used last; all go with the device.
//
//===----------------------------------------------------------------------===//

#include "Device/Device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

// The address sanitizer reports what touches a kept block.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FSDPRT_POISON(data, size) __asan_poison_memory_region(data, size)
#define FSDPRT_UNPOISON(data, size) __asan_unpoison_memory_region(data, size)
#else
#define FSDPRT_POISON(data, size) (void)0
#define FSDPRT_UNPOISON(data, size) (void)0
#endif

using namespace fsdprt;

namespace {

class DeviceHost final : public Device {
public:
  ~DeviceHost() override { releaseKept(0); }

  Status allocate(int64_t bytes, void *&data) override {
    if (static_cast<size_t>(bytes) >= kLarge)
      return allocateLarge(bytes, data);
    size_t size = roundUp(std::max<size_t>(bytes, 1), kAlignment);
    data = std::aligned_alloc(kAlignment, size);
    return data ? Status() : Status{FSDPRT_OUT_OF_MEMORY, {}};
  }

  void free(void *data) override {
    auto block = large.find(data);
    if (block == large.end())
      return std::free(data);
    // A program that still uses it is wrong, although nothing goes back to the
    // system.
    FSDPRT_POISON(data, block->second);
    kept.push_back({data, block->second});
    keptBytes += block->second;
    liveBytes -= block->second;
    large.erase(block);
    releaseKept(peakBytes);
  }

  Status requireDriver(int) override { return {}; }

  Status launch(const Launch &launch) override {
    return {FSDPRT_INVALID_ARGUMENT,
            "launch of kernel '" + launch.kernel +
                "': the host runs no kernels, expected a cuda device"};
  }

  Status copy(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }

  Status upload(const void *host, int64_t, void *&data) override {
    data = const_cast<void *>(host);
    return {};
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

private:
  static constexpr size_t kAlignment = 128, kHugePage = size_t(2) << 20;
  static constexpr size_t kLarge = 4 * kHugePage;

  struct Block {
    void *data;
    size_t size;
  };

  static size_t roundUp(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
  }

  Status allocateLarge(size_t bytes, void *&data);
  bool takeKept(size_t size, Block &block);
  void releaseKept(size_t most);

  std::unordered_map<void *, size_t> large; ///< blocks in use
  std::vector<Block> kept;                  ///< the one freed last is last
  size_t liveBytes = 0, peakBytes = 0;      ///< of blocks in use
  size_t keptBytes = 0;
};

Status DeviceHost::allocateLarge(size_t bytes, void *&data) {
  if (bytes > SIZE_MAX - kHugePage)
    return {FSDPRT_OUT_OF_MEMORY, {}};
  Block block = {nullptr, roundUp(bytes, kHugePage)};
  if (!takeKept(block.size, block)) {
    block.data = std::aligned_alloc(kHugePage, block.size);
    if (!block.data) {
      releaseKept(0);
      block.data = std::aligned_alloc(kHugePage, block.size);
    }
    if (!block.data)
      return {FSDPRT_OUT_OF_MEMORY, {}};
    // Half a million page faults cost more than the copy that causes them.
#if defined(MADV_HUGEPAGE)
    (void)madvise(block.data, block.size, MADV_HUGEPAGE); // no more than a wish
#endif
  }
  large.insert({block.data, block.size});
  liveBytes += block.size;
  peakBytes = std::max(peakBytes, liveBytes);
  data = block.data;
  return {};
}

/// Finds the smallest kept block that holds `size` bytes and wastes little.
bool DeviceHost::takeKept(size_t size, Block &block) {
  auto best = kept.end();
  for (auto it = kept.begin(); it != kept.end(); ++it)
    if (it->size >= size && it->size - size <= size / 8 &&
        (best == kept.end() || it->size < best->size))
      best = it;
  if (best == kept.end())
    return false;
  block = *best;
  kept.erase(best);
  keptBytes -= block.size;
  FSDPRT_UNPOISON(block.data, block.size);
  return true;
}

/// Gives blocks back to the system, those freed first first, until `most` bytes
/// are left.
void DeviceHost::releaseKept(size_t most) {
  auto block = kept.begin();
  for (; keptBytes > most; ++block) {
    FSDPRT_UNPOISON(block->data, block->size);
    std::free(block->data);
    keptBytes -= block->size;
  }
  kept.erase(kept.begin(), block);
}

} // namespace

std::unique_ptr<Device> fsdprt::createHostDevice() {
  return std::make_unique<DeviceHost>();
}
