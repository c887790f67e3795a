//===- Watch.h - ranks that are processes look after each other -*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each process has a thread that answers the others even while the rank itself
// is stuck. So a rank that gives up can tell everybody, and a rank that has
// waited too long can ask what each of the others is doing.
//
// Whatever the world's data goes over, the same thread carries the few small
// things that all ranks exchange: plan hashes, ids, results at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_WATCH_H
#define FSDP_LIB_RUNTIME_WORLD_WATCH_H

#include "Support/Deadline.h"
#include "World/Activity.h"
#include "World/Channel.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace fsdprt {

class Watch {
public:
  /// A rank waits at most `timeoutSeconds` for the others, 0 is for ever; at
  /// the start and for a sign of life at least `leastSeconds`.
  Watch(std::unique_ptr<Channel> channel, double timeoutSeconds,
        double leastSeconds = leastStartSeconds);
  ~Watch();

  int64_t rank() const { return myRank; }
  int64_t ranks() const { return worldRanks; }
  double timeout() const { return timeoutSeconds; }

  void setActivity(Activity activity);
  void setState(Activity::State state);

  /// Why the world cannot go on, success if it can. Any thread.
  Status status();

  /// True without taking the lock, for loops that wait.
  bool failed() const { return hasFailed; }

  /// True if the failure of the world began at this rank.
  bool failedFirst();

  /// Keeps the first failure of the world and tells every rank. Any thread.
  void abort(const Status &status);

  /// Keeps a failure that all ranks have found alike: nobody has to be told,
  /// and it is rank 0 that speaks. Returns the failure of the world.
  Status learn(const Status &status);

  /// Asks every rank what it is doing, and reports it with a timeout's words:
  /// "no end `of what`". Takes up to a second.
  Status timeoutStatus(const std::string &what) {
    return timeoutStatus(what, timeoutSeconds);
  }

  /// Collective over all ranks, like all that follows: every rank gets every
  /// rank's message. `what` is for reports, and must be the same everywhere.
  /// Waits at most `seconds`; 0 is as long as those it waits for are alive,
  /// which they are while they answer within the time of the start.
  Status exchange(const std::string &what, const std::string &mine,
                  std::vector<std::string> &all, double seconds);

  /// Compares the plan hashes of all ranks.
  Status start(const std::string &planHash);

  /// Every rank gets rank 0's message, of at most `most` bytes.
  Status broadcast(const std::string &what, std::string &message,
                   double seconds, uint64_t most = shortMessage);

  /// Rank 0 gets the bytes of rank `from`; the others return at once.
  Status collect(const std::string &what, int64_t from, const void *send,
                 int64_t bytes, void *receive, double seconds);

  /// Orderly end, once nothing is left to be said.
  void close();

private:
  /// What ranks may tell each other although only some of them expect it.
  static constexpr uint64_t shortMessage = 1 << 16;

  void body();
  void listen();
  void handle(int64_t from, const std::string &message);
  void fail(Status status, bool first);
  Status post(int64_t to, const std::string &what, const void *data,
              int64_t bytes);
  Status take(int64_t from, const std::string &what, std::string &message,
              double seconds);
  Status postWhole(int64_t to, const std::string &what,
                   const std::string &message);
  Status takeWhole(int64_t from, const std::string &what, uint64_t most,
                   std::string &message, double seconds);
  bool waitWhileAlive(std::unique_lock<std::mutex> &lock,
                      const std::function<bool()> &over, double patience);
  Status disagree(const std::string &what, int64_t from, uint64_t bytes,
                  uint64_t expected);
  Status timeoutStatus(const std::string &what, double seconds);

  const std::unique_ptr<Channel> channel;
  const int64_t myRank, worldRanks;
  const double timeoutSeconds, startSeconds;

  std::mutex mutex;
  std::condition_variable changed; ///< anything below
  Activity activity;
  Status failure;
  bool first = false;
  std::atomic<bool> hasFailed{false};
  std::atomic<bool> hasToldAll{false}; ///< of the failure, so that it may leave
  std::atomic<bool> closing{false};    ///< ranks may go
  struct Inbox {
    std::deque<std::string> messages;
    size_t bytes = 0;
    bool held = false; ///< the sender has to wait
  };
  std::map<int64_t, Inbox> inboxes;                ///< by sender
  std::vector<Clock::time_point> heard;            ///< of each rank, last
  std::vector<std::optional<std::string>> answers; ///< to the last question
  int32_t question = 0;                            ///< its number
  int waiting = 0; ///< threads in take or timeoutStatus
  bool stop = false;
  std::thread thread;
};

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_WATCH_H
