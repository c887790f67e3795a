# What a unit's ranks, parameters and gradients may be: one axis of a larger grid,
# fewer elements than ranks, everything frozen, gradients that are absent; and the
# rows of a packed bucket, element by element.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from math import ceil

from fsdp_test.ir import (
    Value, bucket_text, function, grid_text, module, op, step, tensor_type, unit_text,
)

from .suite import Suite

suite = Suite()


def unit_of(name, shapes, **others):
    params = [{"name": n, "shape": s, "storage": "f32"} for n, s in shapes.items()]
    return {"name": name, "params": params, **others}


def f32(param):
    return "f32"


def whole_step(grid, *units):
    """A module that gathers and reduces all of every unit."""
    args, results, body = [], [], []
    for u, unit in enumerate(units):
        params = unit["params"]
        shards = step.shards(f"s{u}_", grid, unit, params, f32)
        full = step.full("", unit, params, f32)
        body.append(step.unshard(f"w{u}", unit, shards, full))
        grads = step.full(f"g{u}_", unit, params, f32, "full_grad")
        sums = step.shards("", grid, unit, params, f32, "shard_grad")
        body.append(step.reduce_grads(f"r{u}", unit, params, grads, sums))
        args += shards + grads
        results += full + sums
    entry = function("f", args, results, body)
    return module([grid_text(grid), *(unit_text(grid, u) for u in units), entry])


def one_axis(rows, columns):
    """A unit per axis. The other one is foreign: each of its coordinates has
    parameters and sums of its own. Five elements, on both axes uneven."""
    chunks = (ceil(5 / rows), ceil(5 / columns))
    text = whole_step({"shape": [rows, columns]}, *(
        unit_of(name, {f"{name}.w": (5,)}, shard_axes=[axis])
        for axis, name in enumerate(("column", "row"))
    ))

    def place(rank, axis):
        """(number of the group, place in it, its size)."""
        i, j = divmod(rank, columns)
        return (i, j, columns) if axis else (j, i, rows)

    def cut(values, rank, axis):
        _, at, _ = place(rank, axis)
        chunk = chunks[axis]
        part = values[at * chunk : (at + 1) * chunk]
        return part + [0] * (chunk - len(part))

    def full(rank, axis):
        group, _, _ = place(rank, axis)
        return [10 * group + k + 1 for k in range(5)]

    def gradient(group, at):
        return [(group + 1) * (at + 1) * (k + 1) for k in range(5)]

    def mean(rank, axis):
        group, _, size = place(rank, axis)
        sums = [sum(gradient(group, at)[k] for at in range(size)) for k in range(5)]
        return cut([x / size for x in sums], rank, axis)

    def inputs(rank):
        found = {}
        for axis, name in enumerate(("column", "row")):
            group, at, _ = place(rank, axis)
            found[f"{name}.w"] = ("f32", cut(full(rank, axis), rank, axis))
            found[f"{name}.w.grad"] = ("f32", gradient(group, at))
        return found

    def expected(rank):
        found = {}
        for axis, name in enumerate(("column", "row")):
            found[f"{name}.w"] = ("f32", full(rank, axis))
            found[f"{name}.w.grad"] = ("f32", mean(rank, axis))
        return found

    suite.run(f"axes_of_{rows}x{columns}", rows * columns, text, inputs, expected)


one_axis(2, 2)
one_axis(2, 4)

# Fewer elements than ranks: the last ranks hold padding alone. A parameter without
# elements takes no part, and is there.
SMALL = {"one": (1,), "three": (3, 2), "none": (0, 2), "five": (5,)}


