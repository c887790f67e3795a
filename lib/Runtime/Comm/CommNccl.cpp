//===- CommNccl.cpp - ranks that are processes with a GPU each ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective is given to the stream and the rank goes on. So the rank itself
// never notices that one does not end; a second thread, the watchdog, does. It
// knows the collectives that are under way by the events behind them, and
//
//   - sets what this rank is doing, for reports: the first that has not ended;
//   - fails the world when that one makes no end in time, when NCCL has found
//     an error, or when the device has;
//   - aborts NCCL's communicators once the world has failed, which ends the
//     kernels of NCCL that wait on the device, and with them the rank's wait;
//     the same for a call of NCCL in which the rank itself waits.
//
// It asks for events 50 times a second. If some other thread of the process is
// recording a graph meanwhile, that must not end the recording: see
// DeviceCuda::RelaxedCapture.
//
// Ranks do not compare their calls one by one, as on other communicators: that
// would cost a round of messages each. They have compared their programs, and
// every program calls the same collectives on all ranks.
//
//===----------------------------------------------------------------------===//

#include "Comm/CommNccl.h"

#include "Comm/NcclGroup.h"
#include "Device/Nvtx.h"
#include "World/Watch.h"

#include <algorithm>
#include <set>

using namespace fsdprt;
using Clock = std::chrono::steady_clock;

namespace {

class CommNccl final : public Communicator {
public:
  CommNccl(const Grid &grid, const nccl::Api &api, DeviceCuda &device,
           std::unique_ptr<Channel> channel, double timeoutSeconds, Log log);
  ~CommNccl() override;

  Status start(const std::string &planHash) override;
  Status collective(const Call &call, const void *send, void *receive) override;
  Status collectives(const Call *calls, int32_t count, const void *const *send,
                     void *const *receive) override;
  void enterRun() override { setHostState(Activity::Outside); }
  void leaveRun() override { setHostState(Activity::Left); }
  Status worldStatus() override { return theWatch.status(); }
  void abort(const Status &status) override { theWatch.abort(status); }
  Watch *watch() override { return &theWatch; }

private:
  struct Group {
    std::vector<int64_t> members;
    std::unique_ptr<NcclGroup> nccl;
  };
  /// While it lives the rank waits for NCCL, and no longer than it may.
  class Waiting {
  public:
    Waiting(CommNccl &comm, std::string what) : comm(comm) {
      comm.setPatience(std::move(what));
    }
    ~Waiting() { comm.setPatience(""); }

  private:
    CommNccl &comm;
  };
  /// A collective that is about to start.
  struct Start {
    const Call &call;
    Group *group;
    const void *send;
    void *receive;
  };
  struct UnderWay {
    Call call;
    cuda::Event event;
    Clock::time_point since; ///< when it was first in the queue
  };

  // On the rank's thread.
  Status open();
  Status findGroup(const std::vector<int64_t> &axes, Group *&group);
  std::unique_ptr<NcclGroup> makeNcclGroup();
  Status checkWait();
  void setPatience(std::string what);
  Status waitStatus();
  void adviseOn(const Call &call, const Group &group, const void *send,
                const void *receive);
  void registerBuffers(const Call &call, Group &group, const void *send,
                       void *receive);
  Status launch(const std::vector<Start> &starts);
  Status follow(const Call &call);
  void adviseOnce(const std::string &what, const std::string &bucket,
                  const std::string &why);

  // On the watchdog's.
  void body();
  Status look();
  void abortGroups();

  void setHostState(Activity::State state);
  std::string me() const { return "rank " + std::to_string(theWatch.rank()); }

  const Grid grid;
  const nccl::Api &api;
  DeviceCuda &device;
  const Log log;
  Watch theWatch;

