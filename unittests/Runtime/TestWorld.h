//===- TestWorld.h - a world of threads for one test ------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_TESTWORLD_H
#define FSDP_UNITTESTS_RUNTIME_TESTWORLD_H

#include "Records.h"
#include "fsdp/Runtime/Runtime.h"

#include "gtest/gtest.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace fsdprt::test {

/// The contexts of a grid, and one thread per rank while something runs.
class TestWorld {
public:
  using Body = std::function<fsdprtStatus(fsdprtContext *, int64_t rank)>;

  explicit TestWorld(std::vector<int64_t> shape, fsdprtOptions options = {},
                     bool started = true) {
    int64_t ranks = 1;
    for (int64_t extent : shape)
      ranks *= extent;
    contexts.resize(ranks);
    options.gridShape = shape.data();
    options.gridAxes = static_cast<int32_t>(shape.size());
    if (options.timeoutSeconds == 0)
      options.timeoutSeconds = 60;
    char message[200] = "";
    EXPECT_EQ(
        fsdprtCreateLocal(&options, contexts.data(), message, sizeof(message)),
        FSDPRT_SUCCESS)
        << message;
    if (started)
      expectSuccess([](fsdprtContext *context, int64_t) {
        return fsdprtStart(context, "plan");
      });
  }

  ~TestWorld() {
    for (fsdprtContext *context : contexts)
      fsdprtDestroy(context);
  }

  TestWorld(const TestWorld &) = delete;
  TestWorld &operator=(const TestWorld &) = delete;

  int64_t size() const { return contexts.size(); }
  fsdprtContext *operator[](int64_t rank) { return contexts[rank]; }
  std::string message(int64_t rank) { return fsdprtMessage(contexts[rank]); }

  /// Calls `body` once per rank, each on a thread of its own, and returns the
  /// statuses.
  std::vector<fsdprtStatus> run(const Body &body) {
    std::vector<fsdprtStatus> statuses(contexts.size());
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < size(); ++rank)
      threads.emplace_back(
          [&, rank] { statuses[rank] = body(contexts[rank], rank); });
    for (std::thread &thread : threads)
      thread.join();
    return statuses;
  }

  void expectSuccess(const Body &body) {
    std::vector<fsdprtStatus> statuses = run(body);
    for (int64_t rank = 0; rank < size(); ++rank)
      EXPECT_EQ(statuses[rank], FSDPRT_SUCCESS)
          << "rank " << rank << ": " << message(rank);
  }

  /// Every rank fails with `code` and a message that holds all of `parts`.
  void expectFailure(fsdprtStatus code, const std::vector<std::string> &parts,
                     const Body &body) {
    std::vector<fsdprtStatus> statuses = run(body);
    for (int64_t rank = 0; rank < size(); ++rank) {
      EXPECT_EQ(statuses[rank], code) << "rank " << rank;
      for (const std::string &part : parts)
        EXPECT_NE(message(rank).find(part), std::string::npos)
            << "rank " << rank << " says '" << message(rank)
            << "', expected in it '" << part << "'";
    }
  }

private:
  std::vector<fsdprtContext *> contexts;
};

} // namespace fsdprt::test

#endif // FSDP_UNITTESTS_RUNTIME_TESTWORLD_H
