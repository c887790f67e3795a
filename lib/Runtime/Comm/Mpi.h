//===- Mpi.h - what the runtime needs of MPI --------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The border between libfsdprt, which needs no MPI, and libfsdprt_mpi, which is
// built where there is one and loaded when a world asks for it. MPI
// implementations differ in their binary interface; this one is ours.
//
// Bytes alone cross it, and nothing waits in it: the runtime polls, because
// only then can it know a deadline and the failure of another rank.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_MPI_H
#define FSDP_LIB_RUNTIME_COMM_MPI_H

#include <cstdint>
#include <memory>
#include <string>

namespace fsdprt {

class Mpi {
public:
  virtual ~Mpi() = default;

  int64_t rank = 0, ranks = 0;
  int64_t localRank = 0; ///< among the ranks that share this one's memory

  /// Transfers that are under way together. From one thread at a time.
  class Batch {
  public:
    virtual ~Batch() = default;

    /// Both ends must use the same tag and size; order counts between two
    /// ranks.
    virtual void send(int64_t to, int tag, const void *data, int64_t bytes) = 0;
    virtual void receive(int64_t from, int tag, void *data, int64_t bytes) = 0;

    /// True when all transfers so far have finished, or one has failed.
    virtual bool done() = 0;

    /// What went wrong, "" if nothing did.
    virtual const std::string &error() const = 0;

    /// Gives up what has not finished. Nothing is received any more; what is
    /// being sent may still be read.
    virtual void cancel() = 0;
  };
  virtual std::unique_ptr<Batch> batch() = 0;

  /// Messages of any size, apart from the batches; see Channel.h. From any
  /// thread.
  virtual std::string sendMessage(int64_t to, const std::string &message) = 0;
  virtual bool receiveMessage(int64_t &from, std::string &message) = 0;

  /// Waits until every message is on its way.
  virtual void flushMessages() = 0;
};

/// Changes with anything above.
constexpr int32_t mpiInterfaceVersion = 1;

/// The one exported function, "fsdprtCreateMpi": initialises MPI if nobody has,
/// and finalises it at the end of the process if that was needed. Returns null
/// and a sentence on failure.
using CreateMpi = Mpi *(*)(int32_t version, std::string *message);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_MPI_H
