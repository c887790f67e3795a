//===- Create.h - contexts from options -------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_CREATE_H
#define FSDP_LIB_RUNTIME_CREATE_H

#include "Context.h"

namespace fsdprt {

/// See fsdprtCreateLocal.
Status createLocal(const fsdprtOptions *options, fsdprtContext **contexts);

/// See fsdprtCreateRank.
Status createRank(const fsdprtOptions *options, fsdprtContext **context);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_CREATE_H