  /// Guards the groups. Whoever aborts does not wait for it without end.
  std::mutex ncclMutex;
  std::unique_ptr<NcclGroup> root;
  std::map<std::vector<int64_t>, Group> groups;       ///< by axes
  std::vector<std::unique_ptr<NcclGroup>> unfinished; ///< were not made
  bool registers = false;
  std::set<std::pair<std::string, std::string>> advised;

  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::string waitsFor; ///< of NCCL; "" when the rank waits for nothing
  Clock::time_point deadline;
  std::deque<UnderWay> underWay;
  std::vector<cuda::Event> freeEvents;
  Activity hostActivity; ///< of the rank when no collective is under way
  bool stop = false;
  std::thread watchdog;
};

CommNccl::CommNccl(const Grid &grid, const nccl::Api &api, DeviceCuda &device,
                   std::unique_ptr<Channel> channel, double timeoutSeconds,
                   Log log)
    : grid(grid), api(api), device(device), log(std::move(log)),
      theWatch(std::move(channel), timeoutSeconds) {
  if (!api.ncclMemAlloc || !api.ncclMemFree || !api.ncclCommRegister ||
      !api.ncclCommDeregister) {
    this->log(me() + ": this NCCL registers no buffers, they will be copied");
  } else {
    registers = true;
    device.setSource({[&api](int64_t bytes) {
                        void *data = nullptr;
                        return api.ncclMemAlloc(&data, bytes) == nccl::success
                                   ? data
                                   : nullptr;
                      },
                      [this](void *data) {
                        for (auto &[axes, group] : groups)
                          group.nccl->forgetBlock(data);
                        this->api.ncclMemFree(data);
                      }});
  }
  watchdog = std::thread([this] { body(); });
}

CommNccl::~CommNccl() {
  DeviceCuda::Scope scope(device);
  if (!theWatch.failed()) {
    // Orderly ends are meetings, at which somebody may be missing.
    std::lock_guard<std::mutex> lock(ncclMutex);
    Waiting waiting(*this, "of the communicators' end");
    device.dropSource();
    for (auto &[axes, group] : groups)
      if (!theWatch.failed())
        group.nccl->close();
    if (root && !theWatch.failed())
      root->close();
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
    changed.notify_all();
  }
  watchdog.join();
  if (theWatch.failed())
    abortGroups();
  device.dropSource();
  device.setSource({});
  unfinished.clear();
  for (const UnderWay &collective : underWay)
    freeEvents.push_back(collective.event);
  for (cuda::Event event : freeEvents)
    device.driver().cuEventDestroy(event);
  theWatch.close();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// What the rank waits for from now on, and until when. One rank after another
/// runs out of patience, so that the first one reports for all.
void CommNccl::setPatience(std::string what) {
  double seconds =
      theWatch.timeout() > 0 ? theWatch.timeout() + 0.1 * theWatch.rank() : 1e9;
  std::lock_guard<std::mutex> lock(mutex);
  waitsFor = std::move(what);
  deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds));
}

/// A failure if the rank waits for longer than it may.
Status CommNccl::waitStatus() {
  std::string what;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!waitsFor.empty() && Clock::now() > deadline)
      what = waitsFor;
  }
  return what.empty() ? Status() : theWatch.timeoutStatus(what);
}

/// Asked by a wait that can be given up.
Status CommNccl::checkWait() {
  if (!theWatch.failed())
    if (Status status = waitStatus(); status.failed())
      theWatch.abort(status);
  return theWatch.status();
}

std::unique_ptr<NcclGroup> CommNccl::makeNcclGroup() {
  return std::make_unique<NcclGroup>(api, [this] { return checkWait(); });
}

Status CommNccl::start(const std::string &planHash) {
  if (Status status = theWatch.start(planHash); status.failed())
    return status;
  theWatch.setState(Activity::Starting);
  Status status = open();
  if (!status.failed())
    setHostState(Activity::Outside);
  return status;
}

