//===- NcclGroup.h - one NCCL communicator ----------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NCCL communicator of a group of ranks with what belongs to it: operators
// with a multiplier, registered buffers. Non-blocking: a call that has not
// finished says so, and is waited for with a way out.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_NCCLGROUP_H
#define FSDP_LIB_RUNTIME_NCCLGROUP_H

#include "Communicator.h"
#include "Nccl.h"

#include <functional>
#include <map>

namespace fsdprt {

class NcclGroup {
public:
  /// Asked while a call is under way; a failure is a reason to wait no longer.
  using Check = std::function<Status()>;

  NcclGroup(const nccl::Api &api, Check check)
      : api(api), check(std::move(check)) {}

  /// Aborts if the group was not closed.
  ~NcclGroup() { abort(); }

  /// Collective over `ranks` ranks, of which this is number `rank`.
  Status open(const nccl::UniqueId &id, int64_t ranks, int64_t rank);

  /// Collective over the ranks of `parent`: those with the same colour make a
  /// group, in the order of their keys.
  Status split(NcclGroup &parent, int64_t colour, int64_t key);

  /// Gives the collective to the stream. The buffers are on the device.
  Status start(const Call &call, int64_t members, const void *send,
               void *receive, cuda::Stream stream);

  /// Tells NCCL about a block of memory, once; false if it takes none.
  bool registerBlock(void *data, int64_t bytes);
  void forgetBlock(void *data);

  /// What NCCL has found wrong by itself. From any thread.
  Status asyncStatus();

  /// Orderly end, when no collective is under way.
  void close();

  /// The end, whatever is under way.
  void abort();

private:
  Status settle(const std::string &call, nccl::Result result);
  Status failure(const std::string &call, nccl::Result result);
  Status findOp(const Call &call, int64_t members, nccl::RedOp &op);

  const nccl::Api &api;
  const Check check;
  nccl::Comm comm = nullptr;
  std::map<std::pair<int32_t, double>, nccl::RedOp> ops; ///< dtype, multiplier
  std::map<void *, void *> blocks;                       ///< data to handle
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_NCCLGROUP_H
