//===- CommLocal.h - ranks that are threads of one process ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_COMMLOCAL_H
#define FSDP_LIB_RUNTIME_COMM_COMMLOCAL_H

#include "Comm/Communicator.h"

#include <memory>

namespace fsdprt {

/// One communicator per rank of the grid. A rank waits at most `timeoutSeconds`
/// for the others, 0 is for ever.
std::vector<std::unique_ptr<Communicator>>
createLocalCommunicators(const Grid &grid, double timeoutSeconds,
                         SumOrder order);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_COMMLOCAL_H