Status CommNccl::open() {
  int version = 0;
  api.ncclGetVersion(&version);
  std::vector<std::string> versions;
  if (Status status = theWatch.exchange("the exchange of NCCL's versions",
                                        nccl::describeVersion(version),
                                        versions, theWatch.timeout());
      status.failed())
    return status;
  for (size_t rank = 1; rank < versions.size(); ++rank)
    if (versions[rank] != versions[0])
      return theWatch.learn({FSDPRT_RANKS_DISAGREE,
                             "ranks disagree: rank 0 has NCCL " + versions[0] +
                                 ", rank " + std::to_string(rank) + " has " +
                                 versions[rank]});

  nccl::UniqueId id = {};
  std::string message;
  if (theWatch.rank() == 0) {
    if (nccl::Result result = api.ncclGetUniqueId(&id))
      return {FSDPRT_DEVICE_ERROR, std::string("ncclGetUniqueId: ") +
                                       api.ncclGetErrorString(result)};
    message.assign(id.bytes, sizeof(id.bytes));
  }
  if (Status status =
          theWatch.broadcast("NCCL's id", message, theWatch.timeout());
      status.failed())
    return status;
  std::copy_n(message.data(), std::min(message.size(), sizeof(id.bytes)),
              id.bytes);

  std::lock_guard<std::mutex> lock(ncclMutex);
  DeviceCuda::Scope scope(device);
  DeviceCuda::RelaxedCapture relaxed(device.driver());
  root = makeNcclGroup();
  Waiting waiting(*this, "of NCCL's initialisation");
  return root->open(id, theWatch.ranks(), theWatch.rank());
}

