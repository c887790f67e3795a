//===- Status.h - a status code and its sentence ----------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_SUPPORT_STATUS_H
#define FSDP_LIB_RUNTIME_SUPPORT_STATUS_H

#include "fsdp/Runtime/Runtime.h"

#include <functional>
#include <string>

namespace fsdprt {

/// Success, or what the caller of the C function gets and what a person reads.
struct [[nodiscard]] Status {
  fsdprtStatus code = FSDPRT_SUCCESS;
  std::string message;

  bool failed() const { return code != FSDPRT_SUCCESS; }
};

/// What a world says that is worth a line and is no failure.
using Log = std::function<void(const std::string &)>;

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_SUPPORT_STATUS_H
