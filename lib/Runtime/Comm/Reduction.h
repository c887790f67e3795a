//===- Reduction.h - sums over the members of a group -----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of reduce_scatter and all_reduce, to the bit, for every
// communicator that adds on the host:
//
//   t_i = x_i, or RNE(x_i * m) if there is a multiplier m
//   acc = t_0; for i = 1 .. size-1: acc = RNE(acc + t_i)
//
// where x_i is the value of member i and RNE rounds to the dtype, to nearest,
// ties to even. With `wide`, f16 and bf16 add in f32 and round once at the end.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_COMM_REDUCTION_H
#define FSDP_LIB_RUNTIME_COMM_REDUCTION_H

#include "fsdp/Runtime/Runtime.h"

namespace fsdprt {

struct Reduction {
  fsdprtDtype dtype;
  bool multiply;
  double multiplier; ///< already a value of the dtype; read if `multiply`
  bool wide;
};

/// Bytes per element.
int64_t sizeOf(fsdprtDtype dtype);

/// `value` rounded once to `dtype`, which is a floating-point one.
double roundTo(fsdprtDtype dtype, double value);

/// Writes `value`, rounded once to `dtype`, as an element of it.
void store(fsdprtDtype dtype, double value, void *element);

/// Writes to `result` the reduction over `members` rows of `count` elements.
/// `result` may be one of the rows.
void reduceRows(const Reduction &reduction, const void *const *rows,
                int64_t members, int64_t count, void *result);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_COMM_REDUCTION_H