/// The group of this rank along `axes`. The first time, all ranks of the world
/// make theirs together, since all are at the same call.
Status CommNccl::findGroup(const std::vector<int64_t> &axes, Group *&group) {
  auto known = groups.find(axes);
  if (known == groups.end()) {
    if (device.isCapturing())
      return {FSDPRT_INVALID_ARGUMENT,
              "its ranks have no communicator yet while a graph is captured, "
              "expected an entry that has run once before"};
    DeviceCuda::RelaxedCapture relaxed(device.driver());
    // The splits share resources, and some of them may be at work.
    Waiting waiting(*this, "of the making of a communicator");
    if (Status status = device.finish([this] { return checkWait(); });
        status.failed())
      return status;
    Group made = {grid.group(axes, theWatch.rank()), makeNcclGroup()};
    const std::vector<int64_t> &members = made.members;
    int64_t colour = *std::min_element(members.begin(), members.end());
    int64_t key = std::find(members.begin(), members.end(), theWatch.rank()) -
                  members.begin();
    if (Status status = made.nccl->split(*root, colour, key); status.failed()) {
      // NCCL may still be at work on it, until the world's one has ended.
      unfinished.push_back(std::move(made.nccl));
      return status;
    }
    known = groups.insert({axes, std::move(made)}).first;
  }
  group = &known->second;
  return {};
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void CommNccl::adviseOnce(const std::string &what, const std::string &bucket,
                          const std::string &why) {
  if (advised.insert({what, bucket}).second)
    log(me() + ": bucket '" + bucket + "': " + why);
}

/// NCCL moves 16 bytes at a time where each rank's slice begins at a multiple
/// of that; else byte by byte.
void CommNccl::adviseOn(const Call &call, const Group &group, const void *send,
                        const void *receive) {
  const int64_t row = call->count * sizeOf(call->dtype);
  auto misaligned = [](const void *data) {
    return reinterpret_cast<uintptr_t>(data) % 16 != 0;
  };
  bool pitch = call->kind != CollectiveKind::AllReduce &&
               group.members.size() > 1 && row % 16 != 0;
  // The layout is the same on all ranks, and one of them is enough to say so.
  if ((pitch && theWatch.rank() == 0) || misaligned(send) ||
      misaligned(receive))
    adviseOnce("alignment", call->bucket,
               std::string(nameOf(call->kind)) + " of " + std::to_string(row) +
                   " bytes per rank, slices are not aligned to 16 bytes and "
                   "move slowly");
}

void CommNccl::registerBuffers(const Call &call, Group &group, const void *send,
                               void *receive) {
  for (const void *data : {send, const_cast<const void *>(receive)}) {
    int64_t bytes = 0;
    void *block = device.blockOf(data, bytes);
    if (registers && block && !group.nccl->registerBlock(block, bytes))
      adviseOnce("registration", call->bucket,
                 "NCCL does not register its buffers, they will be copied");
  }
}

/// Puts an event behind the collective, for the watchdog.
Status CommNccl::follow(const Call &call) {
  // In a graph that is being captured nothing happens yet.
  if (device.isCapturing())
    return {};
  const cuda::Api &driver = device.driver();
  std::lock_guard<std::mutex> lock(mutex);
  cuda::Event event = nullptr;
  cuda::Result result = cuda::success;
  const char *what = "cuEventCreate";
  if (freeEvents.empty()) {
    result = driver.cuEventCreate(&event, cuda::eventDisableTiming);
  } else {
    event = freeEvents.back();
    freeEvents.pop_back();
  }
  if (result == cuda::success) {
    what = "cuEventRecord";
    result = driver.cuEventRecord(event, device.getStream());
  }
  if (result != cuda::success) {
    if (event)
      freeEvents.push_back(event);
    return {FSDPRT_DEVICE_ERROR, driver.describe(what, result)};
  }
  underWay.push_back({call, event, Clock::now()});
  hostActivity = {Activity::Outside, call};
  return {};
}

Status CommNccl::collective(const Call &call, const void *send, void *receive) {
  return collectives(&call, 1, &send, &receive);
}

Status CommNccl::collectives(const Call *calls, int32_t count,
                             const void *const *send, void *const *receive) {
  if (Status status = theWatch.status(); status.failed())
    return status;
  std::vector<Start> starts;
  for (int32_t i = 0; i < count; ++i) {
    const Call &call = calls[i];
    if (call->accumulate && sizeOf(call->dtype) == 2)
      return {FSDPRT_INVALID_ARGUMENT,
              describe(call) +
                  ": nccl adds in the dtype of the wire, expected a program "
                  "without accumulate f32"};
    if (call->count != 0)
      starts.push_back({call, nullptr, send[i], receive[i]});
  }
  if (starts.empty())
    return {};
  NvtxRange range(starts.front().call->bucket.c_str());
  DeviceCuda::Scope scope(device);
  std::lock_guard<std::mutex> lock(ncclMutex);
  // The watchdog may have aborted the groups meanwhile.
  if (Status status = theWatch.status(); status.failed())
    return status;
  for (Start &start : starts) {
    if (Status status = findGroup(start.call->axes, start.group);
        status.failed())
      return status.code == FSDPRT_INVALID_ARGUMENT
                 ? Status{status.code,
                          describe(start.call) + ": " + status.message}
                 : status;
    adviseOn(start.call, *start.group, start.send, start.receive);
  }
  Waiting waiting(*this, "of a collective's start");
  for (const Start &start : starts)
    registerBuffers(start.call, *start.group, start.send, start.receive);
  if (Status status = launch(starts); status.failed())
    return status;
  for (const Start &start : starts)
    if (Status status = follow(start.call); status.failed())
      return status;
  return {};
}

/// Hands the collectives to NCCL, several as one group of calls.
Status CommNccl::launch(const std::vector<Start> &starts) {
  auto named = [](const Start &start, Status status) {
    return status.code == FSDPRT_DEVICE_ERROR
               ? Status{status.code,
                        describe(start.call) + ": " + status.message}
               : status;
  };
  auto begin = [&](const Start &start, bool isGrouped) {
    return named(start, start.group->nccl->start(
                            start.call, start.group->members.size(), start.send,
                            start.receive, device.getStream(), isGrouped));
  };
  if (starts.size() == 1)
    return begin(starts.front(), /*isGrouped=*/false);
  for (const Start &start : starts)
    if (Status status =
            start.group->nccl->prepare(start.call, start.group->members.size());
        status.failed())
      return named(start, status);
  nccl::Result result = api.ncclGroupStart();
  const Start &first = starts.front();
  Status failure =
      named(first, first.group->nccl->settleGroup("ncclGroupStart", result));
  if (failure.failed())
    return failure;
  for (const Start &start : starts)
    if (failure = begin(start, /*isGrouped=*/true); failure.failed())
      break;
  // A group that was begun has to end, whatever is in it.
  result = api.ncclGroupEnd();
  for (const Start &start : starts)
    if (!failure.failed())
      failure =
          named(start, start.group->nccl->settleGroup("ncclGroupEnd", result));
  return failure;
}

//===----------------------------------------------------------------------===//
// The watchdog
//===----------------------------------------------------------------------===//

void CommNccl::setHostState(Activity::State state) {
  std::lock_guard<std::mutex> lock(mutex);
  hostActivity.state = state;
  if (underWay.empty())
    theWatch.setActivity(hostActivity);
}

/// What is wrong now, if anything is.
Status CommNccl::look() {
  const cuda::Api &driver = device.driver();
  std::string where = me() + ": ";
  bool late = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    Clock::time_point now = Clock::now();
    while (!underWay.empty()) {
      UnderWay &first = underWay.front();
      cuda::Result result = driver.cuEventQuery(first.event);
      if (result == cuda::errorNotReady)
        break;
      if (result != cuda::success)
        return {FSDPRT_DEVICE_ERROR,
                me() + ": " + describe(first.call) + ": " +
                    driver.describe("cuEventQuery", result)};
      freeEvents.push_back(first.event);
      underWay.pop_front();
      if (!underWay.empty())
        underWay.front().since = now;
    }
    theWatch.setActivity(underWay.empty() ? hostActivity
                                          : Activity{Activity::InCollective,
                                                     underWay.front().call});
    if (!underWay.empty()) {
      where += describe(underWay.front().call) + ": ";
      double seconds =
          std::chrono::duration<double>(now - underWay.front().since).count();
      late = theWatch.timeout() > 0 &&
             seconds > theWatch.timeout() + 0.1 * theWatch.rank();
    }
  }
  if (late)
    return theWatch.timeoutStatus("of a collective");
  if (Status status = waitStatus(); status.failed())
    return status;
  // The rank may be at work with NCCL; another time then.
  std::unique_lock<std::mutex> lock(ncclMutex, std::try_to_lock);
  if (!lock.owns_lock())
    return {};
  Status status = root ? root->asyncStatus() : Status();
  for (auto &[axes, group] : groups)
    if (!status.failed())
      status = group.nccl->asyncStatus();
  return status.failed() ? Status{status.code, where + status.message} : status;
}

