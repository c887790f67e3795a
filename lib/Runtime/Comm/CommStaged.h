//===- CommStaged.h - collectives by way of host memory ---------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_COMMSTAGED_H
#define FSDP_LIB_RUNTIME_COMM_COMMSTAGED_H

#include "Comm/Communicator.h"
#include "Device/Device.h"

namespace fsdprt {

/// Lets `inner`, which works on host memory, serve buffers of `device`, which
/// outlives it: several ranks can share one GPU, and sums have the bits of the
/// reference. Slow, and meant for tests.
std::unique_ptr<Communicator>
createStagedCommunicator(std::unique_ptr<Communicator> inner, Device &device,
                         const Grid &grid, int64_t rank);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_COMMSTAGED_H
