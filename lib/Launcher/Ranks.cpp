//===- Ranks.cpp - runs an entry on every rank ----------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rank is a thread that allocates, loads, starts, and runs the entry as
// often as asked. The ranks meet after each run, so that the next one begins at
// the same moment on all of them and a rank that never returns from the entry
// is noticed even if nobody waits for it in a collective.
//
// If this process is one rank of many, it has one such thread, and the meetings
// are the runtime's.
//
// The main thread does nothing but watch, because it must be able to end the
// process while threads of it hang.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Ranks.h"

#include "Elements.h"
#include "Threads.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using std::chrono::steady_clock;

static int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

namespace {

/// Where all ranks wait for each other, unless one of them has failed.
class Meeting {
public:
  explicit Meeting(int64_t ranks) : present(ranks) {}

  /// Returns when all ranks are here, or the meeting has been cancelled. If
  /// neither happens in time (0: take any time), returns who is missing.
  std::vector<int64_t> wait(int64_t rank, double timeoutSeconds) {
    std::unique_lock<std::mutex> lock(mutex);
    present[rank] = true;
    if (std::find(present.begin(), present.end(), false) == present.end()) {
      present.assign(present.size(), false);
      ++meetings;
      changed.notify_all();
      return {};
    }
    auto over = [&, meeting = meetings] {
      return cancelled || meetings != meeting;
    };
    if (timeoutSeconds == 0) {
      changed.wait(lock, over);
    } else if (!changed.wait_for(
                   lock, std::chrono::duration<double>(timeoutSeconds), over)) {
      std::vector<int64_t> missing;
      for (size_t other = 0; other < present.size(); ++other)
        if (!present[other])
          missing.push_back(other);
      return missing;
    }
    return {};
  }

  void cancel() {
    std::lock_guard<std::mutex> lock(mutex);
    cancelled = true;
    changed.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> present;
  uint64_t meetings = 0;
  bool cancelled = false;
};

/// The value of an argument, or a checksum if it has more than eight bytes.
using Word = std::array<char, 8>;

/// What one rank has and has come to.
struct Rank {
  fsdprtContext *context = nullptr;
  std::vector<void *> arguments, results; ///< on the rank's device
  std::vector<Word> uniform; ///< what arguments hold that should be equal
  int64_t started = 0;       ///< when it knew of all ranks' start
  /// Results as a device other than the host leaves them.
  std::vector<std::unique_ptr<char[]>> copies;
  std::vector<std::pair<int64_t, int64_t>> runs; ///< begin, end
  std::vector<TraceEvent> collectives;
  fsdprtStatus status = FSDPRT_SUCCESS;
  std::string message;
};

} // namespace

/// How much longer than one collective a launcher waits for a rank's return.
static constexpr double kGraceSeconds = 1;

struct Ranks::State {
  const Manifest &manifest;
  const EntrySignature &entry;
  const RunOptions options;
  const bool separate; ///< the other ranks are other processes
  const bool onHost;   ///< buffers are memory of this process
  int64_t first = 0;   ///< the rank that ranks[0] is
  std::vector<Rank> ranks;
  std::vector<double> seconds;

  Meeting meeting;
  std::atomic<int64_t> repeat{0}; ///< for the progress line
  std::mutex mutex;               ///< guards what follows
  std::condition_variable changed;
  int64_t finished = 0;
  bool failed = false;

  State(const Manifest &manifest, const EntrySignature &entry,
        const RunOptions &options)
      : manifest(manifest), entry(entry), options(options),
        separate(options.comm != "local"), onHost(options.device == "host"),
        ranks(separate ? 1 : manifest.ranks), meeting(ranks.size()) {}

  ~State() {
    for (Rank &rank : ranks)
      fsdprtDestroy(rank.context);
  }

