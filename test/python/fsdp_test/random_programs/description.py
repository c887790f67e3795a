# What a random program is: plain dictionaries, and their operations one by one.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A batch is one module: {"name", "grid", "options", "programs"}, for a batch that
# also runs on another number of ranks "other_grid", and "codegen_level" and
# "sum_order" if they are not 0 and "rank". A program is one entry:
#
#   {"name", "values", "units": [as in test/cases.json, with "profile"],
#    "steps": [GATHER | REDUCE | PARTIAL]}
#   GATHER  = {"gather": unit, "casts": {parameter: [dtype...]}}
#   REDUCE  = {"reduce": unit, "grads": [GRAD]}
#   PARTIAL = {"partial": unit, "microbatches": [[GRAD]], "align": bytes,
#              "accumulate": "wire" or "f32", "joint": bool, "enters": bool,
#              "leaves": bool, "split_add": bool}
#   GRAD    = {"param", "terms": [TERM], "casts": [dtype...], "old": bool,
#              "add": bool, "result_casts": [dtype...]}
#   TERM    = {"dtype", "casts": [dtype...], "weight": bool}
#
# A gradient is the sum of its terms: arguments, or gathered weights. Terms are
# cast before the sum, the sum before the reduction. The shard is added to one
# that is an argument ("old"), or to the one of an earlier reduction ("add").
#
# PARTIAL is explicit IR: microbatches whose flat shards are added up before the
# all-reduce, of the same parameters in the order of declaration and of one reduce
# dtype. They have one bucket ("joint") or one each. A partial sum may be an
# argument ("enters") and a result ("leaves"). What "old" and "add" say about the
# last microbatch holds for the sum; with "split_add" it is `split` that adds the
# old shards, of all parameters.
#
# Because everything is a list or has a default, a program is shrunk by dropping
# and shortening.
#
# `operations` turns a program into a line of single operations. The IR and the
# oracle's results are both made of these, so neither is made of the other.

from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from fsdp_test.ir import shard_shape

from fsdp_test.oracle import reduction
from fsdp_test.oracle.description import units_of
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import BucketLayout, ShardLayout
from fsdp_test.oracle.precision import resolve

VALUES = ("fill", "edges", "integers")


@dataclass(eq=False)
class Tensor:
    """A value of a program."""

    number: int
    shape: tuple
    dtype: str
    role: Optional[str] = None  # shard, full, shard_grad, full_grad
    unit: Optional[dict] = None
    param: Optional[dict] = None


@dataclass(eq=False)
class Bucket:
    """A bucket that the program spells out."""

    name: str
    unit: dict
    params: list
    align: int
    wire: str
    model: object  # the oracle's unit
    accumulate: str

    @cached_property
    def how(self):
        """Keywords and constants, which are the program's own here."""
        return reduction.plan(self.model, dtype(self.wire), self.accumulate)

    @cached_property
    def layout(self):
        w, wire = self.model.grid.w, dtype(self.wire)
        layouts = [
            ShardLayout(p["shape"], p.get("shard_dim", 0), w) for p in self.params
        ]
        return BucketLayout(layouts, [wire] * len(layouts), wire, self.align)


@dataclass(eq=False)
class Operation:
    kind: str  # gather, reduce, cast, add, pack, reduce_scatter, all_reduce, split
    operands: list
    results: list
    unit: Optional[dict] = None
    params: Optional[list] = None
    bucket: Optional[Bucket] = None


@dataclass
class Operations:
    arguments: list
    body: list
    results: list
    buckets: list


def unit_of(step):
    """The name of the unit that a step is about."""
    return step.get("gather") or step.get("reduce") or step.get("partial")


def gradients_of(step):
    """Its gradients, microbatch by microbatch."""
    return step.get("microbatches", [step["grads"]] if "grads" in step else [])


def unit_named(program, name):
    return next(u for u in program["units"] if u["name"] == name)


