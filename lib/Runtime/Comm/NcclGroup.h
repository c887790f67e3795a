//===- NcclGroup.h - one NCCL communicator ----------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NCCL communicator of a group of ranks with what belongs to it: operators
// with a multiplier, registered buffers. There are two kinds.
//
//   root     made from an id. Non-blocking: ranks that do not come are waited
//            for with a way out. It does no collectives: in recent versions of
//            NCCL each one of a non-blocking communicator starts a thread, and
//            its end must be polled for.
//   split    of the root, which is never busy, so that NCCL may split it at any
//            time; shares the root's resources. Blocking: a collective is in
//            the stream when the call returns. The way out of a call that does
//            not return is abort, from another thread.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_NCCLGROUP_H
#define FSDP_LIB_RUNTIME_COMM_NCCLGROUP_H

#include "Comm/Communicator.h"
#include "Comm/Nccl.h"

#include <atomic>
#include <functional>
#include <map>

namespace fsdprt {

class NcclGroup {
public:
  /// Asked while a call of the root is under way; a failure is a reason to wait
  /// no longer.
  using Check = std::function<Status()>;

  NcclGroup(const nccl::Api &api, Check check)
      : api(api), check(std::move(check)) {}

  /// Aborts if the group was not closed.
  ~NcclGroup() { abort(); }

  /// Makes a root. Collective over `ranks` ranks, of which this is number
  /// `rank`.
  Status open(const nccl::UniqueId &id, int64_t ranks, int64_t rank);

  /// Makes a split. Collective over the ranks of `parent`, a root: those with
  /// the same colour make a group, in the order of their keys.
  Status split(NcclGroup &parent, int64_t colour, int64_t key);

  /// Makes what NCCL has to have made before a group of calls begins.
  Status prepare(const Call &call, int64_t members);

  /// Gives the collective to the stream, or to the group of calls that is open.
  /// The buffers are on the device.
  Status start(const Call &call, int64_t members, const void *send,
               void *receive, cuda::Stream stream, bool isGrouped);

  /// For each communicator of a group of calls that `function`, which returned
  /// `result`, began or ended.
  Status settleGroup(const char *function, nccl::Result result);

  /// Tells NCCL about a block of memory, once; false if it takes none.
  bool registerBlock(void *data, int64_t bytes);
  void forgetBlock(void *data);

  /// What NCCL has found wrong by itself. From any thread.
  Status asyncStatus();

  /// Orderly end, when no collective is under way.
  void close();

  /// The end, whatever is under way: a call on another thread returns with an
  /// error then.
  void abort();

private:
  Status settle(const std::string &call, nccl::Result result);
  Status failure(const std::string &call, nccl::Result result);
  Status findOp(const Collective &call, int64_t members, nccl::RedOp &op);

  const nccl::Api &api;
  const Check check;
  std::atomic<nccl::Comm> comm{nullptr}; ///< null from its end on
  nccl::Comm splitInto = nullptr; ///< written by NCCL, while the root splits
  std::map<std::pair<int32_t, double>, nccl::RedOp> ops; ///< dtype, multiplier
  std::map<void *, void *> blocks;                       ///< data to handle
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_NCCLGROUP_H
