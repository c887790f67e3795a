# The modules that are compiled for the device check.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Ops of fsdp_test.ptx: on buffers they say which memory they read and write, on
# tensors they are what fsdp-compile takes.

from fsdp_test.edges import TIE_HALVES
from fsdp_test.ir.local_op import by_ranks
from fsdp_test.ptx import random_modules
from fsdp_test.ptx.workloads import Workload

# Half-precision sources can be tried out whole.
PATTERNS = 1 << 16
TIES = PATTERNS * len(TIE_HALVES)  # every upper half with each of these


def measured(workload):
    return [Workload(workload.op, workload.members, workload.wire)]


def random_ops(count, seed):
    """Every kind and pair of dtypes, layouts at random: {ranks: ops}."""
    return by_ranks(random_modules.random_cases(seed, count))


def _exhaustive_ops():
    """(op, member's dtype, wire, what it is divided by)"""
    floats = ["f32", "bf16", "f16"]
    for source in floats:
        for target in floats:
            if source != target:
                yield "chunk_cat", source, target, None
                yield "unchunk", target, source, None
    for divisor in (3.0, 7.0, 4.0):
        for source in ("bf16", "f16"):
            yield "chunk_cat", source, "f32", divisor
            yield "split", "f32", source, divisor
        yield "split", "bf16", "f32", divisor
        yield "split", "f32", "f32", divisor


def exhaustive_ops():
    """Casts and divisions of every value of a 16-bit type, and of the f32 values
    around every tie."""
    ops = []
    for op, member, wire, divisor in _exhaustive_ops():
        source = member if op == "chunk_cat" else wire
        elements = TIES if source == "f32" else PATTERNS
        ops.append(Workload(op, [((elements,), member)], wire, divisor))
        ops[-1].number = len(ops)
    return by_ranks(ops)


# --- whole runs --------------------------------------------------------------

# A step of a unit with all that the local ops do in one: casts both ways, byte
# buckets, a strided shard, parameters that do not divide, an f32 among bf16.
STEP = """\
shard.grid @dp(shape = RANKS)
fsdp.unit @block on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @up : tensor<1024x192xf32>
  fsdp.param @down : tensor<192x1021xf32> shard_dim 1
  fsdp.param @norm : tensor<1021xf32> precision <param = f32>
  fsdp.param @bias : tensor<10xf32>
}
func.func @forward(%up: tensor<UPx192xf32> {fsdp.shard = @block::@up},
                   %down: tensor<192xDOWNxf32> {fsdp.shard = @block::@down},
                   %norm: tensor<DOWNxf32> {fsdp.shard = @block::@norm},
                   %bias: tensor<BIASxf32> {fsdp.shard = @block::@bias})
    -> (tensor<1024x192xbf16> {fsdp.full = @block::@up},
        tensor<192x1021xbf16> {fsdp.full = @block::@down},
        tensor<1021xf32> {fsdp.full = @block::@norm},
        tensor<10xbf16> {fsdp.full = @block::@bias}) {
  %f:4 = fsdp.unshard @block(%up, %down, %norm, %bias)
      : (tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>)
      -> (tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>)
  return %f#0, %f#1, %f#2, %f#3
      : tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>
}
func.func @backward(%up: tensor<1024x192xbf16> {fsdp.full_grad = @block::@up},
                    %down: tensor<192x1021xbf16> {fsdp.full_grad = @block::@down},
                    %norm: tensor<1021xf32> {fsdp.full_grad = @block::@norm},
                    %bias: tensor<10xbf16> {fsdp.full_grad = @block::@bias})
    -> (tensor<UPx192xf32> {fsdp.shard_grad = @block::@up},
        tensor<192xDOWNxf32> {fsdp.shard_grad = @block::@down},
        tensor<DOWNxf32> {fsdp.shard_grad = @block::@norm},
        tensor<BIASxf32> {fsdp.shard_grad = @block::@bias}) {
  %g:4 = fsdp.reduce_grads @block[@up, @down, @norm, @bias](%up, %down, %norm, %bias)
      : (tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>)
      -> (tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>)
  return %g#0, %g#1, %g#2, %g#3
      : tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>
}
"""


def step(ranks):
    text = STEP.replace("RANKS", str(ranks))
    for name, size in (("UP", 1024), ("DOWN", 1021), ("BIAS", 10)):
        text = text.replace(f"<{name}x", f"<{-(-size // ranks)}x")
        text = text.replace(f"x{name}x", f"x{-(-size // ranks)}x")
    return text
