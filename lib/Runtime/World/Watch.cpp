//===- Watch.cpp - ranks that are processes look after each other ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A message is a letter and what belongs to it:
//
//   F code text        the sender has failed, and with it the world
//   Q number           what are you doing?
//   A number text      an answer
//   D topic text       data; `topic` is a hash that finds ranks out of step
//
// The thread asks the channel for messages every 20 ms, more often while
// somebody waits for one: a failure may be learnt late, a result should not be.
//
//===----------------------------------------------------------------------===//

#include "World/Watch.h"

#include "Support/Guard.h"

#include <algorithm>
#include <cstring>

using namespace fsdprt;

/// Large things go in parts of this size, so that nobody holds a second copy of
/// a large tensor, and no message has to be larger.
static constexpr uint64_t partBytes = 4 << 20;

/// Of what a rank has sent and nobody has taken, before it has to wait.
static constexpr size_t largestInbox = 64 << 20;

/// Of a sentence that travels.
static constexpr size_t longestText = 1 << 16;

static uint32_t hashOf(const std::string &topic) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : topic)
    hash = (hash ^ c) * 16777619u;
  return hash;
}

/// A message of a letter, a number and a text.
static std::string pack(char letter, uint32_t number, const void *text,
                        size_t size) {
  std::string message(5 + size, letter);
  std::memcpy(&message[1], &number, 4);
  if (size != 0)
    std::memcpy(&message[5], text, size);
  return message;
}

static std::string pack(char letter, uint32_t number,
                        const std::string &text = {}) {
  return pack(letter, number, text.data(), text.size());
}

Watch::Watch(std::unique_ptr<Channel> channel, double timeoutSeconds,
             double leastSeconds)
    : channel(std::move(channel)), myRank(this->channel->rank()),
      worldRanks(this->channel->ranks()), timeoutSeconds(timeoutSeconds),
      startSeconds(fsdprt::startSeconds(timeoutSeconds, leastSeconds)),
      heard(worldRanks), thread([this] { body(); }) {}

Watch::~Watch() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
    changed.notify_all();
  }
  thread.join();
}

void Watch::close() {
  closing = true;
  // Called by destructors.
  if (!failed())
    (void)guarded([&] {
      channel->close();
      return Status();
    });
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void Watch::body() {
  // Whatever is thrown here would end the process.
  try {
    listen();
  } catch (...) {
    Status status = describeException();
    std::lock_guard<std::mutex> lock(mutex);
    fail(std::move(status), true);
  }
}

void Watch::listen() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop) {
    lock.unlock();
    int64_t from;
    std::string message;
    while (channel->receive(from, message))
      handle(from, message);
    if (Status status = channel->status(); status.failed() && !closing)
      abort(status);
    if (hasToldAll)
      channel->leave();
    lock.lock();
    if (stop)
      return;
    changed.wait_for(lock, waiting ? std::chrono::microseconds(200)
                                   : std::chrono::milliseconds(20));
  }
}

void Watch::handle(int64_t from, const std::string &message) {
  if (message.size() < 5 || from < 0 || from >= worldRanks)
    return;
  uint32_t number;
  std::memcpy(&number, &message[1], 4);
  std::string text = message.substr(5);
  std::unique_lock<std::mutex> lock(mutex);
  heard[from] = Clock::now();
  switch (message[0]) {
  case 'F': {
    auto code = static_cast<fsdprtStatus>(number);
    fail({code == FSDPRT_SUCCESS ? FSDPRT_ABORTED : code, std::move(text)},
         false);
    hasToldAll = true; // the sender has
    break;
  }
  case 'Q': {
    std::string answer =
        pack('A', number, describe(activity).substr(0, longestText));
    lock.unlock();
    (void)channel->send(from, answer); // who asked does not wait for ever
    return;
  }
  case 'A':
    if (static_cast<int32_t>(number) == question && !answers.empty())
      answers[from] = std::move(text);
    break;
  case 'D': {
    Inbox &box = inboxes[from];
    // A message costs memory beyond its bytes.
    box.bytes += message.size() + 64;
    box.messages.push_back(message.substr(1));
    if (box.bytes > largestInbox && !box.held) {
      box.held = true;
      channel->hold(from, true);
    }
    break;
  }
  }
  changed.notify_all();
}

//===----------------------------------------------------------------------===//
// Failure and report
//===----------------------------------------------------------------------===//

void Watch::setActivity(Activity next) {
  std::lock_guard<std::mutex> lock(mutex);
  activity = std::move(next);
}

void Watch::setState(Activity::State state) {
  std::lock_guard<std::mutex> lock(mutex);
  activity.state = state;
}

