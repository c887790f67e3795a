//===- CommMpi.cpp - ranks that are processes under MPI -------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI moves bytes; the sums are ours, in the order that was asked for, so that
// the bits are those of CommLocal. (The order of MPI's own reductions depends
// on the algorithm that it picks, and Open MPI 4 has no 16-bit floats.)
//
// A collective has three steps:
//
//   1. agree    each member sends its call to the first one, which compares
//               them and sends a go. This is where ranks wait for each other.
//   2. move     each member sends every other one the row that it needs.
//   3. reduce   where asked for: a member has all rows of its slice, and adds.
//
// An all_reduce is a reduce_scatter of slices followed by a gather of them.
// Rows move in parts, which bounds the memory for the rows of others.
//
// Whoever waits polls, for two reasons: a deadline, and word from a rank that
// has failed, which Watch's thread receives.
//
//===----------------------------------------------------------------------===//

#include "Comm/CommMpi.h"

#include "Support/DynamicLibrary.h"
#include "World/RankDiscovery.h"
#include "World/Watch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <unistd.h>

using namespace fsdprt;

namespace {

enum Tag { TagCall = 1, TagGo, TagData };

/// A call as it travels. Of a long name the head is enough, and a hash.
struct WireCall {
  int64_t number, count;
  double multiplier;
  int32_t kind, dtype, reduction, accumulate;
  uint64_t nameHash;
  int32_t axes[16]; ///< -1 after the last one
  char name[168];
};

WireCall encode(const Call &call) {
  WireCall wire = {};
  wire.number = call.number;
  wire.count = call->count;
  wire.multiplier = call->multiplier;
  wire.kind = static_cast<int32_t>(call->kind);
  wire.dtype = call->dtype;
  wire.reduction = call->reduction;
  wire.accumulate = call->accumulate;
  wire.nameHash = 14695981039346656037u;
  for (unsigned char c : call->bucket)
    wire.nameHash = (wire.nameHash ^ c) * 1099511628211u;
  std::fill(std::begin(wire.axes), std::end(wire.axes), -1);
  std::copy(call->axes.begin(), call->axes.end(), wire.axes);
  std::copy_n(call->bucket.data(),
              std::min(call->bucket.size(), sizeof(wire.name) - 1), wire.name);
  return wire;
}

/// Names that differ beyond their heads are told apart by their hashes.
Call decode(const WireCall &wire, uint64_t firstHash) {
  auto record = std::make_shared<Collective>();
  Collective &call = *record;
  call.kind = static_cast<CollectiveKind>(wire.kind);
  call.bucket = wire.name;
  if (call.bucket.size() == sizeof(wire.name) - 1)
    call.bucket += wire.nameHash == firstHash
                       ? "..."
                       : "... (hash " + std::to_string(wire.nameHash) + ")";
  call.axes.assign(wire.axes,
                   std::find(std::begin(wire.axes), std::end(wire.axes), -1));
  call.dtype = static_cast<fsdprtDtype>(wire.dtype);
  call.count = wire.count;
  call.reduction = static_cast<fsdprtReduction>(wire.reduction);
  call.multiplier = wire.multiplier;
  call.accumulate = wire.accumulate != 0;
  return {wire.number, std::move(record)};
}

class MpiChannel final : public Channel {
public:
  explicit MpiChannel(std::shared_ptr<Mpi> mpi) : mpi(std::move(mpi)) {}

  int64_t rank() const override { return mpi->rank; }
  int64_t ranks() const override { return mpi->ranks; }
  Status send(int64_t to, const std::string &message) override {
    std::string why = mpi->sendMessage(to, message);
    if (why.empty())
      return {};
    return {FSDPRT_ABORTED,
            "no message to rank " + std::to_string(to) + ": " + why};
  }
  bool receive(int64_t &from, std::string &message) override {
    return mpi->receiveMessage(from, message);
  }
  void close() override { mpi->flushMessages(); }

private:
  const std::shared_ptr<Mpi> mpi;
};

class CommMpi final : public Communicator {
public:
  CommMpi(const Grid &grid, std::shared_ptr<Mpi> mpi, double timeoutSeconds,
          SumOrder order)
      : grid(grid), order(order), mpi(std::move(mpi)),
        theWatch(createMpiChannel(this->mpi), timeoutSeconds) {}
  ~CommMpi() override { theWatch.close(); }

