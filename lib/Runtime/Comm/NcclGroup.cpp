//===- NcclGroup.cpp - one NCCL communicator ------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/NcclGroup.h"

#include <cstring>
#include <thread>
#include <utility>

using namespace fsdprt;

Status NcclGroup::failure(const std::string &call, nccl::Result result) {
  std::string text = call + ": " + api.ncclGetErrorString(result);
  nccl::Comm asked = comm;
  if (const char *last = asked ? api.ncclGetLastError(asked) : nullptr;
      last && *last)
    text += " (" + std::string(last) + ")";
  return {FSDPRT_DEVICE_ERROR, text};
}

/// The end of a call that returned `result`.
Status NcclGroup::settle(const std::string &call, nccl::Result result) {
  if (Status status = check(); status.failed() && !comm)
    return status; // it was aborted, and why is known better
  for (int polls = 0; result == nccl::inProgress; ++polls) {
    if (Status status = check(); status.failed())
      return status;
    if (polls < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (api.ncclCommGetAsyncError(comm, &result) != nccl::success)
      return failure(call, result);
  }
  return result == nccl::success ? Status() : failure(call, result);
}

Status NcclGroup::open(const nccl::UniqueId &id, int64_t ranks, int64_t rank) {
  nccl::Config config;
  config.splitShare = 1;
  nccl::Comm made = nullptr;
  nccl::Result result = api.ncclCommInitRankConfig(
      &made, static_cast<int>(ranks), id, static_cast<int>(rank), &config);
  comm = made;
  return settle("ncclCommInitRankConfig", result);
}

Status NcclGroup::split(NcclGroup &parent, int64_t colour, int64_t key) {
  nccl::Config config;
  config.blocking = 1;
  nccl::Result result =
      api.ncclCommSplit(parent.comm, static_cast<int>(colour),
                        static_cast<int>(key), &splitInto, &config);
  // The parent is at work, and the child is there only when it is not.
  if (Status status = parent.settle("ncclCommSplit", result); status.failed())
    return status;
  comm = splitInto;
  if (!splitInto)
    return failure("ncclCommSplit", nccl::success);
  if (api.ncclCommGetAsyncError(comm, &result) != nccl::success)
    return failure("ncclCommSplit", result);
  return settle("ncclCommSplit", result);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static nccl::DataType dataTypeOf(fsdprtDtype dtype) {
  switch (dtype) {
  case FSDPRT_F16:
    return nccl::float16;
  case FSDPRT_BF16:
    return nccl::bfloat16;
  case FSDPRT_F32:
    return nccl::float32;
  case FSDPRT_F64:
    return nccl::float64;
  case FSDPRT_BYTES:
    break;
  }
  return nccl::uint8;
}

/// avg is NCCL's own: a multiplication by 1/size in the wire type before the
/// sum, as the rules have it. In a group of one nothing is multiplied.
Status NcclGroup::findOp(const Collective &call, int64_t members,
                         nccl::RedOp &op) {
  if (call.reduction != FSDPRT_PREMUL) {
    op = call.reduction == FSDPRT_AVG && members > 1 ? nccl::avg : nccl::sum;
    return {};
  }
  auto [known, isNew] = ops.try_emplace({call.dtype, call.multiplier}, 0);
  if (isNew) {
    // The multiplier as a value of the wire type, from memory of the host.
    alignas(8) char scalar[8];
    store(call.dtype, call.multiplier, scalar);
    if (Status status =
            settle("ncclRedOpCreatePreMulSum",
                   api.ncclRedOpCreatePreMulSum(
                       &known->second, scalar, dataTypeOf(call.dtype),
                       nccl::scalarHostImmediate, comm));
        status.failed()) {
      ops.erase(known);
      return status;
    }
  }
  op = known->second;
  return {};
}

Status NcclGroup::prepare(const Call &call, int64_t members) {
  nccl::RedOp op = nccl::sum;
  return call->kind == CollectiveKind::AllGather
             ? Status()
             : findOp(*call.collective, members, op);
}

Status NcclGroup::start(const Call &call, int64_t members, const void *send,
                        void *receive, cuda::Stream stream, bool isGrouped) {
  if (Status status = check(); status.failed())
    return status;
  const nccl::DataType dtype = dataTypeOf(call->dtype);
  const size_t count = call->count;
  nccl::RedOp op = nccl::sum;
  if (call->kind != CollectiveKind::AllGather)
    if (Status status = findOp(*call.collective, members, op); status.failed())
      return status;
  const char *function = nullptr;
  nccl::Result result = nccl::success;
  switch (call->kind) {
  case CollectiveKind::AllGather:
    function = "ncclAllGather";
    result = api.ncclAllGather(send, receive, count, dtype, comm, stream);
    break;
  case CollectiveKind::ReduceScatter:
    function = "ncclReduceScatter";
    result =
        api.ncclReduceScatter(send, receive, count, dtype, op, comm, stream);
    break;
  case CollectiveKind::AllReduce:
    function = "ncclAllReduce";
    result = api.ncclAllReduce(send, receive, count, dtype, op, comm, stream);
    break;
  }
  // Inside of a group nothing happens before its end.
  if (isGrouped && result == nccl::inProgress)
    return {};
  return settle(function, result);
}

Status NcclGroup::settleGroup(const char *function, nccl::Result result) {
  return settle(function, result);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool NcclGroup::registerBlock(void *data, int64_t bytes) {
  auto [block, isNew] = blocks.try_emplace(data, nullptr);
  if (!isNew)
    return true;
  if (!settle("ncclCommRegister",
              api.ncclCommRegister(comm, data, bytes, &block->second))
           .failed())
    return true;
  blocks.erase(block);
  return false;
}

void NcclGroup::forgetBlock(void *data) {
  auto block = blocks.find(data);
  if (block == blocks.end())
    return;
  // With a communicator that was aborted all of its registrations are gone.
  if (nccl::Comm of = comm)
    (void)settle("ncclCommDeregister",
                 api.ncclCommDeregister(of, block->second));
  blocks.erase(block);
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

Status NcclGroup::asyncStatus() {
  nccl::Comm of = comm;
  nccl::Result result = nccl::success;
  nccl::Result asked =
      of ? api.ncclCommGetAsyncError(of, &result) : nccl::Result(nccl::success);
  if (asked != nccl::success)
    return failure("ncclCommGetAsyncError", asked);
  if (result == nccl::success || result == nccl::inProgress)
    return {};
  return failure("NCCL", result);
}

void NcclGroup::close() {
  if (!comm)
    return;
  while (!blocks.empty())
    forgetBlock(blocks.begin()->first);
  for (auto &[key, op] : ops)
    api.ncclRedOpDestroy(op, comm);
  ops.clear();
  // Destroying one that does not come to its end would wait for ever.
  if (settle("ncclCommFinalize", api.ncclCommFinalize(comm)).failed())
    return abort();
  if (nccl::Comm over = comm.exchange(nullptr))
    api.ncclCommDestroy(over);
  splitInto = nullptr;
}

void NcclGroup::abort() {
  nccl::Comm over = comm.exchange(nullptr);
  // A split that nobody waited for may be there nevertheless.
  if (nccl::Comm late = std::exchange(splitInto, nullptr); !over)
    over = late;
  if (over)
    api.ncclCommAbort(over);
}
