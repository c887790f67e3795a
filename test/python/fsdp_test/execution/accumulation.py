# Where gradients are added, and in which dtype: before the reduction, between the
# two collectives of hybrid sharding, and into existing shards.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from .suite import Suite

suite = Suite()

# Microbatches without communication are the program's own additions, in the dtype
# that it chooses: 256 + 1 is 256 in bf16, and 257 if it is widened first.
suite.run(
    "before_the_reduction", 2,
    """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @a : tensor<2xf32>
  fsdp.param @b : tensor<2xf32>
}
func.func @f(%a0: tensor<2xbf16>, %a1: tensor<2xbf16>)
    -> (tensor<1xf32> {fsdp.shard_grad = @u::@a}, tensor<1xf32> {fsdp.shard_grad = @u::@b}) {
  %narrow = arith.addf %a0, %a1 : tensor<2xbf16>
  %w0 = arith.extf %a0 : tensor<2xbf16> to tensor<2xf32>
  %w1 = arith.extf %a1 : tensor<2xbf16> to tensor<2xf32>
  %wide = arith.addf %w0, %w1 : tensor<2xf32>
  %s:2 = fsdp.reduce_grads @u[@a, @b](%narrow, %wide) : (tensor<2xbf16>, tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  return %s#0, %s#1 : tensor<1xf32>, tensor<1xf32>
}
""",
    lambda rank: {"arg0": ("bf16", [256, 256]), "arg1": ("bf16", [1, 1])},
    lambda rank: {"a.grad": ("f32", [256]), "b.grad": ("f32", [257])},
)

# `split add`: divided, cast to the grad dtype, added: three roundings at most. The
# sum is 2.0078125, its half 1.00390625, which is 1 in bf16; 256 + 1 is 256.
suite.run(
    "into_shards", 2,
    """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32, grad = f32> {
  fsdp.param @a : tensor<2xf32> precision <param = bf16, reduce = f32, grad = bf16>
  fsdp.param @b : tensor<2xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @ra reduce @u[@a] : f32 align 1 group 0
fsdp.bucket @rb reduce @u[@b] : f32 align 1 group 0
func.func @f(%g: tensor<2xf32>,
             %olda: tensor<1xbf16> {fsdp.shard_grad = @u::@a}, %oldb: tensor<1xf32> {fsdp.shard_grad = @u::@b})
    -> (tensor<1xbf16> {fsdp.shard_grad = @u::@a}, tensor<1xf32> {fsdp.shard_grad = @u::@b}) {
  %pa = fsdp.chunk_cat %g into @ra : (tensor<2xf32>) -> tensor<2x1xf32>
  %sa = fsdp.reduce_scatter sum %pa of @ra : (tensor<2x1xf32>) -> tensor<1xf32>
  %a = fsdp.split %sa of @ra divide 2.0 add(%olda : tensor<1xbf16>) : (tensor<1xf32>) -> tensor<1xbf16>
  %pb = fsdp.chunk_cat %g into @rb : (tensor<2xf32>) -> tensor<2x1xf32>
  %sb = fsdp.reduce_scatter sum %pb of @rb : (tensor<2x1xf32>) -> tensor<1xf32>
  %b = fsdp.split %sb of @rb divide 2.0 add(%oldb : tensor<1xf32>) : (tensor<1xf32>) -> tensor<1xf32>
  return %a, %b : tensor<1xbf16>, tensor<1xf32>
}
""",
    lambda rank: {
        "arg0": ("f32", [1, 1] if rank else [1.0078125, 1.0078125]),
        "a.grad": ("bf16", [256]), "b.grad": ("f32", [256]),
    },
    lambda rank: {"a.grad": ("bf16", [256]), "b.grad": ("f32", [257.00390625])},
)

