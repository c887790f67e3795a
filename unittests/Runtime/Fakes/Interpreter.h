//===- Interpreter.h - kernels of PTX, run on the host ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake GPU knows no instructions; test/ptx does. If FSDP_FAKE_INTERPRETER
// is a command that starts its server, kernels run there: each launch sends the
// buffers that it has addresses of and gets them back.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_UNITTESTS_RUNTIME_FAKES_INTERPRETER_H
#define FSDP_UNITTESTS_RUNTIME_FAKES_INTERPRETER_H

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fsdprt::fake {

struct InterpretedLaunch {
  std::shared_ptr<const std::string> ptx;
  std::string kernel;
  uint64_t blocksX = 0, blocksY = 0, threads = 0;
  std::vector<uint64_t> parameters; ///< all of them are addresses
};

class Interpreter {
public:
  /// The process' one, nullptr if there is to be none.
  static Interpreter *get();

  /// `buffers`: what is allocated, sizes by address. Returns what is wrong with
  /// the launch, "" if nothing is.
  std::string run(const InterpretedLaunch &launch,
                  const std::map<uint64_t, size_t> &buffers);

private:
  explicit Interpreter(const char *command);
  bool send(const void *data, size_t bytes);
  bool receive(void *data, size_t bytes);

  int socket = -1;
  std::set<const void *> sent; ///< modules that the server knows
};

} // namespace fsdprt::fake

#endif // FSDP_UNITTESTS_RUNTIME_FAKES_INTERPRETER_H
