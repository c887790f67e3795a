//===- GatherInPlace.h - may this gather work in place -*- C++ -*- --------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The question that fsdp-gather-in-place acts on and that fsdp-verify-stage
// asks again at stage buffered.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_TRANSFORMS_GATHERINPLACE_H
#define FSDP_LIB_TRANSFORMS_GATHERINPLACE_H

#include "fsdp/Dialect/Fsdp.h"

#include <string>

namespace mlir::fsdp {

/// Why the flat shard of `gather`, in buffer form, cannot be packed straight
/// into the gather's own row; empty if it can, and is not yet.
std::string whyNotInPlace(AllGatherOp gather);

} // namespace mlir::fsdp

#endif // FSDP_LIB_TRANSFORMS_GATHERINPLACE_H
