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

#ifndef FSDP_LIB_RUNTIME_COMM_COMMUNICATOR_H
#define FSDP_LIB_RUNTIME_COMM_COMMUNICATOR_H

#include "Comm/Reduction.h"
#include "Support/Status.h"
#include "World/Collective.h"
#include "fsdp/Layout/Grid.h"

#include <vector>

namespace fsdprt {

using mlir::fsdp::Grid;

class Watch;

/// The arithmetic that a call asks for in a group of `members`.
Reduction reductionOf(const Collective &collective, int64_t members);

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
std::vector<OrderedPart> partsOfRow(SumOrder order,
                                    const Collective &collective, int64_t owner,
                                    int64_t members);

class Communicator {
public:
  virtual ~Communicator() = default;

  /// Compares the plan hashes of all ranks.
  virtual Status start(const std::string &planHash) = 0;

  /// The meaning of `send` and `receive` is in RuntimeFunctions.def.
  virtual Status collective(const Call &call, const void *send,
                            void *receive) = 0;
  /// `count` of them in order, as one call where there is such a thing.
  virtual Status collectives(const Call *calls, int32_t count,
                             const void *const *send, void *const *receive);

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

#endif // FSDP_LIB_RUNTIME_COMM_COMMUNICATOR_H