# Partial sums: a step without all-reduce keeps flat shards, one per bucket, each in
# its wire dtype, and the next step adds them before its all-reduce. On a 2x2 grid
# (1, 2, 3, 4) and then (10, 20, 30, 40) by rank are 27.5 everywhere.
STEPS = """
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @a : tensor<2xf32> precision <param = f32, reduce = f32, grad = f32>
  fsdp.param @b : tensor<4xf32> precision <param = bf16, reduce = bf16, grad = f32>
}
fsdp.bucket @ra reduce @u[@a] : f32 align 1 group 0
fsdp.bucket @rb reduce @u[@b] : bf16 align 1 group 0
func.func @first(%ga: tensor<2xf32> {fsdp.full_grad = @u::@a}, %gb: tensor<4xbf16> {fsdp.full_grad = @u::@b})
    -> (tensor<1xf32>, tensor<2xbf16>) {
  %pa = fsdp.chunk_cat %ga into @ra : (tensor<2xf32>) -> tensor<2x1xf32>
  %sa = fsdp.reduce_scatter avg %pa of @ra : (tensor<2x1xf32>) -> tensor<1xf32>
  %pb = fsdp.chunk_cat %gb into @rb : (tensor<4xbf16>) -> tensor<2x2xbf16>
  %sb = fsdp.reduce_scatter avg %pb of @rb : (tensor<2x2xbf16>) -> tensor<2xbf16>
  return %sa, %sb : tensor<1xf32>, tensor<2xbf16>
}
func.func @second(%ga: tensor<2xf32> {fsdp.full_grad = @u::@a}, %gb: tensor<4xbf16> {fsdp.full_grad = @u::@b},
                  %parta: tensor<1xf32>, %partb: tensor<2xbf16>)
    -> (tensor<1xf32> {fsdp.shard_grad = @u::@a}, tensor<2xf32> {fsdp.shard_grad = @u::@b}) {
  %pa = fsdp.chunk_cat %ga into @ra : (tensor<2xf32>) -> tensor<2x1xf32>
  %sa = fsdp.reduce_scatter avg %pa of @ra : (tensor<2x1xf32>) -> tensor<1xf32>
  %suma = arith.addf %parta, %sa : tensor<1xf32>
  %la = fsdp.all_reduce avg %suma of @ra : (tensor<1xf32>) -> tensor<1xf32>
  %a = fsdp.split %la of @ra : (tensor<1xf32>) -> tensor<1xf32>
  %pb = fsdp.chunk_cat %gb into @rb : (tensor<4xbf16>) -> tensor<2x2xbf16>
  %sb = fsdp.reduce_scatter avg %pb of @rb : (tensor<2x2xbf16>) -> tensor<2xbf16>
  %sumb = arith.addf %partb, %sb : tensor<2xbf16>
  %lb = fsdp.all_reduce avg %sumb of @rb : (tensor<2xbf16>) -> tensor<2xbf16>
  %n = fsdp.split %lb of @rb : (tensor<2xbf16>) -> tensor<2xbf16>
  %b = arith.extf %n : tensor<2xbf16> to tensor<2xf32>
  return %a, %b : tensor<1xf32>, tensor<2xf32>
}
// What a program must not do: the parts of the other replicas are lost.
func.func @too_late(%ga: tensor<2xf32> {fsdp.full_grad = @u::@a}, %parta: tensor<1xf32>)
    -> (tensor<1xf32> {fsdp.shard_grad = @u::@a}) {
  %pa = fsdp.chunk_cat %ga into @ra : (tensor<2xf32>) -> tensor<2x1xf32>
  %sa = fsdp.reduce_scatter avg %pa of @ra : (tensor<2x1xf32>) -> tensor<1xf32>
  %la = fsdp.all_reduce avg %sa of @ra : (tensor<1xf32>) -> tensor<1xf32>
  %suma = arith.addf %la, %parta : tensor<1xf32>
  %a = fsdp.split %suma of @ra : (tensor<1xf32>) -> tensor<1xf32>
  return %a : tensor<1xf32>
}
"""


def gradients(rank, factor):
    value = factor * (rank + 1)
    return {"a.grad": ("f32", [value] * 2), "b.grad": ("bf16", [value] * 4)}


partial = (1.5, 3.5)  # of row 0 and of row 1
kept = suite.run(
    "first", 4, STEPS, lambda rank: gradients(rank, 1),
    lambda rank: {
        "result0": ("f32", [partial[rank // 2]]),
        "result1": ("bf16", [partial[rank // 2]] * 2),
    },
    entry="first",
)
suite.run(
    "second", 4, STEPS,
    lambda rank: {
        **gradients(rank, 10),
        "arg2": kept[rank]["result0"], "arg3": kept[rank]["result1"],
    },
    lambda rank: {"a.grad": ("f32", [27.5]), "b.grad": ("f32", [27.5] * 2)},
    entry="second",
)
suite.run(
    "too_late", 4, STEPS,
    lambda rank: {
        "a.grad": gradients(rank, 10)["a.grad"], "arg1": kept[rank]["result0"],
    },
    lambda rank: {"a.grad": ("f32", [25 + partial[rank // 2]])},
    entry="too_late",
)

# A tied parameter: gathered once, used twice; the program adds the gradients of
# both uses.
suite.run(
    "tied", 3,
    """
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @embedding : tensor<4xf32>
}
func.func @f(%s: tensor<2xf32> {fsdp.shard = @u::@embedding}, %first: tensor<4xbf16>, %second: tensor<4xbf16>)
    -> (tensor<4xbf16> {fsdp.full = @u::@embedding}, tensor<4xbf16>, tensor<2xf32> {fsdp.shard_grad = @u::@embedding}) {
  %w = fsdp.unshard @u(%s) : (tensor<2xf32>) -> tensor<4xbf16>
  %twice = arith.addf %w, %w : tensor<4xbf16>
  %both = arith.addf %first, %second : tensor<4xbf16>
  %g = fsdp.reduce_grads @u[@embedding](%both) : (tensor<4xbf16>) -> tensor<2xf32>
  return %w, %twice, %g : tensor<4xbf16>, tensor<4xbf16>, tensor<2xf32>
}
""",
    lambda rank: {
        "embedding": ("f32", ([1, 2], [3, 4], [0, 0])[rank]),
        "arg1": ("bf16", [rank, 0, 0, rank]), "arg2": ("bf16", [8, 8, 16, 16]),
    },
    lambda rank: {
        "embedding": ("bf16", [1, 2, 3, 4]), "result1": ("bf16", [2, 4, 6, 8]),
        "embedding.grad": ("f32", ([9, 8], [16, 17], [0, 0])[rank]),
    },
)

suite.finish()