/// A rank that is in a call of NCCL will soon be back, or else waits there, and
/// is only back after the abort. Then it changes nothing here meanwhile.
void CommNccl::abortGroups() {
  std::unique_lock<std::mutex> lock(ncclMutex, std::defer_lock);
  // Not a timed lock, which the thread sanitizer of GCC 12 does not know.
  for (int tries = 0; !lock.try_lock() && tries < 1000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (auto &[axes, group] : groups)
    group.nccl->abort();
  if (root)
    root->abort();
  for (auto &group : unfinished)
    group->abort();
}

void CommNccl::body() {
  DeviceCuda::Scope scope(device);
  DeviceCuda::RelaxedCapture relaxed(device.driver());
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop) {
    lock.unlock();
    if (Status status = look(); status.failed())
      theWatch.abort(status);
    if (theWatch.failed())
      return abortGroups();
    lock.lock();
    if (!stop)
      changed.wait_for(lock, std::chrono::milliseconds(20));
  }
}

} // namespace

std::unique_ptr<Communicator> fsdprt::createNcclCommunicator(
    const Grid &grid, const nccl::Api &api, DeviceCuda &device,
    std::unique_ptr<Channel> channel, double timeoutSeconds, Log log) {
  return std::make_unique<CommNccl>(grid, api, device, std::move(channel),
                                    timeoutSeconds, std::move(log));
}
