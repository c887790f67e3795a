//===- Communicator.h - how ranks exchange data -----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One of the two axes of the runtime (the other is Device.h). A communicator is
// one rank's end of a world of ranks. The context has checked a call before it
// gets here; a communicator checks that the ranks agree on it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMMUNICATOR_H
#define FSDP_LIB_RUNTIME_COMMUNICATOR_H

#include "Reduction.h"
#include "Status.h"

#include <vector>

namespace fsdprt {

class Watch;

enum class CollectiveKind { AllGather, ReduceScatter, AllReduce };

/// "all_gather", ...
const char *nameOf(CollectiveKind kind);

/// What one rank asks for, without its buffers.
struct Call {
  int64_t number = 0; ///< counts the collectives of this rank, from 1
  CollectiveKind kind = CollectiveKind::AllGather;
  std::string bucket;
  std::vector<int32_t> axes; ///< of the grid; the group's numbering, row major
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

/// The arithmetic that a call asks for in a group of `members`.
Reduction reductionOf(const Call &call, int64_t members);

/// In which order a reduce_scatter adds. An all_reduce adds in the order of the
/// members whatever this says.
enum class SumOrder {
  Rank, ///< of the members
  Ring  ///< as in Gloo's ring
};

/// Reads "rank" or "ring"; false if `name` is neither.
bool parseSumOrder(const std::string &name, SumOrder &order);

/// Elements [begin, end) of a row, and the members of the group in the order in
/// which their terms are added there.
struct OrderedPart {
  int64_t begin, end;
  std::vector<int64_t> members;
};

/// The parts of `count` elements that are all added in the order of the
/// members.
std::vector<OrderedPart> inRankOrder(int64_t count, int64_t members);

/// The parts of the row of member `owner` in a reduce_scatter.
std::vector<OrderedPart> partsOfRow(SumOrder order, const Call &call,
                                    int64_t owner, int64_t members);

/// The grid of ranks, numbered row major.
struct Grid {
  std::vector<int64_t> shape;

  int64_t ranks() const;
  std::vector<int64_t> coordinates(int64_t rank) const;

  /// The ranks of the group along `axes` that `rank` is in, in the group's
  /// order.
  std::vector<int64_t> group(const std::vector<int32_t> &axes,
                             int64_t rank) const;
};

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Compares the plan hashes of all ranks.
  virtual Status start(const std::string &planHash) = 0;

  /// The meaning of `send` and `receive` is in RuntimeFunctions.def.
  virtual Status collective(const Call &call, const void *send,
                            void *receive) = 0;

  /// For reports: this rank enters or leaves an entry.
  virtual void enterRun() = 0;
  virtual void leaveRun() = 0;

  /// Why the world cannot go on, success if it can.
  virtual Status worldStatus() = 0;

  /// What ranks that are processes share beside their data; null for threads.
  virtual Watch *watch() { return nullptr; }

  /// Makes every rank fail. The first failure of a world is kept. Any thread.
  virtual void abort(const Status &status) = 0;
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMMUNICATOR_H
