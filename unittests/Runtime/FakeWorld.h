//===- FakeWorld.h - a world of fake GPUs for one test ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_FAKEWORLD_H
#define FSDP_UNITTESTS_RUNTIME_FAKEWORLD_H

#include "Fakes/Fake.h"
#include "TestWorld.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <unistd.h>

namespace fsdprt::test {

/// The fake, which the runtime loads instead of the drivers.
inline fake::Control &fakes() {
  static fake::Control *control = [] {
    setenv("FSDPRT_LIBCUDA", FSDP_FAKE_LIBRARY, 1);
    setenv("FSDPRT_LIBNCCL", FSDP_FAKE_LIBRARY, 1);
    setenv("NVTX_INJECTION64_PATH", FSDP_FAKE_LIBRARY, 1);
    void *library = dlopen(FSDP_FAKE_LIBRARY, RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    return reinterpret_cast<decltype(&fsdpFakeControl)>(
        dlsym(library, "fsdpFakeControl"))();
  }();
  return *control;
}

/// Ranks that believe to be processes with a GPU each; they are threads. A test
/// creates the world and says what each rank does.
class FakeWorld {
public:
  using Body = std::function<fsdprtStatus(fsdprtContext *, int64_t rank)>;

  explicit FakeWorld(std::vector<int64_t> shape) : shape(std::move(shape)) {
    fakes().reset();
    contexts.resize(size());
    numbers.resize(size());
    static std::atomic<int> worlds{0};
    rendezvous = "file:" + (std::filesystem::temp_directory_path() /
                            ("fsdpworld-" + std::to_string(getpid()) + "-" +
                             std::to_string(worlds++)))
                               .string();
  }

  ~FakeWorld() {
    destroy();
    // Whatever happened, nothing is left; but for messages after a failure.
    EXPECT_EQ(fakes().alive(), "");
    std::filesystem::path path = rendezvous.substr(5);
    for (const auto &entry :
         std::filesystem::directory_iterator(path.parent_path()))
      if (entry.path().filename().string().rfind(path.filename().string() + ".",
                                                 0) == 0)
        std::filesystem::remove(entry.path());
  }

  double timeoutSeconds = 60;

  int64_t size() const {
    int64_t ranks = 1;
    for (int64_t extent : shape)
      ranks *= extent;
    return ranks;
  }

  /// Creates and starts every rank, one after another in numbers of streams.
  std::vector<fsdprtStatus> start() {
    for (int64_t rank = 0; rank < size(); ++rank)
      create(rank);
    return run([](fsdprtContext *context, int64_t) {
      return fsdprtStart(context, "plan");
    });
  }

  void expectStart() {
    std::vector<fsdprtStatus> statuses = start();
    for (int64_t rank = 0; rank < size(); ++rank)
      ASSERT_EQ(statuses[rank], FSDPRT_SUCCESS) << message(rank);
  }

  std::vector<fsdprtStatus> run(const Body &body) {
    std::vector<fsdprtStatus> statuses(size());
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

  void destroy() {
    end([](fsdprtContext *, int64_t) {});
  }

  /// Ends every rank after `last`, each on a thread of its own: orderly ends
  /// are meetings too.
  void end(const std::function<void(fsdprtContext *, int64_t rank)> &last) {
    run([&](fsdprtContext *context, int64_t rank) {
      if (context)
        last(context, rank);
      fsdprtDestroy(context);
      return fsdprtStatus(FSDPRT_SUCCESS);
    });
    contexts.assign(contexts.size(), nullptr);
  }

  fsdprtContext *operator[](int64_t rank) { return contexts[rank]; }
  std::string message(int64_t rank) { return fsdprtMessage(contexts[rank]); }
  std::string record(int64_t rank) { return fakes().record(numbers[rank]); }

  /// Lines of the log, in any order of ranks.
  std::vector<std::string> log() {
    std::lock_guard<std::mutex> lock(mutex);
    return lines;
  }

private:
  void create(int64_t rank) {
    fsdprtOptions options = {};
    options.gridShape = shape.data();
    options.gridAxes = static_cast<int32_t>(shape.size());
    options.timeoutSeconds = timeoutSeconds;
    options.device = "cuda";
    options.communicator = "nccl";
    options.hasRank = 1;
    options.rank = options.localRank = rank;
    options.rendezvous = rendezvous.c_str();
    options.logUser = this;
    options.log = [](void *user, const char *line) {
      auto *world = static_cast<FakeWorld *>(user);
      std::lock_guard<std::mutex> lock(world->mutex);
      world->lines.push_back(line);
    };
    numbers[rank] = static_cast<int>(rank);
    char text[1000] = "";
    EXPECT_EQ(fsdprtCreateRank(&options, &contexts[rank], text, sizeof(text)),
              FSDPRT_SUCCESS)
        << text;
  }

  const std::vector<int64_t> shape;
  std::string rendezvous;
  std::vector<fsdprtContext *> contexts;
  std::vector<int> numbers; ///< of the ranks' streams
  std::mutex mutex;
  std::vector<std::string> lines;
};

/// Buffer of a context, filled with the values.
inline float *upload(fsdprtContext *context, const std::vector<float> &values) {
  void *data = nullptr;
  EXPECT_EQ(fsdprtAlloc(context, values.size() * sizeof(float), &data),
            FSDPRT_SUCCESS)
      << fsdprtMessage(context);
  EXPECT_EQ(
      fsdprtCopyIn(context, data, values.data(), values.size() * sizeof(float)),
      FSDPRT_SUCCESS)
      << fsdprtMessage(context);
  return static_cast<float *>(data);
}

inline std::vector<float> download(fsdprtContext *context, const void *data,
                                   int64_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(fsdprtCopyOut(context, values.data(), data, count * sizeof(float)),
            FSDPRT_SUCCESS)
      << fsdprtMessage(context);
  return values;
}

} // namespace fsdprt::test

#endif // FSDP_UNITTESTS_RUNTIME_FAKEWORLD_H
