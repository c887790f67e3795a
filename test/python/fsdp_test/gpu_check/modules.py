# The modules that are compiled for the device check.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Ops of fsdp_test.ptx: on buffers they say which memory they read and write, on
# tensors they are what fsdp-compile takes.

from fsdp_test import ir
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
UNIT = {
    "name": "block", "precision": {"param": "bf16", "reduce": "f32"},
    "params": [
        {"name": "up", "shape": [1024, 192], "storage": "f32"},
        {"name": "down", "shape": [192, 1021], "storage": "f32", "shard_dim": 1},
        {"name": "norm", "shape": [1021], "storage": "f32", "precision": {"param": "f32"}},
        {"name": "bias", "shape": [10], "storage": "f32"},
    ],
}


def step(ranks):
    grid, params = {"shape": [ranks]}, UNIT["params"]

    def storage(param):
        return param["storage"]

    def computed(param):
        return param.get("precision", UNIT["precision"])["param"]

    shards = ir.step.shards("s", grid, UNIT, params, storage)
    full = ir.step.full("", UNIT, params, computed)
    gather = ir.step.unshard("full", UNIT, shards, full)
    grads = ir.step.full("g", UNIT, params, computed, "full_grad")
    sums = ir.step.shards("", grid, UNIT, params, storage, "shard_grad")
    reduce = ir.step.reduce_grads("sum", UNIT, params, grads, sums)
    return ir.module([
        ir.grid_text(grid), ir.unit_text(grid, UNIT),
        ir.function("forward", shards, full, [gather]),
        ir.function("backward", grads, sums, [reduce]),
    ])
