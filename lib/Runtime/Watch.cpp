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

#include "Watch.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace fsdprt;

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

Watch::Watch(std::unique_ptr<Channel> channel, double timeoutSeconds)
    : channel(std::move(channel)), myRank(this->channel->rank()),
      worldRanks(this->channel->ranks()), timeoutSeconds(timeoutSeconds),
      thread([this] { body(); }) {}

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
  if (!failed())
    channel->close();
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void Watch::body() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop) {
    lock.unlock();
    int64_t from;
    std::string message;
    while (channel->receive(from, message))
      handle(from, message);
    if (Status status = channel->status(); status.failed() && !closing)
      abort(status);
    lock.lock();
    if (stop)
      return;
    changed.wait_for(lock, waiting ? std::chrono::microseconds(200)
                                   : std::chrono::milliseconds(20));
  }
}

void Watch::handle(int64_t from, const std::string &message) {
  if (message.size() < 5)
    return;
  uint32_t number;
  std::memcpy(&number, &message[1], 4);
  std::string text = message.substr(5);
  std::unique_lock<std::mutex> lock(mutex);
  switch (message[0]) {
  case 'F':
    fail({static_cast<fsdprtStatus>(number), std::move(text)}, false);
    break;
  case 'Q': {
    std::string answer = pack('A', number, describe(activity));
    lock.unlock();
    (void)channel->send(from, answer); // who asked does not wait for ever
    return;
  }
  case 'A':
    if (static_cast<int32_t>(number) == question && from < worldRanks &&
        !answers.empty())
      answers[from] = std::move(text);
    break;
  case 'D':
    inbox[from].push_back(message.substr(1));
    break;
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
void Watch::fail(const Status &status, bool here) {
  if (failure.failed())
    return;
  failure = status;
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
  std::string message = pack('F', status.code, status.message);
  for (int64_t to = 0; to < worldRanks; ++to)
    if (to != myRank)
      (void)channel->send(to, message); // the others may be gone already
}

Status Watch::learn(const Status &status) {
  std::lock_guard<std::mutex> lock(mutex);
  fail(status, myRank == 0);
  return failure;
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

Status Watch::take(int64_t from, const std::string &what, std::string &message,
                   double seconds) {
  std::unique_lock<std::mutex> lock(mutex);
  std::deque<std::string> &queue = inbox[from];
  auto over = [&] { return !queue.empty() || failure.failed(); };
  ++waiting;
  changed.notify_all();
  // Rank 0 waits for all and the others for it, so let it be the first to run
  // out of patience: it knows best who is missing.
  bool inTime = true;
  if (seconds <= 0)
    changed.wait(lock, over);
  else
    inTime =
        changed.wait_for(lock,
                         std::chrono::duration<double>(
                             seconds + (myRank == 0 ? 0 : 2 + 0.1 * myRank)),
                         over);
  --waiting;
  if (!inTime) {
    lock.unlock();
    abort(timeoutStatus("of " + what, seconds));
    return status();
  }
  if (queue.empty())
    return failure;
  message = std::move(queue.front());
  queue.pop_front();
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
  for (size_t at = 0; at + sizeof(size) <= whole.size(); at += size) {
    std::memcpy(&size, &whole[at], sizeof(size));
    at += sizeof(size);
    parts.push_back(whole.substr(at, size));
  }
  return parts;
}

Status Watch::exchange(const std::string &what, const std::string &mine,
                       std::vector<std::string> &all, double seconds) {
  std::string whole;
  if (myRank != 0) {
    if (Status s = post(0, what, mine.data(), mine.size()); s.failed())
      return s;
    if (Status s = broadcast(what, whole, seconds); s.failed())
      return s;
    all = split(whole);
    return {};
  }
  all.assign(worldRanks, mine);
  for (int64_t from = 1; from < worldRanks; ++from)
    if (Status s = take(from, what, all[from], seconds); s.failed())
      return s;
  whole = join(all);
  return broadcast(what, whole, seconds);
}

Status Watch::start(const std::string &planHash) {
  setState(Activity::Starting);
  std::vector<std::string> hashes;
  if (Status s = exchange("the comparison of plan hashes", planHash, hashes,
                          timeoutSeconds);
      s.failed())
    return s;
  if (Status s = comparePlanHashes(hashes); s.failed())
    return learn(s);
  setState(Activity::Outside);
  return {};
}

Status Watch::broadcast(const std::string &what, std::string &message,
                        double seconds) {
  if (myRank != 0)
    return take(0, what, message, seconds);
  for (int64_t to = 1; to < worldRanks; ++to)
    if (Status s = post(to, what, message.data(), message.size()); s.failed())
      return s;
  return {};
}

Status Watch::collect(const std::string &what, int64_t from, const void *send,
                      int64_t bytes, void *receive, double seconds) {
  // In parts, so that nobody holds a second copy of a large tensor.
  constexpr int64_t part = 4 << 20;
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
    if (static_cast<int64_t>(message.size()) != size) {
      abort({FSDPRT_RANKS_DISAGREE,
             "ranks disagree: " + what + " has " + std::to_string(size) +
                 " bytes on rank 0 and " + std::to_string(message.size()) +
                 " on rank " + std::to_string(from)});
      return status();
    }
    std::memcpy(static_cast<char *>(receive) + begin, message.data(), size);
  }
  return {};
}
