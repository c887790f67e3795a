# Functions of `math` that are made of others.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import numpy as np

from .suite import Suite, dtype, dtypes

suite = Suite()
VALUES = [1, 0.25, 3, 1.0078125, 7.5, 0.015625]


def rounded(t, values):
    """To the dtype, as numbers of the one that they were computed in."""
    t = dtype(t)
    return dtypes.widen(dtypes.narrow(values, t), t).astype(values.dtype)


for t in ("f16", "bf16", "f32", "f64"):
    x = np.array(VALUES, np.float64 if t == "f64" else np.float32)
    rsqrt = rounded(t, x.dtype.type(1) / rounded(t, np.sqrt(x)))
    cube = rounded(t, rounded(t, x * x) * x)
    suite.run(
        f"math_{t}", 1,
        f"""
shard.grid @dp(shape = 1)
func.func @f(%x: tensor<6x{t}>, %y: tensor<6x{t}>)
    -> (tensor<6x{t}>, tensor<6x{t}>) {{
  %three = arith.constant 3 : i64
  %r = math.rsqrt %x : tensor<6x{t}>
  %c = linalg.map ins(%x : tensor<6x{t}>) outs(%y : tensor<6x{t}>)
    (%a: {t}, %b: {t}) {{
      %cube = math.fpowi %a, %three : {t}, i64
      linalg.yield %cube : {t}
    }}
  return %r, %c : tensor<6x{t}>, tensor<6x{t}>
}}
""",
        lambda rank: {"arg0": (t, VALUES), "arg1": (t, [0.5] * 6)},
        lambda rank: {
            "result0": (t, rsqrt), "result1": (t, cube),
        },
    )
# An exponent that is not a constant.
suite.run(
    "powers", 1,
    """
shard.grid @dp(shape = 1)
func.func @f(%x: tensor<6xf32>, %n: tensor<6xi64>) -> (tensor<6xf32>, tensor<6xi64>) {
  %p = math.fpowi %x, %n : tensor<6xf32>, tensor<6xi64>
  %z = math.ctlz %n : tensor<6xi64>
  return %p, %z : tensor<6xf32>, tensor<6xi64>
}
""",
    lambda rank: {
        "arg0": ("f32", [4, -2, 4, 1, 0.25, 16]), "arg1": ("i64", [3, 3, 0, 7, 4, 1]),
    },
    lambda rank: {
        "result0": ("f32", [64, -8, 1, 1, 0.00390625, 16]),
        "result1": ("i64", [62, 62, 64, 61, 61, 63]),
    },
)
suite.finish()
