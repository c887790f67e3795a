# The workloads that kernels are measured on, as modules.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.workloads NAME [DIVISOR]
#
# DIVISOR makes matrices smaller in their first dimension. All on 8 ranks.

import sys

from fsdp_test.ir.local_op import LocalOp
from fsdp_test.oracle.dtypes import dtype

RANKS = 8
LAYER = [(6144, 2048), (2048, 2048), (8192, 2048), (2048, 8192)]
VECTORS = [(2048,)] * 4 + [(32,), (6144, 4)]


class Workload(LocalOp):
    """One op on members of (shape, dtype outside of the bucket)."""

    ranks = RANKS

    def __init__(
        self, kind, members, wire, divide=None, adds=False, shard_dim=0, align=128
    ):
        dtypes = [t for _, t in members]
        super().__init__(
            kind, [(shape, shard_dim) for shape, _ in members], dtypes, wire,
            dtypes if wire == "bytes" else None,
        )
        self.divide, self.adds, self.align = divide, adds, align


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
        "split", layer("f32", "f32", n), "f32", divide=4.0, adds=True
    ),
    "split-divide": lambda n: Workload(
        "split", layer("f32", "f32", n), "f32", divide=3.0
    ),
    "split-cast": lambda n: Workload(
        "split", layer("f32", "f32", n), "bf16", divide=3.0, adds=True
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
        "split", after_odd("f32", n), "bf16", divide=4.0, adds=True, align=1
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