  Status start(const std::string &planHash) override;
  Status collective(const Call &call, const void *send, void *receive) override;
  void enterRun() override { theWatch.setState(Activity::Outside); }
  void leaveRun() override { theWatch.setState(Activity::Left); }
  Status worldStatus() override { return theWatch.status(); }
  void abort(const Status &status) override { theWatch.abort(status); }
  Watch *watch() override { return &theWatch; }

private:
  struct Group {
    std::vector<int64_t> members;
    int64_t index; ///< of this rank
  };

  Status wait(Mpi::Batch &batch, const Group &group);
  Status agreeOn(const Call &call, const Group &group);
  Status gather(const Group &group, const void *send, int64_t rowBytes,
                char *receive);
  Status reduce(const Call &call, const Group &group,
                const std::vector<OrderedPart> &parts, const char *send,
                int64_t pitch, const std::vector<int64_t> &counts,
                char *result);
  Status run(const Call &call, const Group &group, const void *send,
             void *receive);

  const Grid grid;
  const SumOrder order;
  const std::shared_ptr<Mpi> mpi;
  std::vector<char> rows; ///< of other members, kept from call to call
  Watch theWatch;
};

/// Waits for the transfers of `batch`, which make progress meanwhile.
Status CommMpi::wait(Mpi::Batch &batch, const Group &group) {
  using Clock = std::chrono::steady_clock;
  // One after another they would run out of patience, so that the first one
  // reports for all.
  const double patience = theWatch.timeout() + 0.1 * group.index;
  const Clock::time_point begin = Clock::now();
  for (int64_t polls = 1; !batch.done(); ++polls) {
    if (polls % 64 != 0)
      continue;
    if (theWatch.failed()) {
      batch.cancel();
      return theWatch.status();
    }
    // Where there are more ranks than processors, the others need this one.
    sched_yield();
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    if (theWatch.timeout() > 0 && seconds > patience) {
      batch.cancel();
      theWatch.abort(theWatch.timeoutStatus("of a collective"));
      return theWatch.status();
    }
    if (seconds > 0.01)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (batch.error().empty())
    return {};
  theWatch.abort({FSDPRT_ABORTED, "rank " + std::to_string(mpi->rank) +
                                      ": MPI says: " + batch.error()});
  return theWatch.status();
}

Status CommMpi::agreeOn(const Call &call, const Group &group) {
  std::unique_ptr<Mpi::Batch> batch = mpi->batch();
  const std::vector<int64_t> &members = group.members;
  WireCall mine = encode(call);
  char go = 0;
  if (group.index != 0) {
    batch->send(members[0], TagCall, &mine, sizeof(mine));
    batch->receive(members[0], TagGo, &go, 1);
    return wait(*batch, group);
  }
  std::vector<WireCall> wires(members.size(), mine);
  for (size_t i = 1; i < members.size(); ++i)
    batch->receive(members[i], TagCall, &wires[i], sizeof(WireCall));
  if (Status status = wait(*batch, group); status.failed())
    return status;
  std::vector<Call> calls;
  for (const WireCall &wire : wires)
    calls.push_back(decode(wire, mine.nameHash));
  if (Status status = compareCalls(members, calls); status.failed()) {
    theWatch.abort(status);
    return theWatch.status();
  }
  for (size_t i = 1; i < members.size(); ++i)
    batch->send(members[i], TagGo, &go, 1);
  return wait(*batch, group);
}

/// Row i of `receive` becomes member i's `send`.
Status CommMpi::gather(const Group &group, const void *send, int64_t rowBytes,
                       char *receive) {
  const int64_t members = group.members.size();
  std::unique_ptr<Mpi::Batch> batch = mpi->batch();
  // Everybody starts with its neighbour, so that no member is the target of all
  // at once.
  for (int64_t step = 1; step < members; ++step) {
    int64_t from = (group.index + step) % members;
    batch->receive(group.members[from], TagData, receive + from * rowBytes,
                   rowBytes);
  }
  for (int64_t step = 1; step < members; ++step) {
    int64_t to = (group.index + members - step) % members;
    batch->send(group.members[to], TagData, send, rowBytes);
  }
  if (char *own = receive + group.index * rowBytes; own != send)
    std::memcpy(own, send, rowBytes);
  return wait(*batch, group);
}

/// `send` has a slice for each member i, `counts[i]` elements from byte
/// `i * pitch`; `result` becomes the reduction of this member's slice, part by
/// part. `result` may be this member's slice of `send`.
Status CommMpi::reduce(const Call &call, const Group &group,
                       const std::vector<OrderedPart> &parts, const char *send,
                       int64_t pitch, const std::vector<int64_t> &counts,
                       char *result) {
  const int64_t members = group.members.size();
  const int64_t element = sizeOf(call->dtype);
  const int64_t part = std::max<int64_t>(
      (int64_t(64) << 20) / (members * element), 4096 / element);
  const int64_t mine = counts[group.index];
  rows.resize(members * std::min(part, mine) * element);
  const int64_t longest = *std::max_element(counts.begin(), counts.end());
  for (int64_t begin = 0; begin < longest; begin += part) {
    auto sizeFor = [&](int64_t member) {
      return std::clamp<int64_t>(counts[member] - begin, 0, part);
    };
    const int64_t size = sizeFor(group.index);
    std::unique_ptr<Mpi::Batch> batch = mpi->batch();
    std::vector<const void *> sources(members);
    for (int64_t step = 1; step < members; ++step) {
      int64_t from = (group.index + step) % members;
      char *row = rows.data() + from * size * element;
      sources[from] = row;
      batch->receive(group.members[from], TagData, row, size * element);
    }
    for (int64_t step = 1; step < members; ++step) {
      int64_t to = (group.index + members - step) % members;
      batch->send(group.members[to], TagData,
                  send + to * pitch + begin * element, sizeFor(to) * element);
    }
    sources[group.index] = send + group.index * pitch + begin * element;
    if (Status status = wait(*batch, group); status.failed())
      return status;
    for (const OrderedPart &piece : parts) {
      const int64_t from = std::max(piece.begin, begin);
      const int64_t to = std::min(piece.end, begin + size);
      if (from >= to)
        continue;
      std::vector<const void *> terms;
      for (int64_t member : piece.members)
        terms.push_back(static_cast<const char *>(sources[member]) +
                        (from - begin) * element);
      reduceRows(reductionOf(*call.collective, members), terms.data(), members,
                 to - from, result + from * element);
    }
  }
  return {};
}

Status CommMpi::run(const Call &call, const Group &group, const void *send,
                    void *receive) {
  const int64_t members = group.members.size();
  const int64_t element = sizeOf(call->dtype);
  const int64_t rowBytes = call->count * element;
  const char *from = static_cast<const char *>(send);
  char *to = static_cast<char *>(receive);
  switch (call->kind) {
  case CollectiveKind::AllGather:
    return gather(group, send, rowBytes, to);
  case CollectiveKind::ReduceScatter:
    return reduce(
        call, group, partsOfRow(order, *call.collective, group.index, members),
        from, rowBytes, std::vector<int64_t>(members, call->count), to);
  case CollectiveKind::AllReduce:
    break;
  }
  const int64_t slice = (call->count + members - 1) / members;
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < members; ++i)
    counts.push_back(std::clamp<int64_t>(call->count - i * slice, 0, slice));
  auto at = [&](int64_t i) {
    return to + std::min(i * slice, call->count) * element;
  };
  if (Status status = reduce(call, group, inRankOrder(slice, members), from,
                             slice * element, counts, at(group.index));
      status.failed())
    return status;
  std::unique_ptr<Mpi::Batch> batch = mpi->batch();
  for (int64_t step = 1; step < members; ++step) {
    int64_t other = (group.index + step) % members;
    batch->receive(group.members[other], TagData, at(other),
                   counts[other] * element);
  }
  for (int64_t step = 1; step < members; ++step)
    batch->send(group.members[(group.index + members - step) % members],
                TagData, at(group.index), counts[group.index] * element);
  return wait(*batch, group);
}

/// Processes have options of their own, and another order of a sum would be
/// another result that nobody notices.
Status CommMpi::start(const std::string &planHash) {
  if (Status status = theWatch.start(planHash); status.failed())
    return status;
  std::vector<std::string> orders;
  if (Status status =
          theWatch.exchange("the comparison of sum orders",
                            order == SumOrder::Ring ? "ring" : "rank", orders,
                            theWatch.timeout());
      status.failed())
    return status;
  for (size_t rank = 1; rank < orders.size(); ++rank)
    if (orders[rank] != orders[0])
      return theWatch.learn({FSDPRT_RANKS_DISAGREE,
                             "ranks disagree on the sum order: rank 0 has "
                             "'" +
                                 orders[0] + "', rank " + std::to_string(rank) +
                                 " has '" + orders[rank] + "'"});
  return {};
}

Status CommMpi::collective(const Call &call, const void *send, void *receive) {
  theWatch.setActivity({Activity::InCollective, call});
  if (Status status = theWatch.status(); status.failed())
    return status;
  // As in CommLocal: nothing to move, nobody has to wait.
  if (call->count != 0) {
    Group group = {grid.group(call->axes, mpi->rank), 0};
    group.index =
        std::find(group.members.begin(), group.members.end(), mpi->rank) -
        group.members.begin();
    Status status = group.members.size() > 1 ? agreeOn(call, group) : Status();
    if (!status.failed())
      status = run(call, group, send, receive);
    if (status.failed())
      return status;
  }
  theWatch.setState(Activity::Outside);
  return {};
}

/// Ends the process unless it is destroyed in time.
class StartLimit {
public:
  explicit StartLimit(double timeoutSeconds) {
    if (timeoutSeconds <= 0)
      return;
    RankInfo info;
    (void)discoverRank({}, processEnvironment, info);
    std::string who =
        info.rank < 0 ? "" : " on rank " + std::to_string(info.rank);
    // One speaks for all, if the others hear of its end in time.
    const double grace = std::clamp<double>(info.rank, 0, 20) / 2;
    std::string sentence =
        std::string(program_invocation_short_name) +
        ": error: cannot create the ranks: " +
        describeTimeout("of MPI's start", timeoutSeconds,
                        "waiting" + who +
                            " for a rank that has not come, or has stopped") +
        "\n";
    thread = std::thread(
        [this, sentence, end = deadlineAfter(timeoutSeconds + grace)] {
          std::unique_lock<std::mutex> lock(mutex);
          if (changed.wait_until(lock, end, [&] { return over; }))
            return;
          (void)!::write(STDERR_FILENO, sentence.data(), sentence.size());
          _exit(1);
        });
  }

