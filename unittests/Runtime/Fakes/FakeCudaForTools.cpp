//===- FakeCudaForTools.cpp - what scripts/gpu-check calls besides --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of the driver that the runtime does not use: plain allocations and
// copies, graphs, and events that measure. No time passes on the fake: whatever
// lies between two events takes one millisecond.
//
//===----------------------------------------------------------------------===//

#include "FakeState.h"

#include <cstdlib>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::cuda;
using fake::FakeStream;
using fake::state;
using Graph = std::deque<std::function<bool()>>;
using Lock = std::lock_guard<std::recursive_mutex>;

static FakeStream *of(Stream stream) {
  return reinterpret_cast<FakeStream *>(stream);
}

static void *pointer(Address address) {
  return reinterpret_cast<void *>(address);
}

extern "C" {

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = size_t(1) << 28;
  return success;
}

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  Lock lock(state().mutex);
  if (int code = state().fault("cuMemAlloc_v2"))
    return code;
  *address = reinterpret_cast<Address>(
      std::aligned_alloc(512, (bytes + 511) / 512 * 512));
  state().buffers[*address] = bytes;
  return success;
}

Result cuMemFree_v2(Address address) {
  Lock lock(state().mutex);
  state().pump();
  state().buffers.erase(address);
  std::free(pointer(address));
  return success;
}

Result cuMemsetD8Async(Address to, unsigned char byte, size_t bytes,
                       Stream stream) {
  Lock lock(state().mutex);
  of(stream)->work.push_back([=] {
    std::memset(pointer(to), byte, bytes);
    return true;
  });
  return success;
}

Result cuStreamSynchronize(Stream) {
  Lock lock(state().mutex);
  if (int code = state().fault("cuStreamSynchronize"))
    return code;
  state().pump();
  return state().broken;
}

Result cuEventElapsedTime(float *milliseconds, Event, Event) {
  *milliseconds = 1;
  return success;
}

Result cuStreamBeginCapture_v2(Stream, int) {
  Lock lock(state().mutex);
  state().pump();
  state().capturing = true;
  return success;
}

Result cuStreamEndCapture(Stream stream, Graph **graph) {
  Lock lock(state().mutex);
  state().capturing = false;
  *graph = new Graph();
  std::swap(**graph, of(stream)->work);
  return success;
}

Result cuGraphInstantiateWithFlags(Graph **executable, Graph *graph,
                                   unsigned long long) {
  *executable = new Graph(*graph);
  return success;
}

Result cuGraphLaunch(Graph *executable, Stream stream) {
  Lock lock(state().mutex);
  for (const std::function<bool()> &work : *executable)
    of(stream)->work.push_back(work);
  return success;
}

Result cuGraphExecDestroy(Graph *executable) {
  Lock lock(state().mutex);
  state().pump();
  delete executable;
  return success;
}

Result cuGraphDestroy(Graph *graph) {
  delete graph;
  return success;
}

} // extern "C"
