//===- Interrupt.cpp - programs that are told to end ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/Interrupt.h"

#include "llvm/Support/Signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

using namespace mlir::fsdp;

/// The handler writes the number of the signal, the thread reads it.
static int channel[2] = {-1, -1};
static std::atomic<int> received{0};

/// What nohup has arranged, before LLVM has its own way.
static const bool hangupIgnored = [] {
  struct sigaction before;
  return sigaction(SIGHUP, nullptr, &before) == 0 &&
         before.sa_handler == SIG_IGN;
}();

/// Objects that outlive main(): a signal may come at any time.
static std::mutex &endMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}
static std::function<bool(const std::string &)> &endAction() {
  static auto *action = new std::function<bool(const std::string &)>;
  return *action;
}
static std::mutex &actionMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

static void handle(int signal) {
  int savedErrno = errno;
  unsigned char number = signal;
  // Who asks twice does not want to wait for other ranks, and without a thread
  // there is nobody to wait for.
  if (received.fetch_add(1) > 0 || write(channel[1], &number, 1) != 1) {
    llvm::sys::RunInterruptHandlers();
    _exit(128 + signal);
  }
  errno = savedErrno;
}

[[noreturn]] static void end(const std::string &tool, int signal) {
  const char *name = signal == SIGINT    ? "SIGINT"
                     : signal == SIGTERM ? "SIGTERM"
                                         : "SIGHUP";
  std::string sentence = std::string("interrupted by ") + name;
  bool print = true;
  {
    std::lock_guard<std::mutex> lock(actionMutex());
    if (endAction())
      print = endAction()(sentence);
  }
  // Never unlocked: nothing gets a name any more.
  endMutex().lock();
  llvm::sys::RunInterruptHandlers();
  if (print) {
    // A progress line may be there.
    std::string line = isatty(STDERR_FILENO) ? "\r\033[K" : "";
    line += tool + ": error: " + sentence + "\n";
    (void)!write(STDERR_FILENO, line.data(), line.size());
  }
  _exit(128 + signal);
}

void mlir::fsdp::handleInterrupts(const char *name) {
  signal(SIGXFSZ, SIG_IGN); // then write says EFBIG
  if (pipe2(channel, O_CLOEXEC) != 0)
    return; // then LLVM's handlers stay
  auto wait = [](void *tool) -> void * {
    unsigned char number;
    while (read(channel[0], &number, 1) != 1)
      ;
    end(static_cast<const char *>(tool), number);
  };
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait, const_cast<char *>(name)) == 0) {
    pthread_detach(thread);
  } else {
    close(channel[1]);
    channel[1] = -1;
  }
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (hangupIgnored)
    action.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &action, nullptr);
}

void mlir::fsdp::onInterrupt(std::function<bool(const std::string &)> action) {
  std::lock_guard<std::mutex> lock(actionMutex());
  endAction() = std::move(action);
}

void mlir::fsdp::endIfInterrupted() {
  while (received != 0)
    pause();
}

Uninterrupted::Uninterrupted() { endMutex().lock(); }
Uninterrupted::~Uninterrupted() { endMutex().unlock(); }
