//===- CommNccl.h - ranks that are processes with a GPU each ----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_COMMNCCL_H
#define FSDP_LIB_RUNTIME_COMM_COMMNCCL_H

#include "Comm/Communicator.h"
#include "Comm/Nccl.h"
#include "Device/DeviceCuda.h"
#include "World/Channel.h"

namespace fsdprt {

/// This rank's end of a world on `device`, which outlives it. The ids of NCCL
/// and all that is no data travel over `channel`.
std::unique_ptr<Communicator>
createNcclCommunicator(const Grid &grid, const nccl::Api &api,
                       DeviceCuda &device, std::unique_ptr<Channel> channel,
                       double timeoutSeconds, Log log);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_COMMNCCL_H
