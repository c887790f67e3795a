//===- FakeState.h - what both fakes share ----------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_FAKES_FAKESTATE_H
#define FSDP_UNITTESTS_RUNTIME_FAKES_FAKESTATE_H

#include "Fake.h"

#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace fsdprt::fake {

struct FakeStream {
  int number = 0;
  /// In order; one that returns false waits, and what is behind it too.
  std::deque<std::function<bool()>> work;
};

class State final : public Control {
public:
  ~State() { removeFolders(); }
  void reset() override;
  std::string record(int stream) override;
  void fail(const char *function, int call, int code) override;
  int calls(const char *function) override;
  void setAsyncError(int code) override;
  void setKernel(const char *name, KernelBody body) override;
  void setCapturing(bool capturing) override;
  void setForeignCapture(bool capturing) override;
  std::string brokeCapture() override;
  void hang(const char *function) override;
  std::string ranges() override;
  std::string alive() override;

  /// Appends to the record of a stream, and to the file that FSDP_FAKE_RECORD
  /// names, with the number of the process behind its name.
  void note(const FakeStream *stream, const std::string &line);

  /// The code that this call of `function` must return, 0 if it may go on.
  int fault(const std::string &function);

  /// As `fault`, for a call that must not happen while others record.
  int unsafe(const std::string &function);

  /// A rank that failed early leaves the world's folder behind.
  void removeFolders();

  /// Does all work of all streams that can be done.
  void pump();

  std::recursive_mutex mutex;
  std::vector<FakeStream *> streams;
  std::map<int, std::string> records;
  std::map<std::string, std::pair<int, int>> faults; ///< calls to go, code
  std::map<std::string, int> called;                 ///< how often
  std::map<std::string, KernelBody> kernels;
  std::map<std::string, int> live;    ///< by kind
  std::map<uint64_t, size_t> buffers; ///< sizes of device memory, by address
  int broken = 0; ///< what everything returns after a kernel has failed
  std::string rangeText;
  std::vector<std::string> folders; ///< of NCCL ids made here
  int asyncError = 0;
  int nextStream = 0;
  bool capturing = false;
  bool foreignCapture = false;
  std::string broke;
  std::string hanging; ///< function
};

State &state();

/// At the head of a function of a library that is faked.
#define FAULT(function)                                                        \
  Lock lock(state().mutex);                                                    \
  if (int code = state().fault(#function))                                     \
  return code

/// The same, for a function that must not be called while others record.
#define UNSAFE(function)                                                       \
  Lock lock(state().mutex);                                                    \
  if (int code = state().unsafe(#function))                                    \
  return code

} // namespace fsdprt::fake

#endif // FSDP_UNITTESTS_RUNTIME_FAKES_FAKESTATE_H
