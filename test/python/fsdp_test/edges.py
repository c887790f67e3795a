# Floats at the edges of types, for all that makes inputs at random.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from math import inf, nan

EDGES = [
    0.0, -0.0, nan, inf, -inf, 1.0, 1.25, -7.5, 256.0,
    # The largest f16, and what rounds to it, or to infinity.
    65504.0, 65519.996, 65520.0,
    # The largest f32, and nearly so.
    3.4e38, -3.4028235e38,
    # The smallest normal and subnormal f16 and bf16, and half of those; nothing but
    # an f64 holds the last one.
    2.0**-14, 2.0**-24, 2.0**-25, 2.0**-30, 2.0**-126, 2.0**-133, 2.0**-134, -1e-310,
    # Ties of bf16 and of f16, and beside one.
    1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-30, 1 + 2.0**-11, 1 + 3 * 2.0**-11,
]

# Lower halves of an f32 at the ties of bf16 and f16, and beside them.
TIE_HALVES = [
    0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF,
]
