//===- Guard.h - no exception leaves the library ----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who calls a C function, compiled code or a program in another language, has
// no way to catch an exception. Our own code throws none; the C++ library does,
// where there is no memory or no thread.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_SUPPORT_GUARD_H
#define FSDP_LIB_RUNTIME_SUPPORT_GUARD_H

#include "Support/Status.h"

#include <new>
#include <stdexcept>
#include <system_error>

namespace fsdprt {

/// The status of the exception that is being handled. Itself it throws nothing:
/// where there is no memory for a sentence, it is a short one.
inline Status describeException() noexcept {
  Status status = {FSDPRT_OUT_OF_MEMORY, {}};
  try {
    try {
      throw;
    } catch (const std::system_error &error) {
      // A thread is all that we ask of the system in this way.
      status.message =
          std::string("cannot start a thread: ") + error.code().message();
    } catch (const std::bad_alloc &) {
      status.message = "out of memory in the runtime";
    } catch (const std::length_error &) {
      status.message = "out of memory in the runtime";
    } catch (const std::exception &error) {
      status = {FSDPRT_INVALID_ARGUMENT,
                std::string("unexpected: ") + error.what()};
    }
  } catch (...) {
    status.message = "out of memory"; // needs none
  }
  return status;
}

/// Calls `body`, which returns a status; what it throws becomes one.
template <typename Body>
Status guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return describeException();
  }
}

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_SUPPORT_GUARD_H
