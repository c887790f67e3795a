# What a random program is: plain dictionaries, and their operations one by one.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A batch is one module: {"name", "grid", "options", "programs"}, for a batch that
# also runs on another number of ranks "other_grid", and "codegen_level" if it is
# not 0. A program is one entry:
#
#   {"name", "values", "units": [as in test/cases.json, with "profile"],
#    "steps": [GATHER | REDUCE]}
#   GATHER = {"gather": unit, "casts": {parameter: [dtype...]}}
#   REDUCE = {"reduce": unit, "grads": [GRAD]}
#   GRAD   = {"param", "terms": [TERM], "casts": [dtype...], "old": bool,
#             "add": bool, "result_casts": [dtype...]}
#   TERM   = {"dtype", "casts": [dtype...], "weight": bool}
#
# A gradient is the sum of its terms: arguments, or gathered weights. Terms are
# cast before the sum, the sum before the reduction. The shard is added to one
# that is an argument ("old"), or to the one of an earlier reduction ("add").
# Because everything is a list or has a default, a program is shrunk by dropping
# and shortening.
#
# `operations` turns a program into a line of single operations. The IR and the
# oracle's results are both made of these, so neither is made of the other.

from dataclasses import dataclass
from typing import Optional

from fsdp_ir import shard_shape

from oracle.description import units_of
from oracle.dtypes import dtype
from oracle.precision import resolve

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
class Operation:
    kind: str  # gather, reduce, cast, add
    operands: list
    results: list
    unit: Optional[dict] = None
    params: Optional[list] = None


@dataclass
class Operations:
    arguments: list
    body: list
    results: list


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
        self.arguments, self.body, self.results = [], [], []
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
        shards = [
            self.tensor(
                shard_shape(self.grid, unit, p), self.precision(unit, p).grad.name
            )
            for p in params
        ]
        self.body.append(Operation("reduce", operands, shards, unit, params))
        for grad, param, shard in zip(step["grads"], params, shards):
            key = (unit["name"], param["name"])
            if grad.get("old"):
                shard = self.add(self.argument(shard.shape, shard.dtype), shard)
            if grad.get("add") and key in self.totals:
                shard = self.add(self.totals[key], shard)
            self.totals[key] = shard
            out = self.casts(shard, grad.get("result_casts", []))
            expected = self.precision(unit, param).grad.name
            self.result(out, "shard_grad", unit, param, expected)


def operations(program, grid):
    builder = _Builder(program, grid)
    for step in program["steps"]:
        if "gather" in step:
            builder.gather(step)
        else:
            builder.reduce(step)
    return Operations(builder.arguments, builder.body, builder.results)
