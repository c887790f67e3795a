//===- CommLocal.cpp - ranks that are threads of one process --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective is a meeting of the threads of one group. It has phases:
//
//   1. arrive   each member leaves its call and its buffers. The last one to
//               arrive compares the calls. Only here may a member wait too
//               long, find the world aborted, or learn that the ranks disagree.
//   2. work     each member reads the buffers of all and writes its own result,
//               so that the reduction is as parallel as the group.
//   3. leave    nobody leaves before all have finished, because whoever leaves
//               may free the buffer that another one still reads.
//
// Phases 2 and 3 wait for nothing but arithmetic on memory, always end, and
// therefore know no timeout; an abort that comes in between takes effect in the
// next call. An all_reduce has one barrier more, between its two halves: reduce
// one's own slice, then collect the slices of the others.
//
// One mutex guards the whole world: a meeting costs microseconds and moves
// megabytes, and a report of what every rank is doing needs them all at once.
//
//===----------------------------------------------------------------------===//

#include "Comm/CommLocal.h"

#include "Comm/Reduction.h"
#include "Support/Deadline.h"
#include "Support/Guard.h"
#include "World/Activity.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <unordered_map>

using namespace fsdprt;

namespace {

/// One member's part in a meeting.
struct Arrival {
  Call call;
  std::string planHash; ///< of the meeting in `start`
  const void *send = nullptr;
  void *receive = nullptr;
};

/// Ranks that meet, time and again.
struct Group {
  std::vector<int64_t> members;
  std::vector<Arrival> arrivals; ///< one per member
  size_t arrived = 0;
  uint64_t barriers = 0; ///< barriers passed so far
  bool broken = false;   ///< a member could not do its work
  std::condition_variable changed;

  explicit Group(std::vector<int64_t> ranks)
      : members(std::move(ranks)), arrivals(members.size()) {}
};

/// What all ranks share.
class World {
public:
  World(const Grid &grid, double timeoutSeconds, SumOrder order)
      : order(order), grid(grid), timeoutSeconds(timeoutSeconds),
        activities(grid.ranks()) {}

  const SumOrder order;

  /// Phase 1. `check` compares the arrivals of the group, on the last thread to
  /// arrive. A failure is the failure of the world.
  template <typename Check>
  Status arrive(Group &group, int64_t rank, Arrival arrival, Check check);

  /// Waits until all members of a group that has met are here, also one whose
  /// work has failed with `mine`. Returns the failure of the world if it was
  /// that of a member.
  Status barrier(Group &group, Status mine);

  Group &groupOf(const std::vector<int64_t> &axes, int64_t rank);
  Group &everyone();
  void setActivity(int64_t rank, Activity activity);
  void setState(int64_t rank, Activity::State state);
  Status status();
  void abort(const Status &status);

private:
  void abortLocked(Status status);
  std::string report() const;