Status Watch::status() {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

bool Watch::failedFirst() {
  std::lock_guard<std::mutex> lock(mutex);
  return first;
}

/// With the lock.
void Watch::fail(Status status, bool here) {
  if (failure.failed())
    return;
  failure = std::move(status);
  first = here;
  hasFailed = true;
  changed.notify_all();
}

void Watch::abort(const Status &status) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.failed())
      return;
    fail(status, true);
  }
  std::string message =
      pack('F', status.code, status.message.substr(0, longestText));
  for (int64_t to = 0; to < worldRanks; ++to)
    if (to != myRank)
      (void)channel->send(to, message); // the others may be gone already
  hasToldAll = true;
  channel->leave();
}

Status Watch::learn(const Status &status) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    fail(status, myRank == 0);
  }
  channel->leave();
  return this->status();
}

Status Watch::timeoutStatus(const std::string &what, double seconds) {
  std::unique_lock<std::mutex> lock(mutex);
  if (failure.failed())
    return failure;
  answers.assign(worldRanks, std::nullopt);
  answers[myRank] = describe(activity);
  std::string message = pack('Q', ++question);
  ++waiting;
  changed.notify_all();
  lock.unlock();
  for (int64_t to = 0; to < worldRanks; ++to)
    if (to != myRank)
      (void)channel->send(to, message);
  lock.lock();
  changed.wait_for(lock, std::chrono::seconds(1), [&] {
    for (const auto &answer : answers)
      if (!answer)
        return false;
    return true;
  });
  --waiting;
  std::vector<std::string> clauses;
  for (const auto &answer : answers)
    clauses.push_back(answer.value_or("no answer"));
  answers.clear();
  return {FSDPRT_TIMEOUT,
          describeTimeout(what, seconds, describeRanks(clauses))};
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Status Watch::post(int64_t to, const std::string &what, const void *data,
                   int64_t bytes) {
  Status status = channel->send(to, pack('D', hashOf(what), data, bytes));
  if (status.failed())
    abort(status);
  return this->status();
}

/// Waits until `over`, or until a rank that this one depends on has not
/// answered for so long. Rank 0 depends on all, the others on it.
bool Watch::waitWhileAlive(std::unique_lock<std::mutex> &lock,
                           const std::function<bool()> &over, double patience) {
  if (startSeconds <= 0) {
    changed.wait(lock, over);
    return true;
  }
  const Clock::time_point begin = Clock::now();
  const std::chrono::duration<double> period(std::min(1.0, startSeconds / 4));
  const int64_t end = myRank == 0 ? worldRanks : 1;
  const std::string message = pack('Q', 0); // nobody waits for these answers
  while (!changed.wait_for(lock, period, over)) {
    const Clock::time_point now = Clock::now();
    for (int64_t other = 0; other < end; ++other)
      if (other != myRank &&
          std::chrono::duration<double>(now - std::max(begin, heard[other]))
                  .count() > patience)
        return false;
    lock.unlock();
    for (int64_t other = 0; other < end; ++other)
      if (other != myRank)
        (void)channel->send(other, message);
    lock.lock();
  }
  return true;
}

Status Watch::take(int64_t from, const std::string &what, std::string &message,
                   double seconds) {
  std::unique_lock<std::mutex> lock(mutex);
  Inbox &box = inboxes[from];
  auto over = [&] { return !box.messages.empty() || failure.failed(); };
  ++waiting;
  changed.notify_all();
  // Rank 0 waits for all and the others for it, so let it be the first to run
  // out of patience: it knows best who is missing.
  const double grace = myRank == 0 ? 0 : 2 + 0.1 * myRank;
  bool inTime =
      seconds > 0
          ? changed.wait_until(lock, deadlineAfter(seconds + grace), over)
          : waitWhileAlive(lock, over, startSeconds + grace);
  --waiting;
  if (!inTime) {
    lock.unlock();
    abort(timeoutStatus("of " + what, seconds > 0 ? seconds : startSeconds));
    return status();
  }
  if (box.messages.empty())
    return failure;
  message = std::move(box.messages.front());
  box.messages.pop_front();
  box.bytes -= message.size() + 1 + 64;
  if (box.held && box.bytes < largestInbox / 2) {
    box.held = false;
    channel->hold(from, false);
  }
  lock.unlock();
  uint32_t topic = 0;
  std::memcpy(&topic, message.data(), 4);
  message.erase(0, 4);
  if (topic == hashOf(what))
    return {};
  abort({FSDPRT_RANKS_DISAGREE,
         "ranks disagree: rank " + std::to_string(myRank) + " is at " + what +
             ", rank " + std::to_string(from) + " is elsewhere"});
  return status();
}

Status Watch::disagree(const std::string &what, int64_t from, uint64_t bytes,
                       uint64_t expected) {
  abort({FSDPRT_RANKS_DISAGREE,
         "ranks disagree: " + what + " has " + std::to_string(expected) +
             " bytes on rank " + std::to_string(myRank) + " and " +
             std::to_string(bytes) + " on rank " + std::to_string(from)});
  return status();
}

/// In parts, the first of which begins with the size of the whole.
Status Watch::postWhole(int64_t to, const std::string &what,
                        const std::string &message) {
  uint64_t size = message.size();
  std::string first(reinterpret_cast<const char *>(&size), sizeof(size));
  first.append(message, 0, partBytes - sizeof(size));
  if (Status s = post(to, what, first.data(), first.size()); s.failed())
    return s;
  for (size_t at = first.size() - sizeof(size); at < size; at += partBytes)
    if (Status s = post(to, what, &message[at],
                        std::min<size_t>(partBytes, size - at));
        s.failed())
      return s;
  return {};
}

/// What postWhole has posted, if it is no larger than expected.
Status Watch::takeWhole(int64_t from, const std::string &what, uint64_t most,
                        std::string &message, double seconds) {
  uint64_t size = 0;
  if (Status s = take(from, what, message, seconds); s.failed())
    return s;
  if (message.size() >= sizeof(size))
    std::memcpy(&size, message.data(), sizeof(size));
  message.erase(0, sizeof(size));
  if (size > most || message.size() > size)
    return disagree(what, from, std::max<uint64_t>(size, message.size()), most);
  while (message.size() < size) {
    std::string part;
    if (Status s = take(from, what, part, seconds); s.failed())
      return s;
    message += part;
    if (part.empty() || message.size() > size)
      return disagree(what, from, message.size(), size);
  }
  return {};
}

/// Strings in one: each with its size before it.
static std::string join(const std::vector<std::string> &parts) {
  std::string whole;
  for (const std::string &part : parts) {
    uint64_t size = part.size();
    whole.append(reinterpret_cast<const char *>(&size), sizeof(size));
    whole += part;
  }
  return whole;
}

static std::vector<std::string> split(const std::string &whole) {
  std::vector<std::string> parts;
  uint64_t size;
  for (size_t at = 0; whole.size() - at >= sizeof(size); at += size) {
    std::memcpy(&size, &whole[at], sizeof(size));
    at += sizeof(size);
    size = std::min<uint64_t>(size, whole.size() - at);
    parts.push_back(whole.substr(at, size));
  }
  return parts;
}

Status Watch::exchange(const std::string &what, const std::string &mine,
                       std::vector<std::string> &all, double seconds) {
  // What the ranks say has one size, or is short.
  const uint64_t most = std::max<uint64_t>(mine.size(), shortMessage);
  std::string whole;
  if (myRank != 0) {
    if (Status s = postWhole(0, what, mine); s.failed())
      return s;
    if (Status s = broadcast(what, whole, seconds,
                             (most + sizeof(uint64_t)) * worldRanks);
        s.failed())
      return s;
    all = split(whole);
    if (all.size() == static_cast<size_t>(worldRanks))
      return {};
    return disagree(what, 0, whole.size(), most * worldRanks);
  }
  all.assign(worldRanks, mine);
  for (int64_t from = 1; from < worldRanks; ++from)
    if (Status s = takeWhole(from, what, most, all[from], seconds); s.failed())
      return s;
  whole = join(all);
  return broadcast(what, whole, seconds);
}

Status Watch::start(const std::string &planHash) {
  setState(Activity::Starting);
  std::vector<std::string> hashes;
  if (Status s = exchange("the comparison of plan hashes", planHash, hashes,
                          startSeconds);
      s.failed())
    return s;
  if (Status s = comparePlanHashes(hashes); s.failed())
    return learn(s);
  setState(Activity::Outside);
  return {};
}

Status Watch::broadcast(const std::string &what, std::string &message,
                        double seconds, uint64_t most) {
  if (myRank != 0)
    return takeWhole(0, what, most, message, seconds);
  for (int64_t to = 1; to < worldRanks; ++to)
    if (Status s = postWhole(to, what, message); s.failed())
      return s;
  return {};
}

Status Watch::collect(const std::string &what, int64_t from, const void *send,
                      int64_t bytes, void *receive, double seconds) {
  constexpr int64_t part = partBytes;
  if (from == 0) {
    if (myRank == 0 && bytes != 0 && send != receive)
      std::memcpy(receive, send, bytes);
    return {};
  }
  if (myRank != 0 && myRank != from)
    return status();
  // Rank 0 calls for each tensor, so that it holds one at a time in messages.
  std::string call;
  if (Status s =
          myRank == 0 ? post(from, what, "", 0) : take(0, what, call, seconds);
      s.failed())
    return s;
  for (int64_t begin = 0; begin < bytes; begin += part) {
    int64_t size = std::min(part, bytes - begin);
    if (myRank == from) {
      if (Status s =
              post(0, what, static_cast<const char *>(send) + begin, size);
          s.failed())
        return s;
      continue;
    }
    std::string message;
    if (Status s = take(from, what, message, seconds); s.failed())
      return s;
    if (static_cast<int64_t>(message.size()) != size)
      return disagree(what, from, message.size(), size);
    std::memcpy(static_cast<char *>(receive) + begin, message.data(), size);
  }
  return {};
}
