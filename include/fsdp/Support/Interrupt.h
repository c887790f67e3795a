//===- Interrupt.h - programs that are told to end --------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SIGINT, SIGTERM and SIGHUP end a tool with one sentence, without an
// unfinished file, and with the exit code that shells give to such an end, 128
// and the signal's number. A thread does that, not the handler, because other
// ranks have to be told and a file may just be about to get its name.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SUPPORT_INTERRUPT_H
#define FSDP_SUPPORT_INTERRUPT_H

#include <functional>
#include <string>

namespace mlir::fsdp {

/// From now on signals end the tool `name` as above, and a limit on the size of
/// files is an error of the write that meets it. Call it after InitLLVM, which
/// has handlers of its own.
void handleInterrupts(const char *name);

/// What to do with the sentence before the program ends; false if somebody else
/// prints it. An empty function prints it.
void onInterrupt(std::function<bool(const std::string &)> action);

/// Does not return if a signal has come: what fails because of it is not worth
/// a sentence of its own. Not from `action`.
void endIfInterrupted();

/// While one exists, no interrupt ends the program; it does afterwards.
class Uninterrupted {
public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted &) = delete;
  Uninterrupted &operator=(const Uninterrupted &) = delete;
};

} // namespace mlir::fsdp

#endif // FSDP_SUPPORT_INTERRUPT_H
