//===- CommMpi.h - ranks that are processes under MPI -----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_COMMMPI_H
#define FSDP_LIB_RUNTIME_COMM_COMMMPI_H

#include "Comm/Communicator.h"
#include "Comm/Mpi.h"
#include "World/Channel.h"

namespace fsdprt {

/// Loads libfsdprt_mpi and initialises MPI. Returns what went wrong, "" if
/// nothing did. MPI waits there for all ranks, and nothing can make it stop: if
/// that takes longer than the timeout (0: any time), the process ends, with a
/// sentence on standard error.
std::string openMpi(std::shared_ptr<Mpi> &mpi, double timeoutSeconds);

/// Messages between the ranks of MPI_COMM_WORLD.
std::unique_ptr<Channel> createMpiChannel(std::shared_ptr<Mpi> mpi);

/// This process's end of a world of `grid.ranks()` processes on host memory.
std::unique_ptr<Communicator> createMpiCommunicator(const Grid &grid,
                                                    std::shared_ptr<Mpi> mpi,
                                                    double timeoutSeconds,
                                                    SumOrder order);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_COMMMPI_H
