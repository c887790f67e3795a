//===- FakeProfiler.cpp - a profiler that listens to ranges ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device/Nvtx.h"
#include "FakeState.h"

using namespace fsdprt;
using fake::state;

static int push(const char *name) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().rangeText += "+" + std::string(name) + "\n";
  return 0;
}

static int pop() {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().rangeText += "-\n";
  return 0;
}

/// What NVIDIA's profilers export for whoever uses NVTX.
extern "C" int InitializeInjectionNvtx2(const void *(*getTable)(uint32_t)) {
  auto *callbacks =
      static_cast<const nvtx::Callbacks *>(getTable(nvtx::tableCallbacks));
  nvtx::Slot **slots = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->get(nvtx::moduleCore, &slots, &size) ||
      size <= nvtx::coreRangePop)
    return 0;
  *slots[nvtx::coreRangePushA] = reinterpret_cast<nvtx::Slot>(push);
  *slots[nvtx::coreRangePop] = reinterpret_cast<nvtx::Slot>(pop);
  return 1;
}