  ~StartLimit() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      over = true;
      changed.notify_all();
    }
    if (thread.joinable())
      thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::thread thread;
};

} // namespace

std::string fsdprt::openMpi(std::shared_ptr<Mpi> &mpi, double timeoutSeconds) {
  static DynamicLibrary library; // with MPI, once and for the whole process
  std::string name = "libfsdprt_mpi.so." + std::to_string(FSDPRT_ABI_VERSION);
  std::string why = library.open({besideRuntime(name), name});
  CreateMpi create =
      reinterpret_cast<CreateMpi>(library.find("fsdprtCreateMpi"));
  if (why.empty() && !create)
    why = "it has no function fsdprtCreateMpi";
  if (why.empty()) {
    StartLimit limit(startSeconds(timeoutSeconds));
    mpi.reset(create(mpiInterfaceVersion, &why));
  }
  return why;
}

std::unique_ptr<Channel> fsdprt::createMpiChannel(std::shared_ptr<Mpi> mpi) {
  return std::make_unique<MpiChannel>(std::move(mpi));
}

std::unique_ptr<Communicator>
fsdprt::createMpiCommunicator(const Grid &grid, std::shared_ptr<Mpi> mpi,
                              double timeoutSeconds, SumOrder order) {
  return std::make_unique<CommMpi>(grid, std::move(mpi), timeoutSeconds, order);
}