def small(ranks):
    shards = {n: (ceil(s[0] / ranks), *s[1:]) for n, s in SMALL.items()}
    text = whole_step({"shape": [ranks]}, unit_of("u", SMALL, reduction="sum"))

    def values(shape, factor=1):
        """Row k holds (k + 1) * factor."""
        if len(shape) == 1:
            return [(k + 1) * factor for k in range(shape[0])]
        return [[(k + 1) * factor] * shape[1] for k in range(shape[0])]

    def cut(name, rank, factor=1):
        chunk, rest = shards[name][0], shards[name][1:]
        rows = values(SMALL[name], factor)[rank * chunk : (rank + 1) * chunk]
        rows += [[0] * rest[0] if rest else 0] * (chunk - len(rows))
        return rows if rows or not rest else empty(shards[name])

    def empty(shape):
        import numpy as np

        return np.zeros(shape)

    def whole(name, factor=1):
        return values(SMALL[name], factor) or empty(SMALL[name])

    total = sum(rank + 1 for rank in range(ranks))
    suite.run(
        f"small_on_{ranks}", ranks, text,
        lambda rank: {
            **{n: ("f32", cut(n, rank)) for n in SMALL},
            **{f"{n}.grad": ("f32", whole(n, rank + 1)) for n in SMALL},
        },
        lambda rank: {
            **{n: ("f32", whole(n)) for n in SMALL},
            **{f"{n}.grad": ("f32", cut(n, rank, total)) for n in SMALL},
        },
    )


small(4)
small(8)

# Everything frozen: gathered, integers too, and no reduction.
suite.run(
    "frozen", 2,
    """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16> {
  fsdp.param @w : tensor<3xf32> frozen
  fsdp.param @ids : tensor<3xi64> frozen
}
func.func @f(%w: tensor<2xf32> {fsdp.shard = @u::@w}, %i: tensor<2xi64> {fsdp.shard = @u::@ids})
    -> (tensor<3xbf16> {fsdp.full = @u::@w}, tensor<3xi64> {fsdp.full = @u::@ids}) {
  %0:2 = fsdp.unshard @u(%w, %i) : (tensor<2xf32>, tensor<2xi64>) -> (tensor<3xbf16>, tensor<3xi64>)
  fsdp.reduce_grads @u[]() : () -> ()
  return %0#0, %0#1 : tensor<3xbf16>, tensor<3xi64>
}
""",
    lambda rank: {
        "w": ("f32", ([1, 2], [3, 0])[rank]),
        "ids": ("i64", ([1 << 40, -2], [7, 0])[rank]),
    },
    lambda rank: {"w": ("bf16", [1, 2, 3]), "ids": ("i64", [1 << 40, -2, 7])},
)

# A gradient that is absent: left out, or packed as zero; the others are the same.
for unused in ("skip", "zero"):
    suite.run(
        "absent", 3,
        """
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp precision <param = bf16> {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
  fsdp.param @c : tensor<4xf32>
}
func.func @f(%a: tensor<4xbf16> {fsdp.full_grad = @u::@a}, %c: tensor<4xbf16> {fsdp.full_grad = @u::@c})
    -> (tensor<2xf32> {fsdp.shard_grad = @u::@a}, tensor<2xf32> {fsdp.shard_grad = @u::@c}) {
  %0:2 = fsdp.reduce_grads @u[@c, @a](%c, %a) : (tensor<4xbf16>, tensor<4xbf16>) -> (tensor<2xf32>, tensor<2xf32>)
  return %0#1, %0#0 : tensor<2xf32>, tensor<2xf32>
}
""",
        # 1/3 is 0.333984375 in bf16, and the mean of 100 is 100.5.
        lambda rank: {"a.grad": ("bf16", [100] * 4), "c.grad": ("bf16", [0, 0, 0, 100])},
        lambda rank: {
            "a.grad": ("f32", ([100.5] * 2, [100.5] * 2, [0, 0])[rank]),
            "c.grad": ("f32", ([0, 0], [0, 100.5], [0, 0])[rank]),
        },
        optimize=f"unused={unused}",
    )


