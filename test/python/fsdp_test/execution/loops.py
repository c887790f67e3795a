# Gathered tensors that a loop or a branch carries on.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import re
import subprocess

from .suite import Suite

suite = Suite()
RANKS = [1, 2, 3, 4, 8]
SIZE = 6  # of the parameters; uneven on 4 and 8 ranks


def shard(full, ranks, rank):
    """This rank's part of `full`, padded with zeros."""
    rows = -(-SIZE // ranks)
    padded = list(full) + [0] * (rows * ranks - SIZE)
    return padded[rank * rows : (rank + 1) * rows]


def module(ranks, body):
    rows = -(-SIZE // ranks)
    text = f"""
shard.grid @dp(shape = {ranks})
fsdp.unit @u on @dp {{
  fsdp.param @a : tensor<{SIZE}xf32>
  fsdp.param @b : tensor<{SIZE}xf32>
}}
func.func @f(%a: tensor<ROWSxf32> {{fsdp.shard = @u::@a}}, %b: tensor<ROWSxf32> {{fsdp.shard = @u::@b}},
             %z: tensor<FULLxf32>, %n: index {{fsdp.uniform}}) -> (RESULTS) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{body}
}}
"""
    return text.replace("ROWS", str(rows)).replace("FULL", str(SIZE))


GATHER = """
    %w:2 = fsdp.unshard @u(%a, %b) : (tensor<ROWSxf32>, tensor<ROWSxf32>) -> (tensor<FULLxf32>, tensor<FULLxf32>)
"""

# What the last iteration has gathered; with none, what came in.
LAST = """
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> tensor<FULLxf32> {
""" + GATHER + """
    scf.yield %w#0 : tensor<FULLxf32>
  }
  return %r : tensor<FULLxf32>
"""
# Layer by layer: one state is computed from, the other one is handed on.
SCAN = """
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z, %y = %z) -> (tensor<FULLxf32>, tensor<FULLxf32>) {
""" + GATHER + """
    %s = arith.addf %x, %w#0 : tensor<FULLxf32>
    scf.yield %s, %w#1 : tensor<FULLxf32>, tensor<FULLxf32>
  }
  return %r#0, %r#1 : tensor<FULLxf32>, tensor<FULLxf32>
"""
# Buffers that change places.
SWAP = """
  %g:2 = fsdp.unshard @u(%a, %b) : (tensor<ROWSxf32>, tensor<ROWSxf32>) -> (tensor<FULLxf32>, tensor<FULLxf32>)
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %g#0, %y = %g#1, %l = %z)
      -> (tensor<FULLxf32>, tensor<FULLxf32>, tensor<FULLxf32>) {
""" + GATHER + """
    scf.yield %y, %x, %w#1 : tensor<FULLxf32>, tensor<FULLxf32>, tensor<FULLxf32>
  }
  return %r#0, %r#1, %r#2 : tensor<FULLxf32>, tensor<FULLxf32>, tensor<FULLxf32>
"""
# The next layer's parameters are gathered while this one's are used; every other
# iteration uses what the loop began with.
PREFETCH = """
  %c2 = arith.constant 2 : index
  %g:2 = fsdp.unshard @u(%a, %b) : (tensor<ROWSxf32>, tensor<ROWSxf32>) -> (tensor<FULLxf32>, tensor<FULLxf32>)
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z, %p = %g#0, %q = %g#1)
      -> (tensor<FULLxf32>, tensor<FULLxf32>, tensor<FULLxf32>) {
    %odd = arith.remui %i, %c2 : index
    %is_odd = arith.cmpi eq, %odd, %c1 : index
    %next:2 = scf.if %is_odd -> (tensor<FULLxf32>, tensor<FULLxf32>) {
""" + GATHER + """
      scf.yield %w#0, %w#1 : tensor<FULLxf32>, tensor<FULLxf32>
    } else {
      scf.yield %q, %p : tensor<FULLxf32>, tensor<FULLxf32>
    }
    %s = arith.addf %x, %p : tensor<FULLxf32>
    scf.yield %s, %next#0, %next#1 : tensor<FULLxf32>, tensor<FULLxf32>, tensor<FULLxf32>
  }
  return %r#0 : tensor<FULLxf32>
"""
WHILE = """
  %r:2 = scf.while (%i = %c0, %x = %z) : (index, tensor<FULLxf32>) -> (index, tensor<FULLxf32>) {
    %goes_on = arith.cmpi ult, %i, %n : index
    scf.condition(%goes_on) %i, %x : index, tensor<FULLxf32>
  } do {
  ^bb0(%i: index, %x: tensor<FULLxf32>):
""" + GATHER + """
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %w#0 : index, tensor<FULLxf32>
  }
  return %r#1 : tensor<FULLxf32>
"""

A, B, Z = [1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60], [0.5] * SIZE


def prefetched(n):
    x, p, q = Z, A, B
    for i in range(n):
        following = (A, B) if i % 2 else (q, p)
        x = [s + t for s, t in zip(x, p)]
        p, q = following
    return [x]


def scanned(n):
    return [[z + n * a for z, a in zip(Z, A)], B if n else Z]


PROGRAMS = {
    "last": (LAST, lambda n: [A if n else Z]),
    "scan": (SCAN, scanned),
    "swap": (SWAP, lambda n: [*([B, A] if n % 2 else [A, B]), B if n else Z]),
    "prefetch": (PREFETCH, prefetched),
    "while": (WHILE, lambda n: [A if n else Z]),
}

for name, (body, result) in PROGRAMS.items():
    for ranks in RANKS:
        n = {1: 3, 2: 0, 3: 2, 4: 3, 8: 2}[ranks]
        want = result(n)
        types = ", ".join([f"tensor<{SIZE}xf32>"] * len(want))
        suite.run(
            f"{name}{ranks}", ranks, module(ranks, body).replace("RESULTS", types),
            lambda rank: {
                "a": ("f32", shard(A, ranks, rank)), "b": ("f32", shard(B, ranks, rank)),
                "arg2": ("f32", Z), "arg3": ("i64", n),
            },
            lambda rank: {f"result{i}": ("f32", w) for i, w in enumerate(want)},
        )


def peak(artefact, n):
    """Bytes that a run of `n` iterations holds at most."""
    for rank in range(4):
        source = suite.folder / f"scan4.in.{rank}.safetensors"
        data = source.read_bytes()
        target = suite.folder / f"peak.{rank}.safetensors"
        target.write_bytes(data[:-8] + n.to_bytes(8, "little"))
    done = subprocess.run(
        [
            suite.tools / "fsdp-run", f"./{artefact}", "--ranks=4",
            "--in=peak.{rank}.safetensors",
        ],
        cwd=suite.folder, capture_output=True, text=True,
    )
    found = re.search(r"^peak_bytes=(\d+)$", done.stdout, re.M)
    if not found:
        suite.complain(f"{artefact}, {n} iterations: {done.stdout}{done.stderr}")
    return int(found[1]) if found else 0


# Nothing is left behind by an iteration.
for level in (0, 2):
    few, many = (peak(f"scan4.{level}.so", n) for n in (3, 300))
    if few != many:
        suite.complain(f"level {level}: {few} bytes for 3 iterations, {many} for 300")

suite.finish()
