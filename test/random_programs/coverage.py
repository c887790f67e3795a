# What the programs of a run contain, counted by program.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from math import prod

from oracle.dtypes import dtype
from oracle.layout import ShardLayout

from .description import operations, oracle_units, precisions_of

REQUIRED = 20  # of each of the first features, among
AMONG = 300  # programs

REQUIRED_FEATURES = [
    "f16", "bf16", "f32", "f64", "opaque", "wire f16", "wire bf16", "wire f32",
    "wire f64", "shard_dim above 0", "padding", "hybrid", "frozen", "absent",
]
FEATURES = REQUIRED_FEATURES + [
    "empty parameter", "one rank", "foreign axis", "only replicas", "unused=zero",
    "accumulate=f32", "align", "max-bytes", "per-dtype", "order=execution",
    "stable", "grad_dtype", "sum", "divide factor", "microbatches",
    "added gradients", "casts", "edges", "two numbers of ranks", "LLVM optimises",
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
    out.add("shard_dim above 0" if param.get("shard_dim") else "")
    out.add("" if prod(param["shape"]) else "empty parameter")
    if layout.elements * layout.w != prod(param["shape"]):
        out.add("padding")
    return out


def _reduce_features(unit, model, steps, precisions, batch):
    out = set()
    reduces = [s for s in steps if s.get("reduce") == unit["name"]]
    named = [{g["param"] for g in s["grads"]} for s in reduces]
    trainable = {p["name"] for p in unit["params"] if not p.get("frozen")}
    wires = {precisions[unit["name"], n].reduce.name for s in named for n in s}
    out |= {f"wire {w}" for w in wires}
    if any(s < trainable for s in named):
        out.add("absent")
        out.add("unused=zero" if batch["options"].get("unused") == "zero" else "")
    if not reduces:
        return out
    out.add("microbatches" if len(reduces) > 1 else "")
    out.add("hybrid" if model.grid.replicate_axes and model.grid.w > 1 else "")
    out.add("sum" if unit.get("reduction") == "sum" else "")
    out.add("divide factor" if "divide_factor" in unit else "")
    wide = batch["options"].get("accumulate") == "f32" and model.grid.ranks > 2
    out.add("accumulate=f32" if wide and wires & {"f16", "bf16"} else "")
    terms = [len(g["terms"]) for s in reduces for g in s["grads"]]
    out.add("added gradients" if max(terms) > 1 else "")
    return out


def features(program, batch):
    grid, options = batch["grid"], batch["options"]
    precisions = precisions_of(program, grid)
    models = oracle_units(program, grid)
    out = {"edges"} if program["values"] == "edges" else set()
    for unit in program["units"]:
        model = models[unit["name"]]
        used = {a for s in program["steps"] for a in (s.get("gather"), s.get("reduce"))}
        if unit["name"] not in used:
            continue
        for param in unit["params"]:
            precision = precisions[unit["name"], param["name"]]
            out |= _param_features(param, model, precision)
        out |= _reduce_features(unit, model, program["steps"], precisions, batch)
        axes = set(model.grid.shard_axes + model.grid.replicate_axes)
        out.add("foreign axis" if len(axes) < len(grid["shape"]) else "")
        alone = model.grid.w == 1 and model.grid.ranks > 1
        out.add("only replicas" if alone else "")
        out.add(unit.get("profile", ""))
    out.add("one rank" if grid["shape"] == [1] else "")
    out.add("two numbers of ranks" if "other_grid" in batch else "")
    out.add("LLVM optimises" if "codegen_level" in batch else "")
    out.add("align" if "align" in options else "")
    out.add("max-bytes" if "max_bytes" in options else "")
    out.add("per-dtype" if "gather" in options else "")
    out.add("order=execution" if "order" in options else "")
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
        """Required features that are too rare; a short run may lack any."""
        if self.programs < AMONG:
            return []
        return [f for f in REQUIRED_FEATURES if self.counts[f] < REQUIRED]