def param_named(unit, name):
    return next(p for p in unit["params"] if p["name"] == name)


def oracle_units(program, grid):
    """{name: the oracle's unit}"""
    described = {"grid": grid, "units": program["units"]}
    return {u.name: u for u in units_of(described)}


def precisions_of(program, grid):
    """{(unit, parameter): Precision}"""
    out = {}
    for unit in program["units"]:
        model = oracle_units(program, grid)[unit["name"]]
        resolved = resolve(model, unit.get("profile", "per_param"))
        out.update({(unit["name"], p): entry for p, entry in resolved.items()})
    return out


class _Builder:
    def __init__(self, program, grid):
        self.program = program
        self.grid = grid
        self.precisions = precisions_of(program, grid)
        self.models = oracle_units(program, grid)
        self.arguments, self.body, self.results = [], [], []
        self.buckets = []
        self.count = 0
        self.shards = {}  # unit: its arguments
        self.weights = {}  # (unit, parameter): gathered
        self.totals = {}  # (unit, parameter): accumulated shard
        self.argument_roles, self.result_roles = set(), set()

    def tensor(self, shape, t):
        self.count += 1
        return Tensor(self.count - 1, tuple(shape), t)

    def argument(self, shape, t, role=None, unit=None, param=None):
        """A role is the tensor's name in files, so the first one keeps it."""
        value = self.tensor(shape, t)
        key = (role, unit and unit["name"], param and param["name"])
        if role and key not in self.argument_roles:
            self.argument_roles.add(key)
            value.role, value.unit, value.param = role, unit, param
        self.arguments.append(value)
        return value

    def result(self, value, role, unit, param, expected):
        key = (role, unit["name"], param["name"])
        if value.dtype == expected and key not in self.result_roles:
            self.result_roles.add(key)
            value.role, value.unit, value.param = role, unit, param
        self.results.append(value)

    def cast(self, value, to):
        if value.dtype == to:
            return value
        out = self.tensor(value.shape, to)
        self.body.append(Operation("cast", [value], [out]))
        return out

    def casts(self, value, chain):
        for to in chain:
            value = self.cast(value, to)
        return value

    def add(self, a, b):
        b = self.cast(b, a.dtype)
        out = self.tensor(a.shape, a.dtype)
        self.body.append(Operation("add", [a, b], [out]))
        return out

    def shard(self, unit, param):
        """A new shard of a gradient."""
        grad = self.precision(unit, param).grad.name
        return self.tensor(shard_shape(self.grid, unit, param), grad)

    def precision(self, unit, param):
        return self.precisions[unit["name"], param["name"]]

    def gather(self, step):
        unit = unit_named(self.program, step["gather"])
        if unit["name"] not in self.shards:
            self.shards[unit["name"]] = [
                self.argument(
                    shard_shape(self.grid, unit, p), p["storage"], "shard", unit, p
                )
                for p in unit["params"]
            ]
        results = [
            self.tensor(p["shape"], self.precision(unit, p).param.name)
            for p in unit["params"]
        ]
        operands = self.shards[unit["name"]]
        self.body.append(
            Operation("gather", operands, results, unit, unit["params"])
        )
        for p, value in zip(unit["params"], results):
            self.weights[unit["name"], p["name"]] = value
            expected = value.dtype
            chain = step.get("casts", {}).get(p["name"], [])
            out = self.casts(value, chain if dtype(expected).floating else [])
            if out not in self.results:
                self.result(out, "full", unit, p, expected)

    def term(self, unit, param, term):
        weight = self.weights.get((unit["name"], param["name"]))
        if term.get("weight") and weight:
            value = weight
        else:
            role = None
            if term["dtype"] == self.precision(unit, param).param.name:
                role = "full_grad"  # it promises the param dtype
            value = self.argument(param["shape"], term["dtype"], role, unit, param)
        return self.casts(value, term.get("casts", []))

    def gradient(self, unit, grad):
        param = param_named(unit, grad["param"])
        total = None
        for term in grad["terms"]:
            value = self.term(unit, param, term)
            total = value if total is None else self.add(total, value)
        return self.casts(total, grad.get("casts", []))

    def reduce(self, step):
        unit = unit_named(self.program, step["reduce"])
        params = [param_named(unit, g["param"]) for g in step["grads"]]
        operands = [self.gradient(unit, g) for g in step["grads"]]
        shards = [self.shard(unit, p) for p in params]
        self.body.append(Operation("reduce", operands, shards, unit, params))
        for grad, param, shard in zip(step["grads"], params, shards):
            if grad.get("old"):
                shard = self.add(self.argument(shard.shape, shard.dtype), shard)
            self.reduced(unit, param, grad, shard)

    def reduced(self, unit, param, grad, shard):
        """What becomes of a shard."""
        key = (unit["name"], param["name"])
        if grad.get("add") and key in self.totals:
            shard = self.add(self.totals[key], shard)
        self.totals[key] = shard
        out = self.casts(shard, grad.get("result_casts", []))
        expected = self.precision(unit, param).grad.name
        self.result(out, "shard_grad", unit, param, expected)

    def bucket(self, unit, params, step):
        wire = self.precision(unit, params[0]).reduce.name
        name = f"{self.program['name']}.b{len(self.buckets)}"
        model = self.models[unit["name"]]
        bucket = Bucket(
            name, unit, params, step.get("align", 128), wire, model,
            step.get("accumulate", "wire"),
        )
        self.buckets.append(bucket)
        return bucket

    def on(self, bucket, kind, operands, results):
        self.body.append(Operation(kind, operands, results, bucket=bucket))

    def reduce_scatter(self, bucket, operands):
        """The flat shard of one microbatch."""
        length = bucket.layout.row_elements
        packed = self.tensor((bucket.model.grid.w, length), bucket.wire)
        self.on(bucket, "pack", operands, [packed])
        flat = self.tensor((length,), bucket.wire)
        self.on(bucket, "reduce_scatter", [packed], [flat])
        return flat

    def unpack(self, bucket, step, flat):
        """All-reduce and split; yields the shards."""
        if bucket.how.all_reduce:
            whole = self.tensor(flat.shape, flat.dtype)
            self.on(bucket, "all_reduce", [flat], [whole])
            flat = whole
        shards = [self.shard(bucket.unit, p) for p in bucket.params]
        old = []
        if step.get("split_add"):
            old = [self.argument(s.shape, s.dtype) for s in shards]
        self.on(bucket, "split", [flat, *old], shards)
        return shards

    def partial(self, step):
        unit = unit_named(self.program, step["partial"])
        last = step["microbatches"][-1]
        params = [param_named(unit, g["param"]) for g in last]
        parts = [params] if step.get("joint") else [[p] for p in params]
        buckets = [self.bucket(unit, p, step) for p in parts]
        sums = [None] * len(buckets)
        if step.get("enters"):
            sums = [
                self.argument((b.layout.row_elements,), b.wire) for b in buckets
            ]
        for grads in step["microbatches"]:
            operands = iter([self.gradient(unit, g) for g in grads])
            for i, bucket in enumerate(buckets):
                own = [next(operands) for _ in bucket.params]
                flat = self.reduce_scatter(bucket, own)
                sums[i] = flat if sums[i] is None else self.add(sums[i], flat)
        if step.get("leaves"):
            self.results += sums
        grads = iter(last)
        for bucket, flat in zip(buckets, sums):
            for param, shard in zip(bucket.params, self.unpack(bucket, step, flat)):
                self.reduced(unit, param, next(grads), shard)


def operations(program, grid):
    builder = _Builder(program, grid)
    for step in program["steps"]:
        kind = next(k for k in ("gather", "reduce", "partial") if k in step)
        getattr(builder, kind)(step)
    return Operations(
        builder.arguments, builder.body, builder.results, builder.buckets
    )
