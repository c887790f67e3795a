# What the programs of a run contain, counted by program.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# An option counts for the programs on which it can have an effect.

from itertools import chain
from math import prod

from fsdp_test.oracle.dtypes import FLOAT8, dtype
from fsdp_test.oracle.layout import ShardLayout

from .description import (
    gradients_of, operations, oracle_units, precisions_of, unit_of,
)

REQUIRED = 20  # of each feature, among
AMONG = 300  # programs

FEATURES = [
    "f16", "bf16", "f32", "f64", "opaque", "float8", "wire f16", "wire bf16",
    "wire f32", "wire f64", "byte gather", "shard_dim above 0", "padding",
    "empty parameter", "one rank", "hybrid", "only replicas", "foreign axis",
    "several units", "frozen", "absent", "unused=zero", "tied use",
    "microbatches", "gradients added before the reduction",
    "shards added after it", "partial sum", "partial in a signature",
    "split adds", "sum", "divide factor", "accumulate=f32", "average=after",
    "sums in a ring", "stable", "grad_dtype", "align below 16", "align 16 and more", "scope=global",
    "max-bytes", "list of limits", "per-dtype", "order=execution",
    "torch-fsdp2", "inductor", "xla", "deepspeed", "megatron", "casts", "edges",
    "two numbers of ranks", "LLVM optimises",
]


def _param_features(param, model, precision):
    layout = ShardLayout(param["shape"], param.get("shard_dim", 0), model.grid.w)
    out = {
        t.name
        for t in (dtype(param["storage"]), precision.param, precision.grad)
        if t and t.floating
    }
    out.add("frozen" if param.get("frozen") else "")
    out.add("" if dtype(param["storage"]).floating else "opaque")
    out.add("float8" if param["storage"] in FLOAT8 else "")
    out.add("shard_dim above 0" if param.get("shard_dim") else "")
    out.add("" if prod(param["shape"]) else "empty parameter")
    if layout.elements * layout.w != prod(param["shape"]):
        out.add("padding")
    return out


def _is_tied(unit, steps, grad):
    """Two uses of one gathered tensor, whose gradients are added."""
    gathered = any(s.get("gather") == unit["name"] for s in steps)
    return gathered and sum(bool(t.get("weight")) for t in grad["terms"]) > 1


def _rounds_differently(model, wires):
    """Is a sum of three or more 16-bit terms another one in f32?"""
    return max(model.grid.w, model.grid.h) > 2 and bool(wires & {"f16", "bf16"})


def _partial_features(step, model, wires):
    out = {"split adds" if step.get("split_add") else ""}
    if len(step["microbatches"]) > 1 or step.get("enters"):
        out.add("partial sum" if model.grid.replicate_axes else "")
    if step.get("enters") or step.get("leaves"):
        out.add("partial in a signature")
    wide = step.get("accumulate") == "f32" and _rounds_differently(model, wires)
    out.add("accumulate=f32" if wide else "")
    return out


def _reduce_features(unit, model, steps, precisions, batch):
    own = [s for s in steps if unit_of(s) == unit["name"] and "gather" not in s]
    if not own:
        return set()
    out = set()
    microbatches = [m for s in own for m in gradients_of(s)]
    grads = list(chain(*microbatches))
    wires = {precisions[unit["name"], g["param"]].reduce.name for g in grads}
    out |= {f"wire {w}" for w in wires}
    out.add("microbatches" if len(microbatches) > 1 else "")
    out.add("hybrid" if model.grid.replicate_axes and model.grid.w > 1 else "")
    out.add("sum" if unit.get("reduction") == "sum" else "")
    out.add("divide factor" if "divide_factor" in unit else "")
    if any(len(g["terms"]) > 1 for g in grads):
        out.add("gradients added before the reduction")
    if any(g.get("old") or g.get("add") for g in grads):
        out.add("shards added after it")
    out.add("tied use" if any(_is_tied(unit, steps, g) for g in grads) else "")

    trainable = {p["name"] for p in unit["params"] if not p.get("frozen")}
    declared = [s for s in own if "reduce" in s]
    if batch["options"].get("average") == "after" and declared:
        out.add("average=after" if model.divisor != 1 else "")
    if batch.get("sum_order") == "ring" and model.grid.w > 2:
        out.add("sums in a ring")
    if any({g["param"] for g in s["grads"]} < trainable for s in declared):
        out.add("absent")
        out.add("unused=zero" if batch["options"].get("unused") == "zero" else "")
    wide = batch["options"].get("accumulate") == "f32"
    if wide and declared and _rounds_differently(model, wires):
        out.add("accumulate=f32")
    for step in own:
        if "partial" in step:
            out |= _partial_features(step, model, wires)
    return out


def _option_features(options):
    out = {options.get("policy", ""), f"scope={options.get('scope')}"}
    out.add(f"order={options.get('order')}")
    out.add("max-bytes" if "max_bytes" in options else "")
    limits = options.get("max_bytes", "") + options.get("max_elements", "")
    out.add("list of limits" if "," in limits else "")
    out.add(options.get("gather", ""))
    if "align" in options and options.get("policy") != "torch-fsdp2":
        small = options["align"] < 16
        out.add("align below 16" if small else "align 16 and more")
    return out


def features(program, batch):
    grid, steps = batch["grid"], program["steps"]
    precisions = precisions_of(program, grid)
    models = oracle_units(program, grid)
    out = {"edges"} if program["values"] == "edges" else set()
    used = {unit_of(s) for s in steps}
    out.add("several units" if len(used) > 1 else "")
    for unit in program["units"]:
        model = models[unit["name"]]
        if unit["name"] not in used:
            continue
        for param in unit["params"]:
            precision = precisions[unit["name"], param["name"]]
            out |= _param_features(param, model, precision)
        out |= _reduce_features(unit, model, steps, precisions, batch)
        kinds = {
            precisions[unit["name"], p["name"]].param.name for p in unit["params"]
        }
        if len(kinds) > 1 and any(s.get("gather") == unit["name"] for s in steps):
            out.add("byte gather")
        axes = set(model.grid.shard_axes + model.grid.replicate_axes)
        out.add("foreign axis" if len(axes) < len(grid["shape"]) else "")
        alone = model.grid.w == 1 and model.grid.ranks > 1
        out.add("only replicas" if alone else "")
        out.add(unit.get("profile", ""))
    out.add("one rank" if grid["shape"] == [1] else "")
    out.add("two numbers of ranks" if "other_grid" in batch else "")
    out.add("LLVM optimises" if "codegen_level" in batch else "")
    out |= _option_features(batch["options"])
    kinds = {operation.kind for operation in operations(program, grid).body}
    out.add("casts" if "cast" in kinds else "")
    return out & set(FEATURES)


class Coverage:
    def __init__(self):
        self.programs = 0
        self.counts = dict.fromkeys(FEATURES, 0)

    def add(self, batch):
        for program in batch["programs"]:
            self.programs += 1
            for feature in features(program, batch):
                self.counts[feature] += 1

    def __str__(self):
        return ", ".join(f"{f}: {n}" for f, n in self.counts.items())

    def missing(self):
        """Features that are too rare; a short run may lack any."""
        if self.programs < AMONG:
            return []
        return [f for f, n in self.counts.items() if n < REQUIRED]
