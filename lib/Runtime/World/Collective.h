//===- Collective.h - what ranks meet in ------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H
#define FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H

#include "Support/Status.h"
#include "fsdp/Layout/Grid.h"
#include "fsdp/Runtime/Runtime.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdprt {

enum class CollectiveKind {
  AllGather = FSDPRT_ALL_GATHER,
  ReduceScatter = FSDPRT_REDUCE_SCATTER,
  AllReduce = FSDPRT_ALL_REDUCE
};

/// "all_gather", ...
const char *nameOf(CollectiveKind kind);

/// An fsdprtCollective that was checked, with names and axes of its own.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::string bucket;
  std::vector<int64_t> axes; ///< of the grid; the group's numbering, row major
  fsdprtDtype dtype = FSDPRT_BYTES;
  int64_t count = 0; ///< elements of one rank's row
  fsdprtReduction reduction = FSDPRT_SUM;
  double multiplier = 0; ///< for FSDPRT_PREMUL, as the caller gave it
  bool accumulate = false;
};

/// One time that a rank runs a collective. Calls of one record share it, so
/// that a copy allocates nothing.
struct Call {
  int64_t number = 0; ///< counts the collectives of this rank, from 1
  std::shared_ptr<const Collective> collective; ///< null if the number is 0

  const Collective *operator->() const { return collective.get(); }
};

/// "all_gather of bucket 'layer0_gather', 256 bytes".
std::string describe(const Collective &collective);

/// "call 17, all_gather of bucket 'layer0_gather', 256 bytes".
std::string describe(const Call &call);

/// Whether two ranks that meet in a collective mean the same one.
bool agree(const Collective &a, const Collective &b);

/// Checks `record` against `grid` and copies it. Fails with what is wrong,
/// which is expected to be said after the record's kind and bucket.
Status checkRecord(const fsdprtCollective &record, const mlir::fsdp::Grid &grid,
                   Collective &collective);

/// Whether `collective` is what `record` says, field by field.
bool isCopyOf(const Collective &collective, const fsdprtCollective &record);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H
