#!/usr/bin/python3
# The workloads that kernels are measured on, as modules.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   workloads.py NAME [DIVISOR]
#
# DIVISOR makes matrices smaller in their first dimension. All on 8 ranks.

import sys
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from oracle.dtypes import dtype
from oracle.layout import BucketLayout, ShardLayout

RANKS = 8
LAYER = [(6144, 2048), (2048, 2048), (8192, 2048), (2048, 8192)]
VECTORS = [(2048,)] * 4 + [(32,), (6144, 4)]


def _type(kind, shape, name):
    return f"{kind}<{''.join(f'{d}x' for d in shape)}{name}>"


class Workload:
    """One op on members of (shape, dtype outside of the bucket)."""

    def __init__(self, op, members, wire, extra="", shard_dim=0, align=128):
        self.op, self.members, self.wire, self.extra = op, members, wire, extra
        self.shard_dim, self.align = shard_dim, align

    def text(self):
        own = [t if self.wire == "bytes" else self.wire for _, t in self.members]
        layout = BucketLayout(
            [ShardLayout(s, self.shard_dim, RANKS) for s, _ in self.members],
            [dtype(t) for t in own],
            None if self.wire == "bytes" else dtype(self.wire),
            self.align,
        )
        flat = self.op in ("concat", "split")
        element = "i8" if self.wire == "bytes" else self.wire
        shape = ([] if flat else [RANKS]) + [layout.row_elements]
        bucket = _type("memref", shape, element)
        types = [
            _type("memref", l.shard_shape if flat else l.shape, t)
            for l, (_, t) in zip(layout.layouts, self.members)
        ]
        lines = [f"shard.grid @dp(shape = {RANKS})", "fsdp.unit @u on @dp {"]
        for i, ((s, _), t) in enumerate(zip(self.members, own)):
            dim = f" shard_dim {self.shard_dim}" if self.shard_dim else ""
            lines.append(
                f"  fsdp.param @p{i} : {_type('tensor', s, t)}{dim}"
                f" precision <param = {t}, reduce = {t}, grad = {t}>"
            )
        lines.append("}")
        names = ", ".join(f"@p{i}" for i in range(len(types)))
        role = "gather" if self.op in ("concat", "unchunk") else "reduce"
        align = f" align {self.align}" if self.align != 128 else ""
        lines.append(f"fsdp.bucket @b {role} @u[{names}] : {self.wire}{align}")
        values = [f"%m{i}" for i in range(len(types))]
        arguments = [f"{v}: {t}" for v, t in zip(values, types)] + [f"%b: {bucket}"]
        values, list_of_types = ", ".join(values), ", ".join(types)
        if self.op in ("chunk_cat", "concat"):
            op = (
                f"fsdp.{self.op} {values} into @b{self.extra} outs(%b : {bucket})"
                f" : ({list_of_types}) -> ()"
            )
        else:
            extra = self.extra
            if "add" in extra:
                old = [f"%o{i}" for i in range(len(types))]
                arguments += [f"{o}: {t}" for o, t in zip(old, types)]
                extra = extra.replace("add", f"add({', '.join(old)} : {list_of_types})")
            op = (
                f"fsdp.{self.op} %b of @b{extra} outs({values} : {list_of_types})"
                f" : ({bucket}) -> ()"
            )
        lines.append(f"func.func @f({', '.join(arguments)}) {{")
        return "\n".join(lines + [f"  {op}", "  return", "}", ""])


def layer(matrices, vectors, divisor):
    """P1's parameters with these dtypes."""
    return [((s[0] // divisor,) + s[1:], matrices) for s in LAYER] + [
        (s, vectors) for s in VECTORS
    ]


def only_matrices(name, divisor):
    return layer(name, name, divisor)[: len(LAYER)]


def short_runs(name, divisor):
    """Matrices whose ranks hold 8 elements of each row."""
    return [((32768 // divisor, 8 * RANKS), name)] * 4


def after_odd(name, divisor):
    """What lies after one element, in a bucket without gaps."""
    return [((1,), name)] + only_matrices(name, divisor)


def many(vectors, divisor):
    """A block of 219 million elements in 500 tensors: matrices of bf16, vectors
    of 8 KB in another dtype."""
    elements = 8192 // dtype(vectors).size
    return [((768 // divisor, 1141), "bf16"), ((elements,), vectors)] * 250


WORKLOADS = {
    "p1": lambda n: Workload("chunk_cat", layer("bf16", "f32", n), "f32"),
    "p2": lambda n: Workload("chunk_cat", only_matrices("bf16", n), "bf16"),
    "narrow": lambda n: Workload("chunk_cat", layer("f32", "f32", n), "bf16"),
    "concat": lambda n: Workload("concat", only_matrices("f32", n), "bf16"),
    "s1": lambda n: Workload("unchunk", only_matrices("bf16", n), "bf16"),
    "unchunk-wide": lambda n: Workload("unchunk", layer("f32", "f32", n), "bf16"),
    "unchunk-narrow": lambda n: Workload("unchunk", layer("bf16", "bf16", n), "f32"),
    "unchunk-f64": lambda n: Workload("unchunk", layer("bf16", "bf16", n), "f64"),
    "split": lambda n: Workload(
        "split", layer("f32", "f32", n), "f32", " divide 4.0 add"
    ),
    "split-divide": lambda n: Workload(
        "split", layer("f32", "f32", n), "f32", " divide 3.0"
    ),
    "split-cast": lambda n: Workload(
        "split", layer("f32", "f32", n), "bf16", " divide 3.0 add"
    ),
    "strided": lambda n: Workload(
        "chunk_cat", only_matrices("bf16", n), "f32", shard_dim=1
    ),
    "strided-narrow": lambda n: Workload(
        "chunk_cat", only_matrices("f32", n), "bf16", shard_dim=1
    ),
    "strided-unchunk": lambda n: Workload(
        "unchunk", only_matrices("f32", n), "bf16", shard_dim=1
    ),
    "strided-unchunk-narrow": lambda n: Workload(
        "unchunk", only_matrices("bf16", n), "f32", shard_dim=1
    ),
    "short": lambda n: Workload(
        "chunk_cat", short_runs("bf16", n), "f32", shard_dim=1
    ),
    "short-unchunk": lambda n: Workload(
        "unchunk", short_runs("f32", n), "bf16", shard_dim=1
    ),
    "odd": lambda n: Workload("concat", after_odd("bf16", n), "bf16", align=1),
    "odd-narrow": lambda n: Workload("concat", after_odd("f32", n), "bf16", align=1),
    "odd-unchunk": lambda n: Workload("unchunk", after_odd("f32", n), "bf16", align=1),
    "odd-split": lambda n: Workload(
        "split", after_odd("f32", n), "bf16", " divide 4.0 add", align=1
    ),
    "odd-strided": lambda n: Workload(
        "chunk_cat", [((16384 // n, 2008), "bf16")] * 4, "bf16", shard_dim=1
    ),
    "many": lambda n: Workload("concat", [((5, 3), "f32")] * 600, "bf16"),
    "g2b": lambda n: Workload("concat", many("f32", n), "bytes"),
    "g2b-bf16": lambda n: Workload("concat", many("bf16", n), "bytes"),
}


def main():
    divisor = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(WORKLOADS[sys.argv[1]](divisor).text(), end="")


if __name__ == "__main__":
    main()