  const Grid grid;
  const double timeoutSeconds;
  std::mutex mutex;
  Status failure;
  std::vector<Activity> activities;
  std::map<std::vector<int64_t>, std::unique_ptr<Group>> groups;
};

Group &World::groupOf(const std::vector<int64_t> &axes, int64_t rank) {
  std::vector<int64_t> members = grid.group(axes, rank);
  std::lock_guard<std::mutex> lock(mutex);
  auto known = groups.find(members);
  if (known == groups.end())
    known = groups.emplace(members, std::make_unique<Group>(members)).first;
  return *known->second;
}

Group &World::everyone() {
  std::vector<int64_t> axes(grid.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return groupOf(axes, 0);
}

void World::setActivity(int64_t rank, Activity activity) {
  std::lock_guard<std::mutex> lock(mutex);
  activities[rank] = std::move(activity);
}

void World::setState(int64_t rank, Activity::State state) {
  std::lock_guard<std::mutex> lock(mutex);
  activities[rank].state = state;
}

Status World::status() {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

void World::abort(const Status &status) {
  std::lock_guard<std::mutex> lock(mutex);
  abortLocked(status);
}

void World::abortLocked(Status status) {
  if (failure.failed())
    return;
  failure = std::move(status);
  for (auto &[members, group] : groups)
    group->changed.notify_all();
}

std::string World::report() const {
  std::vector<std::string> clauses;
  for (const Activity &activity : activities)
    clauses.push_back(describe(activity));
  return describeRanks(clauses);
}

template <typename Check>
Status World::arrive(Group &group, int64_t rank, Arrival arrival, Check check) {
  std::unique_lock<std::mutex> lock(mutex);
  if (failure.failed())
    return failure;
  size_t index = std::find(group.members.begin(), group.members.end(), rank) -
                 group.members.begin();
  group.arrivals[index] = std::move(arrival);
  if (++group.arrived == group.members.size()) {
    if (Status status = check(group); status.failed()) {
      abortLocked(status);
      return failure;
    }
    group.arrived = 0;
    ++group.barriers;
    group.changed.notify_all();
    return {};
  }
  const uint64_t barrier = group.barriers;
  auto met = [&] { return group.barriers != barrier; };
  auto over = [&] { return met() || failure.failed(); };
  if (!group.changed.wait_until(lock, deadlineAfter(timeoutSeconds), over))
    abortLocked({FSDPRT_TIMEOUT,
                 describeTimeout("of a collective", timeoutSeconds, report())});
  // A group that has met goes on, whatever happened since: its other members
  // are at work on this one's buffers.
  return met() ? Status() : failure;
}

Status World::barrier(Group &group, Status mine) {
  std::unique_lock<std::mutex> lock(mutex);
  if (mine.failed()) {
    group.broken = true;
    abortLocked(std::move(mine));
  }
  if (++group.arrived == group.members.size()) {
    group.arrived = 0;
    ++group.barriers;
    group.changed.notify_all();
  } else {
    const uint64_t barrier = group.barriers;
    group.changed.wait(lock, [&] { return group.barriers != barrier; });
  }
  return group.broken ? failure : Status();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

char *row(void *data, int64_t index, int64_t bytes) {
  return static_cast<char *>(data) + index * bytes;
}

const char *row(const void *data, int64_t index, int64_t bytes) {
  return static_cast<const char *>(data) + index * bytes;
}

void copy(void *to, const void *from, int64_t bytes) {
  if (to != from)
    std::memcpy(to, from, bytes);
}

/// Reduces a part of row `index` of every member's send buffer to `result`.
void reducePart(const Group &group, const Call &call, int64_t index,
                const OrderedPart &part, void *result) {
  const int64_t element = sizeOf(call->dtype);
  std::vector<const void *> rows;
  for (int64_t member : part.members)
    rows.push_back(row(group.arrivals[member].send,
                       index * call->count + part.begin, element));
  const int64_t members = rows.size();
  reduceRows(reductionOf(*call.collective, members), rows.data(), members,
             part.end - part.begin, result);
}

/// The slice of an all_reduce that member `i` reduces. It alone reads slice i
/// before the barrier, so that it may be overwritten in place; after it member
/// i alone writes its own buffer.
struct Slices {
  Slices(const Group &group, const Call &call)
      : count(call->count),
        each((count + group.members.size() - 1) / group.members.size()) {}
  int64_t begin(int64_t i) const { return std::min(i * each, count); }

  const int64_t count, each;
};

/// Phase 2; of an all_reduce the first half.
Status work(SumOrder order, const Group &group, int64_t index, const Call &call,
            void *receive) {
  const int64_t members = group.members.size();
  const int64_t rowBytes = call->count * sizeOf(call->dtype);
  if (members == 1 && call->kind != CollectiveKind::AllGather) {
    const void *rows[] = {group.arrivals[0].send};
    reduceRows(reductionOf(*call.collective, 1), rows, 1, call->count, receive);
    return {};
  }
  switch (call->kind) {
  case CollectiveKind::AllGather:
    // Start with one's own row, so that the members do not all read the same
    // one at the same time.
    for (int64_t i = 0; i < members; ++i) {
      int64_t from = (index + i) % members;
      copy(row(receive, from, rowBytes), group.arrivals[from].send, rowBytes);
    }
    break;
  case CollectiveKind::ReduceScatter:
    for (const OrderedPart &part :
         partsOfRow(order, *call.collective, index, members))
      reducePart(group, call, index, part,
                 row(receive, part.begin, sizeOf(call->dtype)));
    break;
  case CollectiveKind::AllReduce: {
    const Slices slices(group, call);
    OrderedPart own = inRankOrder(call->count, members).front();
    own.begin = slices.begin(index);
    own.end = slices.begin(index + 1);
    reducePart(group, call, 0, own,
               row(receive, own.begin, sizeOf(call->dtype)));
    break;
  }
  }
  return {};
}

/// The second half of an all_reduce.
void collectSlices(const Group &group, int64_t index, const Call &call,
                   void *receive) {
  const Slices slices(group, call);
  const int64_t members = group.members.size();
  const int64_t element = sizeOf(call->dtype);
  for (int64_t i = 1; i < members; ++i) {
    int64_t from = (index + i) % members;
    copy(row(receive, slices.begin(from), element),
         row(group.arrivals[from].receive, slices.begin(from), element),
         (slices.begin(from + 1) - slices.begin(from)) * element);
  }
}

class CommLocal final : public Communicator {
public:
  CommLocal(std::shared_ptr<World> world, int64_t rank)
      : world(std::move(world)), rank(rank) {}

  Status start(const std::string &planHash) override;
  Status collective(const Call &call, const void *send, void *receive) override;
  void enterRun() override { world->setState(rank, Activity::Outside); }
  void leaveRun() override { world->setState(rank, Activity::Left); }
  Status worldStatus() override { return world->status(); }
  void abort(const Status &status) override { world->abort(status); }

private:
  struct Meeting {
    Group *group;
    int64_t index; ///< of this rank in it
  };
  const Meeting &meetingOf(const Call &call);

  const std::shared_ptr<World> world;
  const int64_t rank;
  /// Where this rank meets for a record, so that one that comes again is found
  /// without a list of members.
  std::unordered_map<std::shared_ptr<const Collective>, Meeting> meetings;
};

const CommLocal::Meeting &CommLocal::meetingOf(const Call &call) {
  auto known = meetings.find(call.collective);
  if (known != meetings.end())
    return known->second;
  Group &group = world->groupOf(call->axes, rank);
  const int64_t index =
      std::find(group.members.begin(), group.members.end(), rank) -
      group.members.begin();
  return meetings.insert({call.collective, {&group, index}}).first->second;
}

Status compareArrivedHashes(const Group &group) {
  std::vector<std::string> hashes;
  for (const Arrival &arrival : group.arrivals)
    hashes.push_back(arrival.planHash);
  return comparePlanHashes(hashes);
}

Status compareArrivedCalls(const Group &group) {
  if (group.members.size() == 1)
    return {};
  std::vector<Call> calls;
  for (const Arrival &arrival : group.arrivals)
    calls.push_back(arrival.call);
  return compareCalls(group.members, calls);
}

Status CommLocal::start(const std::string &planHash) {
  world->setState(rank, Activity::Starting);
  Arrival arrival;
  arrival.planHash = planHash;
  Status status = world->arrive(world->everyone(), rank, std::move(arrival),
                                compareArrivedHashes);
  if (!status.failed())
    world->setState(rank, Activity::Outside);
  return status;
}

Status CommLocal::collective(const Call &call, const void *send,
                             void *receive) {
  world->setActivity(rank, {Activity::InCollective, call});
  // Nothing to move: nobody has to wait, and all ranks have the same layout.
  if (call->count == 0) {
    world->setState(rank, Activity::Outside);
    return {};
  }

  const auto [meeting, index] = meetingOf(call);
  Group &group = *meeting;
  if (Status status = world->arrive(group, rank, {call, {}, send, receive},
                                    compareArrivedCalls);
      status.failed())
    return status;

  // Whoever cannot do its work is still waited for by the others.
  Status status = guarded([&, index = index] {
    return work(world->order, group, index, call, receive);
  });
  status = world->barrier(group, std::move(status));
  if (!status.failed() && call->kind == CollectiveKind::AllReduce) {
    collectSlices(group, index, call, receive);
    status = world->barrier(group, {});
  }
  world->setState(rank, Activity::Outside);
  return status;
}

} // namespace

std::vector<std::unique_ptr<Communicator>>
fsdprt::createLocalCommunicators(const Grid &grid, double timeoutSeconds,
                                 SumOrder order) {
  auto world = std::make_shared<World>(grid, timeoutSeconds, order);
  std::vector<std::unique_ptr<Communicator>> result;
  for (int64_t rank = 0; rank < grid.ranks(); ++rank)
    result.push_back(std::make_unique<CommLocal>(world, rank));
  return result;
}