# Where segments start changes no value. A byte bucket of members of 2, 8 and 4
# bytes, of odd numbers of elements: with align 1 most of them are unaligned.
for align in (1, 2, 4, 8, 256, 4096):
    suite.run(
        "align", 2,
        """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<3xbf16> precision <param = bf16, reduce = f32>
  fsdp.param @b : tensor<5xf64> precision <reduce = f32>
  fsdp.param @c : tensor<1xf32>
}
func.func @f(%a: tensor<2xbf16> {fsdp.shard = @u::@a}, %b: tensor<3xf64> {fsdp.shard = @u::@b},
             %c: tensor<1xf32> {fsdp.shard = @u::@c},
             %ga: tensor<3xbf16> {fsdp.full_grad = @u::@a}, %gb: tensor<5xf64> {fsdp.full_grad = @u::@b},
             %gc: tensor<1xf32> {fsdp.full_grad = @u::@c})
    -> (tensor<3xbf16> {fsdp.full = @u::@a}, tensor<5xf64> {fsdp.full = @u::@b}, tensor<1xf32> {fsdp.full = @u::@c},
        tensor<2xbf16> {fsdp.shard_grad = @u::@a}, tensor<3xf64> {fsdp.shard_grad = @u::@b},
        tensor<1xf32> {fsdp.shard_grad = @u::@c}) {
  %w:3 = fsdp.unshard @u(%a, %b, %c) : (tensor<2xbf16>, tensor<3xf64>, tensor<1xf32>)
      -> (tensor<3xbf16>, tensor<5xf64>, tensor<1xf32>)
  %r:3 = fsdp.reduce_grads @u[@a, @b, @c](%ga, %gb, %gc) : (tensor<3xbf16>, tensor<5xf64>, tensor<1xf32>)
      -> (tensor<2xbf16>, tensor<3xf64>, tensor<1xf32>)
  return %w#0, %w#1, %w#2, %r#0, %r#1, %r#2
      : tensor<3xbf16>, tensor<5xf64>, tensor<1xf32>, tensor<2xbf16>, tensor<3xf64>, tensor<1xf32>
}
""",
        lambda rank: {
            "a": ("bf16", ([1, 2], [3, 0])[rank]),
            "b": ("f64", ([4, 5, 6], [7, 8, 0])[rank]),
            "c": ("f32", ([9], [0])[rank]),
            "a.grad": ("bf16", [2 * rank] * 3),
            "b.grad": ("f64", [10, 20, 30, 40, 50]),
            "c.grad": ("f32", [rank]),
        },
        lambda rank: {
            "a": ("bf16", [1, 2, 3]), "b": ("f64", [4, 5, 6, 7, 8]), "c": ("f32", [9]),
            "a.grad": ("bf16", ([1, 1], [1, 0])[rank]),
            "b.grad": ("f64", ([10, 20, 30], [40, 50, 0])[rank]),
            "c.grad": ("f32", ([0.5], [0])[rank]),
        },
        optimize=f"align={align}",
    )


def rows(name, ranks, shapes, expected):
    """The packed tensor of `chunk_cat`: row by row, A0 A1 ... with A0 = 1, B0 = 101
    and so on; a dot is padding."""
    names = [chr(ord("a") + i) for i in range(len(shapes))]
    grid, unit = {"shape": [ranks]}, unit_of("u", dict(zip(names, shapes)))
    for param in unit["params"]:
        param["precision"] = {"param": "f32", "reduce": "f32", "grad": "f32"}
    wanted = [
        [0 if word == "." else 100 * "ABCD".index(word[0]) + int(word[1:]) + 1
         for word in line.split()]
        for line in expected
    ]
    packed = tensor_type((ranks, len(wanted[0])), "f32")
    args = [Value(f"%{n}", tensor_type(s, "f32")) for n, s in zip(names, shapes)]
    body = op("%rows", "chunk_cat", [a.ssa for a in args], "into @r",
              [a.type for a in args], [packed])
    text = module([
        grid_text(grid), unit_text(grid, unit),
        bucket_text("r", "reduce", "u", names, "f32", align=1),
        function("f", args, [Value("%rows", packed)], [body]),
    ])
    suite.run(
        name, ranks, text,
        lambda rank: {
            f"arg{i}": ("f32", [[100 * i + r * s[1] + c + 1 for c in range(s[1])]
                                for r in range(s[0])])
            for i, s in enumerate(shapes)
        },
        lambda rank: {"result0": ("f32", wanted)},
    )


rows(
    "rows_of_three", 3, [(2, 4), (3, 3), (1, 2)],
    ["A0 A1 A2 A3 B0 B1 B2 C0 C1",
     "A4 A5 A6 A7 B3 B4 B5 . .",
     ". . . . B6 B7 B8 . ."],
)
rows(
    "rows_of_two", 2, [(2, 4), (3, 3), (1, 2), (4, 2)],
    ["A0 A1 A2 A3 B0 B1 B2 B3 B4 B5 C0 C1 D0 D1 D2 D3",
     "A4 A5 A6 A7 B6 B7 B8 . . . . . D4 D5 D6 D7"],
)

suite.finish()
