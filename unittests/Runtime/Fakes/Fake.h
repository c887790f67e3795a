//===- Fake.h - a GPU and an NCCL that are neither --------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One shared library with the functions of libcuda and libnccl that the runtime
// calls, for machines without either. Device memory is memory of the process,
// a stream is a queue of functions, and collectives between threads and between
// processes move files in a folder whose name is the NCCL id. So the order of
// work on a stream, ranks that wait for each other and a collective that never
// ends are those of the real thing; kernels are functions that a test provides.
//
// Every call that does something is recorded, and every call can be made to
// fail. Tests find the functions below by dlsym.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_FAKES_FAKE_H
#define FSDP_UNITTESTS_RUNTIME_FAKES_FAKE_H

#include "Comm/Nccl.h"

#include <functional>
#include <string>

namespace fsdprt::fake {

/// Runs the kernel: the bytes of its first parameter, then its second.
using KernelBody = void (*)(const void *addresses, void *bucket);

struct Control {
  /// Forgets records, faults and kernels. Nothing may be alive.
  virtual void reset() = 0;

  /// What happened on stream number `stream` (from 0, in the order of their
  /// creation since the reset), a line per call. Addresses are left out, and so
  /// two ranks that do the same have equal records.
  virtual std::string record(int stream) = 0;

  /// Call number `call` (from 1) of `function` from now on returns `code`. A
  /// rank whose initialisation of NCCL fails with inProgress never gets there,
  /// and so nobody does.
  virtual void fail(const char *function, int call, int code) = 0;

  /// How often `function` has been called since the reset, or since it was told
  /// to fail. Only of functions that can fail.
  virtual int calls(const char *function) = 0;

  /// NCCL finds by itself, on every communicator, that something is wrong.
  virtual void setAsyncError(int code) = 0;

  virtual void setKernel(const char *name, KernelBody body) = 0;

  /// Streams are recording a graph.
  virtual void setCapturing(bool capturing) = 0;

  /// Somebody else in the process is recording a graph, in the global mode. The
  /// calls that the driver takes for unsafe then fail and break the recording,
  /// on every thread that has not said that it is relaxed about that.
  virtual void setForeignCapture(bool capturing) = 0;

  /// Functions that have broken the recording, separated by blanks.
  virtual std::string brokeCapture() = 0;

  /// From now on a call of `function`, of NCCL, on a blocking communicator does
  /// not return until that is aborted.
  virtual void hang(const char *function) = 0;

  /// Every range of the profiler, a line each: "+name" and "-".
  virtual std::string ranges() = 0;

  /// "2 buffers, 1 stream" of all that has been made and not been destroyed, ""
  /// if there is nothing.
  virtual std::string alive() = 0;
};

} // namespace fsdprt::fake

/// The one function beside those of CUDA and NCCL.
extern "C" fsdprt::fake::Control *fsdpFakeControl();

#endif // FSDP_UNITTESTS_RUNTIME_FAKES_FAKE_H
