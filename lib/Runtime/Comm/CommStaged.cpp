//===- CommStaged.cpp - collectives by way of host memory -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/CommStaged.h"

using namespace fsdprt;

namespace {

class CommStaged final : public Communicator {
public:
  CommStaged(std::unique_ptr<Communicator> inner, Device &device,
             const Grid &grid, int64_t rank)
      : inner(std::move(inner)), device(device), grid(grid), rank(rank) {}

  Status start(const std::string &planHash) override {
    return inner->start(planHash);
  }
  Status collective(const Call &call, const void *send, void *receive) override;
  void enterRun() override { inner->enterRun(); }
  void leaveRun() override { inner->leaveRun(); }
  Status worldStatus() override { return inner->worldStatus(); }
  void abort(const Status &status) override { inner->abort(status); }
  Watch *watch() override { return inner->watch(); }

private:
  const std::unique_ptr<Communicator> inner;
  Device &device;
  const Grid grid;
  const int64_t rank;
  std::vector<char> hostSend, hostReceive; ///< kept from call to call
};

Status CommStaged::collective(const Call &call, const void *send,
                              void *receive) {
  const int64_t row = call->count * sizeOf(call->dtype);
  const int64_t rows = row * grid.group(call->axes, rank).size();
  const int64_t sent = call->kind == CollectiveKind::ReduceScatter ? rows : row;
  const int64_t received = call->kind == CollectiveKind::AllGather ? rows : row;
  hostSend.resize(sent);
  hostReceive.resize(received);
  if (row != 0)
    if (Status status = device.copyOut(hostSend.data(), send, sent);
        status.failed())
      return status;
  if (Status status =
          inner->collective(call, hostSend.data(), hostReceive.data());
      status.failed() || row == 0)
    return status;
  return device.copyIn(receive, hostReceive.data(), received);
}

} // namespace

std::unique_ptr<Communicator>
fsdprt::createStagedCommunicator(std::unique_ptr<Communicator> inner,
                                 Device &device, const Grid &grid,
                                 int64_t rank) {
  return std::make_unique<CommStaged>(std::move(inner), device, grid, rank);
}
