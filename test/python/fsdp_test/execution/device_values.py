# Values that are no result of our ops, where our ops read them: constants, zeros,
# arguments; and results that are returned more than once.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from .suite import Suite

suite = Suite()

# A parameter that this rank has no gradient for, as a tensor of zeros; beside it one
# whose gradient is a constant with elements that differ.
UNIT = """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @w : tensor<8xf32>
  fsdp.param @unused : tensor<6xf32>
  fsdp.param @fixed : tensor<4xf32>
}
"""
GRADIENT = {"w.grad": ("bf16", [1, 2, 3, 4, 5, 6, 7, 8])}
suite.run(
    "constants", 2,
    UNIT + """
func.func @f(%g: tensor<8xbf16> {fsdp.full_grad = @u::@w})
    -> (tensor<4xf32> {fsdp.shard_grad = @u::@w}, tensor<3xf32> {fsdp.shard_grad = @u::@unused},
        tensor<2xf32> {fsdp.shard_grad = @u::@fixed}, tensor<4xf32>) {
  %z = arith.constant dense<0.0> : tensor<6xbf16>
  %c = arith.constant dense<[0.5, 1.0, -2.0, 4.0]> : tensor<4xf32>
  %s:3 = fsdp.reduce_grads @u[@w, @unused, @fixed](%g, %z, %c) : (tensor<8xbf16>, tensor<6xbf16>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<2xf32>)
  %sum = arith.addf %s#0, %c : tensor<4xf32>
  return %s#0, %s#1, %s#2, %sum : tensor<4xf32>, tensor<3xf32>, tensor<2xf32>, tensor<4xf32>
}
""",
    lambda rank: GRADIENT,
    lambda rank: {
        "w.grad": ("f32", [5, 6, 7, 8] if rank else [1, 2, 3, 4]),
        "unused.grad": ("f32", [0, 0, 0]),
        "fixed.grad": ("f32", [-2, 4] if rank else [0.5, 1]),
        "result3": ("f32", [5.5, 7, 5, 12] if rank else [1.5, 3, 1, 8]),
    },
)

# The same, asked for by an option.
suite.run(
    "unused", 2,
    UNIT + """
func.func @f(%g: tensor<8xbf16> {fsdp.full_grad = @u::@w}) -> (tensor<4xf32> {fsdp.shard_grad = @u::@w}) {
  %s = fsdp.reduce_grads @u[@w](%g) : (tensor<8xbf16>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
""",
    lambda rank: GRADIENT,
    lambda rank: {"w.grad": ("f32", [5, 6, 7, 8] if rank else [1, 2, 3, 4])},
    optimize="unused=zero",
)

# The plain loop: every microbatch is reduced, and added to the shard that exists.
suite.run(
    "accumulate", 2,
    """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @w : tensor<5x3xf32>
}
func.func @f(%g: tensor<5x3xbf16> {fsdp.full_grad = @u::@w}, %old: tensor<3x3xf32> {fsdp.shard_grad = @u::@w})
    -> (tensor<3x3xf32> {fsdp.shard_grad = @u::@w}) {
  %r = fsdp.reduce_grads @u[@w](%g) : (tensor<5x3xbf16>) -> tensor<3x3xf32>
  %n = arith.addf %old, %r : tensor<3x3xf32>
  return %n : tensor<3x3xf32>
}
""".replace("%g: tensor<5x3xbf16> {fsdp.full_grad = @u::@w}", "%g: tensor<5x3xbf16>"),
    lambda rank: {
        "arg0": ("bf16", [[3 * i + j + rank for j in range(3)] for i in range(5)]),
        "w.grad": ("f32", [[100.0] * 3] * 3),
    },
    lambda rank: {
        "w.grad": ("f32", [
            [100.5 + 3 * i + j if i < 5 else 100 for j in range(3)]
            for i in range(3 * rank, 3 * rank + 3)
        ]),
    },
)

