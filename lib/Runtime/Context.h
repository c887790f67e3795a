//===- Context.h - one rank: its buffers and its first failure --*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the C functions act on. A context joins a device and a communicator,
// checks every call before either sees it, owns and counts the buffers, and
// keeps the first failure for ever.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_CONTEXT_H
#define FSDP_LIB_RUNTIME_CONTEXT_H

#include "Comm/Communicator.h"
#include "Device/Device.h"

#include <unordered_map>

struct fsdprtContext {
public:
  fsdprtContext(std::unique_ptr<fsdprt::Device> device,
                std::unique_ptr<fsdprt::Communicator> communicator,
                const fsdprt::Grid &grid, int64_t rank,
                const fsdprtOptions &options);
  ~fsdprtContext();

  fsdprtStatus start(const char *planHash);
  fsdprtStatus run(fsdprtEntry entry, void *const *arguments,
                   void *const *results);
  fsdprtStatus allocate(int64_t bytes, void **data);
  fsdprtStatus free(void *data);
  fsdprtStatus copyOnDevice(const void *from, void *to, int64_t bytes);
  fsdprtStatus constant(const void *host, int64_t bytes, void **data);
  fsdprtStatus getRank(int64_t *result);
  fsdprtStatus getCoordinate(int32_t axis, int64_t *result);

  fsdprtStatus requireDriver(int32_t version);
  fsdprtStatus launch(const fsdprt::Launch &launch);

  /// Copies from `host` to the buffer `data` if `in`, else the other way.
  fsdprtStatus copy(void *data, const void *host, int64_t bytes, bool in);

  /// Numbers the calls and hands them to the communicator.
  fsdprtStatus runCollectives(const fsdprtCollective *const *records,
                              int32_t count, const void *const *send,
                              void *const *receive);

  /// Fails with what a function has thrown. Throws nothing itself.
  fsdprtStatus failThrown() noexcept;

  fsdprt::Status worldStatus() { return communicator->worldStatus(); }
  bool failedFirst();
  fsdprtStatus exchange(const char *what, const void *send, int64_t bytes,
                        void *receive, double timeoutSeconds);
  fsdprtStatus collect(const char *what, int64_t from, const void *send,
                       int64_t bytes, void *receive, double timeoutSeconds);

  const std::string &message() const { return failure.message; }
  fsdprtStatistics statistics() const;
  void abort(const char *reason);

private:
  struct Buffer {
    int64_t bytes;
    bool ofRun; ///< allocated by the entry that runs
  };

  /// Records `status` as the context's failure, tells the other ranks, and
  /// returns its code.
  fsdprtStatus fail(fsdprt::Status status);
  /// The watch of a world of processes; fails where there is none.
  fsdprt::Watch *watchFor(const char *what, int64_t bytes,
                          double timeoutSeconds);
  fsdprt::Status
  findCollective(const fsdprtCollective *record,
                 std::shared_ptr<const fsdprt::Collective> &collective);
  void release(std::unordered_map<void *, Buffer>::iterator buffer);

  /// Frees what the entry left; returns how much that was.
  Buffer releaseRun(int64_t &buffers);

  const std::unique_ptr<fsdprt::Device> device;
  const std::unique_ptr<fsdprt::Communicator> communicator;
  const fsdprt::Grid grid;
  const int64_t rank;
  const fsdprtOptions options;
  fsdprt::Status failure;
  bool started = false;
  bool running = false;
  int64_t calls = 0;
  int64_t liveBytes = 0;
  int64_t peakBytes = 0;
  std::unordered_map<void *, Buffer> buffers;
  /// Where the device has constants of an artefact, by their place in it.
  std::unordered_map<const void *, void *> constants;
  /// What was checked, by the record's place in the artefact.
  std::unordered_map<const fsdprtCollective *,
                     std::shared_ptr<const fsdprt::Collective>>
      collectives;
  std::vector<fsdprt::Call> batch; ///< kept from call to call
};

#endif // FSDP_LIB_RUNTIME_CONTEXT_H
