//===- Progress.h - one line on a terminal during long runs -----*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_PROGRESS_H
#define FSDP_LAUNCHER_PROGRESS_H

#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace mlir::fsdp::launch {

/// Shows what is being done on standard error, if that is a terminal and the
/// program has run for a while: short runs and log files stay clean.
class Progress {
public:
  ~Progress() { clear(); }

  void show(const std::string &text) {
    using namespace std::chrono;
    double seconds = duration<double>(steady_clock::now() - begin).count();
    if (!terminal || seconds < 2)
      return;
    std::fprintf(stderr, "\r\033[K%s (%.0f s)", text.c_str(), seconds);
    std::fflush(stderr);
    shown = true;
  }

  void clear() {
    if (shown)
      std::fputs("\r\033[K", stderr);
    shown = false;
  }

private:
  const bool terminal = isatty(STDERR_FILENO);
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  bool shown = false;
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_PROGRESS_H
