//===- Collective.h - what ranks meet in ------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H
#define FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H

#include "fsdp/Runtime/Runtime.h"

#include <string>
#include <vector>

namespace fsdprt {

enum class CollectiveKind { AllGather, ReduceScatter, AllReduce };

/// "all_gather", ...
const char *nameOf(CollectiveKind kind);

/// What one rank asks for, without its buffers.
struct Call {
  int64_t number = 0; ///< counts the collectives of this rank, from 1
  CollectiveKind kind = CollectiveKind::AllGather;
  std::string bucket;
  std::vector<int64_t> axes; ///< of the grid; the group's numbering, row major
  fsdprtDtype dtype = FSDPRT_BYTES;
  int64_t count = 0; ///< elements of one rank's row
  fsdprtReduction reduction = FSDPRT_SUM;
  double multiplier = 0; ///< for FSDPRT_PREMUL, as the caller gave it
  bool accumulate = false;
};

/// "call 17, all_gather of bucket 'layer0_gather', 256 bytes".
std::string describe(const Call &call);

/// Whether two ranks that meet in a collective mean the same one.
bool agree(const Call &a, const Call &b);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_COLLECTIVE_H
