//===- Deadline.h - when to give up waiting ---------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_SUPPORT_DEADLINE_H
#define FSDP_LIB_RUNTIME_SUPPORT_DEADLINE_H

#include <algorithm>
#include <chrono>

namespace fsdprt {

using Clock = std::chrono::steady_clock;

/// The moment `seconds` from now. 0 is never, and so is what is beyond the
/// range of the clock, whose nanoseconds end after 292 years.
inline Clock::time_point deadlineAfter(double seconds) {
  constexpr double longest = 1e9;
  if (!(seconds > 0) || seconds > longest)
    return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

/// Ranks that are processes do not come at one moment: however short the
/// timeout of a collective is, they wait so long for each other at the start.
constexpr double leastStartSeconds = 5;

/// How long ranks wait at the start, 0 for ever, if `least` is the least.
inline double startSeconds(double timeoutSeconds,
                           double least = leastStartSeconds) {
  return timeoutSeconds > 0 ? std::max(timeoutSeconds, least) : 0;
}

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_SUPPORT_DEADLINE_H
