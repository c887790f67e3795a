//===- Nvtx.cpp - named ranges for NVIDIA's profilers ---------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A profiler names a library in NVTX_INJECTION64_PATH. The library is loaded
// and given a table of slots, one for each function of NVTX, of which it fills
// those that it wants to hear of. NVTX's headers do just this for whoever
// includes them; the two functions in use here need few of their declarations,
// and so a runtime that was built without a toolkit can be profiled too.
//
//===----------------------------------------------------------------------===//

#include "Device/Nvtx.h"

#include "Support/DynamicLibrary.h"

#include <cstdlib>

using namespace fsdprt;
using namespace fsdprt::nvtx;

namespace {

Slot slots[coreSlots];
Slot *slotAddresses[coreSlots + 1]; ///< a null ends the table

int getModuleFunctionTable(int module, Slot ***table, unsigned *size) {
  if (module != moduleCore)
    return 0;
  if (table)
    *table = slotAddresses;
  if (size)
    *size = coreSlots;
  return 1;
}

const Callbacks callbacks = {sizeof(callbacks), getModuleFunctionTable};
const Version version = {sizeof(version), 3, 0, [](uint32_t) {}};

const void *getExportTable(uint32_t id) {
  if (id == tableCallbacks)
    return &callbacks;
  return id == tableVersion ? &version : nullptr;
}

struct Profiler {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;

  Profiler() {
    const char *path = std::getenv("NVTX_INJECTION64_PATH");
    static DynamicLibrary library;
    if (!path || !library.open({path}).empty())
      return;
    auto initialize = reinterpret_cast<int (*)(const void *(*)(uint32_t))>(
        library.find("InitializeInjectionNvtx2"));
    for (int i = 0; i < coreSlots; ++i)
      slotAddresses[i] = &slots[i];
    if (!initialize || !initialize(getExportTable))
      return;
    push = reinterpret_cast<int (*)(const char *)>(slots[coreRangePushA]);
    pop = reinterpret_cast<int (*)()>(slots[coreRangePop]);
  }
};

const Profiler &profiler() {
  static const Profiler instance;
  return instance;
}

} // namespace

NvtxRange::NvtxRange(const char *name) {
  if (profiler().push)
    profiler().push(name);
}

NvtxRange::~NvtxRange() {
  if (profiler().pop)
    profiler().pop();
}
