//===- Activity.cpp - what ranks do, for reports --------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/Activity.h"

#include <algorithm>
#include <cstdio>

using namespace fsdprt;

static std::string describeAxes(const std::vector<int64_t> &axes) {
  std::string text;
  for (int32_t axis : axes)
    text += (text.empty() ? "" : ", ") + std::to_string(axis);
  return ", over grid axes [" + text + "]";
}

std::string fsdprt::describe(const Activity &activity) {
  std::string last = ", no call yet";
  if (activity.last.number != 0)
    last = ", last was " + describe(activity.last);
  switch (activity.state) {
  case Activity::NotStarted:
    return "not started";
  case Activity::Starting:
    return "waiting in the comparison of plan hashes";
  case Activity::Outside:
    return "not in a collective" + last;
  case Activity::InCollective:
    return "waiting in " + describe(activity.last) +
           describeAxes(activity.last->axes);
  case Activity::Left:
    return "out of its entry" + last;
  }
  return "";
}

std::string fsdprt::describe(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0, next; i < ranks.size(); i = next) {
    for (next = i + 1;
         next < ranks.size() && ranks[next] == ranks[next - 1] + 1;)
      ++next;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (next - i > 1)
      text += (next - i == 2 ? ", " : "-") + std::to_string(ranks[next - 1]);
  }
  return text;
}

std::string fsdprt::describeRanks(const std::vector<std::string> &clauses) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> groups;
  for (size_t rank = 0; rank < clauses.size(); ++rank) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](auto &other) {
      return other.first == clauses[rank];
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), {clauses[rank], {}});
    group->second.push_back(rank);
  }
  std::string result;
  for (auto &[text, ranks] : groups)
    result += (result.empty() ? "" : "; ") + describe(ranks) + ": " + text;
  return result;
}

Status fsdprt::checkTimeout(double seconds) {
  if (seconds >= 0 && seconds <= 1e9)
    return {};
  char text[64]; // what is not a number is in no range
  std::snprintf(text, sizeof(text), "%g", seconds);
  return {FSDPRT_INVALID_ARGUMENT, std::string("the timeout is ") + text +
                                       " s, expected 0 to 1000000000"};
}

std::string fsdprt::describeTimeout(const std::string &what, double seconds,
                                    const std::string &report) {
  char number[32];
  std::snprintf(number, sizeof(number), "%g", seconds);
  return "timeout: no end " + what + " after " + number + " s: " + report;
}

/// Takes the first line from `text`.
static std::string takeLine(std::string &text) {
  size_t end = text.find('\n');
  std::string line = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

Status fsdprt::comparePlanHashes(std::vector<std::string> hashes) {
  auto differ = [](const std::vector<std::string> &texts) {
    return std::find_if(texts.begin(), texts.end(),
                        [&](auto &text) { return text != texts[0]; });
  };
  if (differ(hashes) == hashes.end())
    return {};
  // The first line that differs says most.
  std::vector<std::string> lines(hashes.size());
  bool isHash = true;
  for (;; isHash = false) {
    std::transform(hashes.begin(), hashes.end(), lines.begin(), takeLine);
    if (differ(lines) != lines.end())
      break;
  }
  const std::string &first = lines[0], &other = *differ(lines);
  // Name everybody on the two sides: with one stale artefact among many, the
  // side with one rank is the one to look at.
  std::vector<int64_t> withFirst, withOther;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    if (lines[rank] == first)
      withFirst.push_back(rank);
    else if (lines[rank] == other)
      withOther.push_back(rank);
  }
  std::string sides = "'" + first + "' on " + describe(withFirst) + ", '" +
                      other + "' on " + describe(withOther);
  if (isHash)
    return {FSDPRT_PLAN_HASH_MISMATCH,
            "plan hash differs between ranks: " + sides};
  return {FSDPRT_RANKS_DISAGREE, "ranks disagree on what to run: " + sides};
}

Status fsdprt::compareCalls(const std::vector<int64_t> &members,
                            const std::vector<Call> &calls) {
  for (size_t i = 1; i < calls.size(); ++i) {
    const Call &first = calls[0], &other = calls[i];
    bool axes = first->axes == other->axes;
    if (axes && agree(*first.collective, *other.collective))
      continue;
    return {FSDPRT_RANKS_DISAGREE,
            "ranks disagree: rank " + std::to_string(members[0]) + " is at " +
                describe(first) + (axes ? "" : describeAxes(first->axes)) +
                "; rank " + std::to_string(members[i]) + " is at " +
                describe(other) + (axes ? "" : describeAxes(other->axes))};
  }
  return {};
}