# A tied embedding is handed to the model twice, and the shard beside it as it is.
suite.run(
    "twice", 2,
    """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16> { fsdp.param @embedding : tensor<8x4xf32> }
func.func @f(%w: tensor<4x4xf32> {fsdp.shard = @u::@embedding})
    -> (tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2xf64>, tensor<2xi32>) {
  %f = fsdp.unshard @u(%w) : (tensor<4x4xf32>) -> tensor<8x4xbf16>
  %c = arith.constant dense<1.5> : tensor<2xf64>
  %d = arith.constant dense<[7, -1]> : tensor<2xi32>
  return %f, %f, %w, %w, %c, %d : tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2xf64>, tensor<2xi32>
}
""",
    lambda rank: {"embedding": ("f32", [[16 * rank + 4 * i + j for j in range(4)] for i in range(4)])},
    lambda rank: {
        "result0": ("bf16", [[4 * i + j for j in range(4)] for i in range(8)]),
        "result1": ("bf16", [[4 * i + j for j in range(4)] for i in range(8)]),
        "result2": ("f32", [[16 * rank + 4 * i + j for j in range(4)] for i in range(4)]),
        "result3": ("f32", [[16 * rank + 4 * i + j for j in range(4)] for i in range(4)]),
        "result4": ("f64", [1.5, 1.5]), "result5": ("i32", [7, -1]),
    },
)

# A branch and a loop that the host decides, tensors on the device.
suite.run(
    "control_flow", 2,
    """
shard.grid @dp(shape = 2)
func.func private @rank() -> index {
  %r = shard.process_linear_index on @dp : index
  return %r : index
}
func.func @f(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %r = func.call @rank() : () -> index
  %is = arith.cmpi eq, %r, %zero : index
  %b = scf.if %is -> tensor<3xf32> {
    scf.yield %a : tensor<3xf32>
  } else {
    %n = arith.negf %a : tensor<3xf32>
    scf.yield %n : tensor<3xf32>
  }
  %z = arith.constant dense<0.0> : tensor<3xf32>
  %s = scf.for %i = %zero to %four step %one iter_args(%x = %z) -> tensor<3xf32> {
    %y = arith.addf %x, %b : tensor<3xf32>
    scf.yield %y : tensor<3xf32>
  }
  %c = arith.select %is, %s, %a : tensor<3xf32>
  return %s, %c : tensor<3xf32>, tensor<3xf32>
}
""",
    lambda rank: {"arg0": ("f32", [1, 2, 3])},
    lambda rank: {
        "result0": ("f32", [-4, -8, -12] if rank else [4, 8, 12]),
        "result1": ("f32", [1, 2, 3] if rank else [4, 8, 12]),
    },
)

# Rows of a matrix in one branch, a dense tensor in the other: where elements lie is
# known when it runs.
suite.run(
    "strides", 2,
    """
shard.grid @dp(shape = 2)
func.func @f(%a: tensor<3x2xf32>, %b: tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %zero = arith.constant 0 : index
  %r = shard.process_linear_index on @dp : index
  %is = arith.cmpi eq, %r, %zero : index
  %c = scf.if %is -> tensor<3x2xf32> {
    scf.yield %a : tensor<3x2xf32>
  } else {
    %s = tensor.extract_slice %b[0, 1] [3, 2] [1, 2] : tensor<3x5xf32> to tensor<3x2xf32>
    scf.yield %s : tensor<3x2xf32>
  }
  %n = arith.addf %c, %a : tensor<3x2xf32>
  return %n, %c : tensor<3x2xf32>, tensor<3x2xf32>
}
""",
    lambda rank: {
        "arg0": ("f32", [[1, 2], [3, 4], [5, 6]]),
        "arg1": ("f32", [[10 * i + j for j in range(5)] for i in range(3)]),
    },
    lambda rank: {
        "result0": ("f32", [[2, 5], [14, 17], [26, 29]] if rank else [[2, 4], [6, 8], [10, 12]]),
        "result1": ("f32", [[1, 3], [11, 13], [21, 23]] if rank else [[1, 2], [3, 4], [5, 6]]),
    },
)

# Numbers that the caller passes.
suite.run(
    "numbers", 1,
    """
shard.grid @dp(shape = 1)
func.func @f(%a: tensor<3xf32>, %s: f32, %h: bf16, %n: i8) -> (tensor<3xf32>, tensor<2xbf16>, tensor<2xi8>) {
  %x = tensor.splat %s : tensor<3xf32>
  %r = arith.mulf %a, %x : tensor<3xf32>
  %y = tensor.splat %h : tensor<2xbf16>
  %z = tensor.splat %n : tensor<2xi8>
  return %r, %y, %z : tensor<3xf32>, tensor<2xbf16>, tensor<2xi8>
}
""",
    lambda rank: {
        "arg0": ("f32", [1, 2, 3]), "arg1": ("f32", 2.5), "arg2": ("bf16", -3),
        "arg3": ("i8", -7),
    },
    lambda rank: {
        "result0": ("f32", [2.5, 5, 7.5]), "result1": ("bf16", [-3, -3]),
        "result2": ("i8", [-7, -7]),
    },
)

suite.finish()