  void fail(int64_t index, fsdprtStatus status, std::string message);
  bool check(int64_t index, fsdprtStatus status);
  bool load(int64_t index, const Inputs &inputs);
  bool copyResults(int64_t index);
  bool meetLoaded(int64_t index);
  std::string compareUniform(int64_t rank,
                             llvm::function_ref<const Word *(int64_t)> wordsOf);
  bool meet(int64_t index, double timeoutSeconds);
  void body(int64_t index, fsdprtEntry function, const Inputs &inputs);
  std::string firstFailure();
};

/// Records the failure of a rank and sets everybody free who waits for it.
void Ranks::State::fail(int64_t index, fsdprtStatus status,
                        std::string message) {
  fsdprtAbort(ranks[index].context, message.c_str());
  meeting.cancel();
  std::lock_guard<std::mutex> lock(mutex);
  ranks[index].status = status;
  ranks[index].message = std::move(message);
  failed = true;
  changed.notify_all();
}

bool Ranks::State::check(int64_t index, fsdprtStatus status) {
  if (status == FSDPRT_SUCCESS)
    return true;
  fail(index, status, fsdprtMessage(ranks[index].context));
  return false;
}

bool Ranks::State::load(int64_t index, const Inputs &inputs) {
  Rank &rank = ranks[index];
  rank.arguments.resize(entry.arguments.size());
  rank.results.resize(entry.results.size());
  for (size_t i = 0; i < entry.arguments.size(); ++i) {
    if (!check(index, fsdprtAlloc(rank.context, entry.arguments[i].type.bytes(),
                                  &rank.arguments[i])))
      return false;
    const int64_t bytes = entry.arguments[i].type.bytes();
    std::unique_ptr<char[]> staged(onHost ? nullptr : new char[bytes]);
    void *host = onHost ? rank.arguments[i] : staged.get();
    if (Error error = inputs.load(first + index, i, host)) {
      fail(index, FSDPRT_INVALID_ARGUMENT, llvm::toString(std::move(error)));
      return false;
    }
    if (entry.arguments[i].isUniform) {
      Word word = {};
      uint64_t hash = fnv1a64(host, bytes);
      if (bytes <= int64_t(sizeof(word)))
        std::memcpy(&word, host, bytes);
      else
        std::memcpy(&word, &hash, sizeof(word));
      rank.uniform.push_back(word);
    }
    if (!onHost && !check(index, fsdprtCopyIn(rank.context, rank.arguments[i],
                                              host, bytes)))
      return false;
  }
  for (size_t i = 0; i < entry.results.size(); ++i) {
    const int64_t bytes = entry.results[i].type.bytes();
    if (!check(index, fsdprtAlloc(rank.context, bytes, &rank.results[i])))
      return false;
    // The system's pages come with their first use, which no run should pay.
    for (int64_t at = 0; onHost && at < bytes; at += 4096)
      static_cast<char *>(rank.results[i])[at] = 0;
  }
  return true;
}

/// Compares the arguments that are promised to be the same on all ranks. What
/// is wrong is for the first rank to say that has something else than rank 0.
std::string Ranks::State::compareUniform(
    int64_t rank, llvm::function_ref<const Word *(int64_t)> wordsOf) {
  size_t place = 0;
  for (const EntryTensor &value : entry.arguments) {
    if (!value.isUniform)
      continue;
    const Word &expected = wordsOf(0)[place];
    int64_t other = 0;
    while (other < manifest.ranks && wordsOf(other)[place] == expected)
      ++other;
    if (other == manifest.ranks) {
      ++place;
      continue;
    }
    if (other != rank)
      return {};
    std::string message = "argument '" + value.name +
                          "' is fsdp.uniform, expected the same on all ranks, "
                          "but it differs between rank 0 and rank " +
                          std::to_string(other);
    if (value.type.elements != 1)
      return message;
    auto text = [&](const Word &word) {
      Summary summary(*value.type.dtype);
      summary.add(&word, 1);
      return summary.minimum();
    };
    return message + ": " + text(expected) + " and " +
           text(wordsOf(other)[place]);
  }
  return {};
}

/// Waits until all ranks have loaded their arguments, which may take as long as
/// it takes, and compares what must be equal. False if this rank should stop.
bool Ranks::State::meetLoaded(int64_t index) {
  std::vector<Word> all;
  const std::vector<Word> &mine = ranks[index].uniform;
  if (separate) {
    all.resize(mine.size() * manifest.ranks);
    std::string what = "entry '" + entry.name + "'";
    if (!check(index,
               fsdprtExchange(ranks[index].context, what.c_str(), mine.data(),
                              mine.size() * sizeof(Word), all.data(), 0)))
      return false;
  } else if (!meet(index, 0)) {
    return false;
  }
  std::string wrong = compareUniform(first + index, [&](int64_t rank) {
    return separate ? &all[rank * mine.size()] : ranks[rank].uniform.data();
  });
  if (wrong.empty())
    return true;
  fail(index, FSDPRT_RANKS_DISAGREE, wrong);
  return false;
}

/// Fetches the results from where the host cannot read them.
bool Ranks::State::copyResults(int64_t index) {
  Rank &rank = ranks[index];
  for (size_t i = 0; i < entry.results.size() && !onHost; ++i) {
    const int64_t bytes = entry.results[i].type.bytes();
    rank.copies.emplace_back(new char[bytes]);
    if (!check(index, fsdprtCopyOut(rank.context, rank.copies.back().get(),
                                    rank.results[i], bytes)))
      return false;
  }
  return true;
}

/// False if this rank should stop.
bool Ranks::State::meet(int64_t index, double timeoutSeconds) {
  if (separate) {
    std::string what = "entry '" + entry.name + "'";
    return check(index, fsdprtExchange(ranks[index].context, what.c_str(),
                                       nullptr, 0, nullptr, timeoutSeconds));
  }
  std::vector<int64_t> missing = meeting.wait(index, timeoutSeconds);
  if (!missing.empty()) {
    std::string text = "timeout: ";
    for (size_t i = 0; i < missing.size(); ++i)
      text += (i == 0 ? "rank " : ", rank ") + std::to_string(missing[i]);
    llvm::raw_string_ostream(text)
        << " did not return from entry '" << entry.name << "' within "
        << llvm::format("%g", timeoutSeconds) << " s after rank " << index;
    fail(index, FSDPRT_TIMEOUT, text);
    return false;
  }
  std::lock_guard<std::mutex> lock(mutex);
  return !failed;
}

void Ranks::State::body(int64_t index, fsdprtEntry function,
                        const Inputs &inputs) {
  Rank &rank = ranks[index];
  // What the ranks do not agree on is found before they load. Loading may take
  // as long as it takes, by ranks that are alive.
  std::string plan = manifest.planHash;
  for (const std::string &line : options.agreed)
    plan += "\n" + line;
  if (!check(index, fsdprtRequireDriver(rank.context, manifest.driver)) ||
      !check(index, fsdprtStart(rank.context, plan.c_str())) ||
      !load(index, inputs) || !meetLoaded(index))
    return;
  rank.started = nanoseconds();
  for (int64_t i = -options.warmUps; i < options.repeats; ++i) {
    if (index == 0)
      repeat = std::max<int64_t>(i, 0);
    int64_t begin = nanoseconds();
    if (!check(index, fsdprtRun(rank.context, function, rank.arguments.data(),
                                rank.results.data())))
      return;
    rank.runs.push_back({begin, nanoseconds()});
    // A rank that is stuck in a collective began to wait no later than this one
    // returned, so it speaks first; its report says what every rank was doing.
    double timeout = options.timeoutSeconds;
    if (!meet(index, timeout > 0 ? timeout + kGraceSeconds : timeout))
      return;
  }
  copyResults(index);
}

/// The sentence to show: not one that only tells that another rank failed, and
/// without a rank if all ranks say the same.
std::string Ranks::State::firstFailure() {
  std::lock_guard<std::mutex> lock(mutex);
  auto failure = std::find_if(ranks.begin(), ranks.end(), [](const Rank &rank) {
    return rank.status != FSDPRT_SUCCESS && rank.status != FSDPRT_ABORTED;
  });
  if (failure == ranks.end())
    failure = std::find_if(ranks.begin(), ranks.end(), [](const Rank &rank) {
      return rank.status != FSDPRT_SUCCESS;
    });
  // The thread of a rank that hangs does not know yet.
  if (failure == ranks.end()) {
    char message[4096] = "";
    fsdprtWorldStatus(ranks[0].context, message, sizeof(message));
    return message;
  }
  switch (failure->status) {
  case FSDPRT_RANKS_DISAGREE:
  case FSDPRT_PLAN_HASH_MISMATCH:
  case FSDPRT_TIMEOUT:
  case FSDPRT_ABORTED:
    return failure->message;
  default:
    return "rank " + std::to_string(first + (failure - ranks.begin())) + ": " +
           failure->message;
  }
}

Ranks::Ranks(std::unique_ptr<State> state) : state(std::move(state)) {}
Ranks::~Ranks() = default;

Expected<Ranks> Ranks::create(const Manifest &manifest,
                              const EntrySignature &entry,
                              const RunOptions &options) {
  auto state = std::make_unique<State>(manifest, entry, options);
  fsdprtOptions runtime = {};
  runtime.gridShape = manifest.grid.shape.data();
  runtime.gridAxes = manifest.grid.shape.size();
  runtime.timeoutSeconds = options.timeoutSeconds;
  runtime.stallRank = options.stallRank;
  runtime.stallCall = options.stallCall;
  runtime.device = options.device.c_str();
  runtime.communicator = options.comm.c_str();
  runtime.hasRank = options.rank.has_value();
  runtime.rank = options.rank.value_or(0);
  runtime.localRank = options.localRank;
  if (!options.rendezvous.empty())
    runtime.rendezvous = options.rendezvous.c_str();
  if (!options.sumOrder.empty())
    runtime.sumOrder = options.sumOrder.c_str();
  runtime.log = [](void *, const char *line) {
    // One write, so that lines of processes do not mix.
    std::string text = std::string("fsdp-run: note: ") + line + "\n";
    llvm::errs() << text;
  };
  if (options.trace) {
    runtime.traceUser = state.get();
    runtime.trace = [](void *user, const fsdprtTraceEvent *event) {
      State &state = *static_cast<State *>(user);
      state.ranks[event->rank - state.first].collectives.push_back(
          {std::string(event->kind) + " " + event->bucket, event->rank,
           event->call, event->bytes, event->beginNanoseconds,
           event->endNanoseconds});
    };
  }
  std::vector<fsdprtContext *> contexts(state->ranks.size());
  char message[1024] = "";
  if (state->separate ? fsdprtCreateRank(&runtime, contexts.data(), message,
                                         sizeof(message))
                      : fsdprtCreateLocal(&runtime, contexts.data(), message,
                                          sizeof(message)))
    return llvm::createStringError(llvm::Twine("cannot create the ranks: ") +
                                   message);
  for (size_t i = 0; i < contexts.size(); ++i)
    state->ranks[i].context = contexts[i];
  if (state->separate)
    fsdprtRank(contexts[0], &state->first);
  return Ranks(std::move(state));
}

Error Ranks::run(fsdprtEntry function, const Inputs &inputs,
                 Progress &progress) {
  State &s = *state;
  Threads threads;
  for (int64_t rank = 0; rank < count(); ++rank) {
    std::error_code error = threads.start([&s, rank, function, &inputs] {
      s.body(rank, function, inputs);
      std::lock_guard<std::mutex> lock(s.mutex);
      ++s.finished;
      s.changed.notify_all();
    });
    if (!error)
      continue;
    s.fail(rank, FSDPRT_OUT_OF_MEMORY,
           "cannot start a thread: " + error.message());
    break;
  }

  auto allFinished = [&, started = int64_t(threads.size())] {
    return s.finished == started;
  };
  {
    std::unique_lock<std::mutex> lock(s.mutex);
    auto tick = std::chrono::milliseconds(200);
    while (!s.changed.wait_for(lock, tick,
                               [&] { return s.failed || allFinished(); })) {
      // Another process may have failed while our own thread hangs.
      if (s.separate && fsdprtWorldStatus(s.ranks[0].context, nullptr, 0)) {
        s.failed = true;
        break;
      }
      progress.show("entry '" + s.entry.name + "' on " +
                    std::to_string(s.manifest.ranks) + " ranks, repeat " +
                    std::to_string(s.repeat + 1) + " of " +
                    std::to_string(s.options.repeats));
    }
    // The others need a moment to notice; who does not may hang for ever.
    if (s.failed)
      s.changed.wait_for(lock, std::chrono::seconds(1), allFinished);
    if (!allFinished())
      threads.detach();
  }
  threads.join();
  if (s.failed)
    return llvm::createStringError(s.firstFailure());

  for (int64_t i = s.options.warmUps; i < int64_t(s.ranks[0].runs.size());
       ++i) {
    auto [begin, end] = s.ranks[0].runs[i];
    for (const Rank &rank : s.ranks) {
      begin = std::min(begin, rank.runs[i].first);
      end = std::max(end, rank.runs[i].second);
    }
    s.seconds.push_back(1e-9 * (end - begin));
  }
  return Error::success();
}

int64_t Ranks::first() const { return state->first; }

int64_t Ranks::count() const { return state->ranks.size(); }

bool Ranks::separate() const { return state->separate; }

fsdprtContext *Ranks::context() const { return state->ranks[0].context; }

bool Ranks::abort(const std::string &message) {
  fsdprtAbort(context(), message.c_str());
  return fsdprtFailedFirst(context());
}

const std::vector<double> &Ranks::seconds() const { return state->seconds; }

int64_t Ranks::peakBytes() const {
  int64_t peak = 0;
  for (const Rank &rank : state->ranks) {
    fsdprtStatistics statistics;
    fsdprtGetStatistics(rank.context, &statistics);
    peak = std::max(peak, statistics.peakBytes);
  }
  return peak;
}

const void *Ranks::result(int64_t rank, size_t index) const {
  const Rank &owner = state->ranks[rank - state->first];
  return state->onHost ? owner.results[index] : owner.copies[index].get();
}

std::vector<TraceEvent> Ranks::trace() const {
  std::vector<TraceEvent> events;
  for (int64_t i = 0; i < count(); ++i) {
    const Rank &rank = state->ranks[i];
    for (auto [begin, end] : rank.runs)
      events.push_back({state->entry.name, state->first + i, 0, 0, begin, end});
    events.insert(events.end(), rank.collectives.begin(),
                  rank.collectives.end());
  }
  int64_t origin = state->ranks[0].started;
  for (const Rank &rank : state->ranks)
    origin = std::min(origin, rank.started);
  for (TraceEvent &event : events) {
    event.beginNanoseconds -= origin;
    event.endNanoseconds -= origin;
  }
  return events;
}
