//===- Threads.h - threads, which may not be had ----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// std::thread throws where the system gives no thread, and this program is
// built without exceptions, as LLVM is.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_LAUNCHER_THREADS_H
#define FSDP_LIB_LAUNCHER_THREADS_H

#include <functional>
#include <memory>
#include <pthread.h>
#include <system_error>
#include <vector>

namespace mlir::fsdp::launch {

class Threads {
public:
  Threads() = default;
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;
  ~Threads() { join(); }

  /// Runs `body` on a thread of its own, or says why there is none.
  std::error_code start(std::function<void()> body) {
    auto owned = std::make_unique<std::function<void()>>(std::move(body));
    pthread_t thread;
    if (int code = pthread_create(
            &thread, nullptr,
            [](void *argument) -> void * {
              std::unique_ptr<std::function<void()>> body(
                  static_cast<std::function<void()> *>(argument));
              (*body)();
              return nullptr;
            },
            owned.get()))
      return std::error_code(code, std::generic_category());
    (void)owned.release(); // the thread's
    threads.push_back(thread);
    return {};
  }

  size_t size() const { return threads.size(); }

  void join() {
    for (pthread_t thread : threads)
      pthread_join(thread, nullptr);
    threads.clear();
  }

  /// Lets them run on, for a process that ends without them.
  void detach() {
    for (pthread_t thread : threads)
      pthread_detach(thread);
    threads.clear();
  }

private:
  std::vector<pthread_t> threads;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LIB_LAUNCHER_THREADS_H
