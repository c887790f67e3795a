# Random cases whose answers come from the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# In the same format as a cases file, so that both runners take them: shapes
# with empty and uneven shards on any dimension, any mix of dtypes, every row of
# the division table, values around the edges of their types. A case is a
# function of the seed and its number alone.

from math import prod
from random import Random

import numpy as np

from fsdp_test.edges import EDGES
from fsdp_test.oracle import buckets, dtypes, reduction
from fsdp_test.oracle.description import units_of
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import ShardLayout
from fsdp_test.oracle.precision import resolve

from .bucket_case import HandWritten, options_of, plan_fields, precisions_of
from .values import tensor

GRIDS = [
    {"shape": [1]}, {"shape": [2]}, {"shape": [3]}, {"shape": [4]}, {"shape": [5]},
    {"shape": [8]},
    {"shape": [2, 2], "shard_axes": [1], "replicate_axes": [0]},
    {"shape": [3, 2], "shard_axes": [1], "replicate_axes": [0]},
    {"shape": [2, 3], "shard_axes": [0], "replicate_axes": [1]},
]
FLOATS = ["f16", "bf16", "f32", "f64"]
OPAQUE = ["i8", "i16", "i32", "i64"]


def _number(rng):
    if rng.random() < 0.1:
        return rng.choice(EDGES)
    return rng.gauss(0, 1) * 2.0 ** rng.randint(-4, 8)


def _values(rng, t, count):
    if dtype(t).floating:
        return [_number(rng) for _ in range(count)]
    return [rng.randint(-100, 100) for _ in range(count)]


def _listed(carrier, t):
    """A carrier as the numbers of a case."""
    if not t.floating:
        return carrier.tolist()
    out = dtypes.widen(carrier, t).astype(np.float64).tolist()
    return [v if np.isfinite(v) else str(v) for v in out]


def _param(rng, name, opaque):
    rank = rng.randint(1, 3)
    shape = [rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 9, 17]) for _ in range(rank)]
    if rng.random() < 0.1:
        shape = [rng.randint(200, 1500)]
    param = {"name": name, "shape": shape}
    param["shard_dim"] = rng.randrange(len(shape))
    if opaque and rng.random() < 0.2:
        return dict(param, storage=rng.choice(OPAQUE), frozen=True)
    param["storage"] = rng.choice(FLOATS)
    param["precision"] = _precision(rng, 0.3)
    return param


def _precision(rng, chance):
    keys = [k for k in ("param", "reduce", "grad") if rng.random() < chance]
    return {k: rng.choice(FLOATS) for k in keys}


def _unit(rng, name, opaque=False):
    params = [_param(rng, f"{name}.p{i}", opaque) for i in range(rng.randint(1, 5))]
    return {"name": name, "precision": _precision(rng, 0.5), "params": params}


def _base(rng, kind, name, units):
    grid = rng.choice(GRIDS)
    case = {"id": name, "kind": kind, "grid": grid, "units": units}
    case["options"] = {"align": rng.choice([1, 1, 2, 16, 128])}
    case["W"] = units_of(case)[0].grid.w
    return case


def _bucket(case, kind):
    """The one bucket over all members that fit one wire."""
    unit = units_of(case)[0]
    precisions = resolve(unit)
    if kind == "gather":
        joint = {precisions[p.name].param for p in unit.params}
        t = joint.pop() if len(joint) == 1 else None
        wire = t.name if t and t.floating else "bytes"
        members = unit.params
    else:
        wire = precisions[unit.params[0].name].reduce.name
        members = [p for p in unit.params if precisions[p.name].reduce.name == wire]
    names = [p.name for p in members]
    case["inputs"] = {"bucket": {"kind": kind, "wire": wire, "members": names}}
    return HandWritten(case)


def _expect_segments(case, hand, packed_type, segments):
    """`segments[m][r]`: member m's segment in row r."""
    names = [p.name for p in hand.params]
    case["expected"] = {
        "type": packed_type,
        "offset_bytes": dict(zip(names, hand.layout.offsets)),
        "row_bytes": hand.layout.row_bytes,
        "rows": [
            {
                name: _listed(segments[m][r], hand.member_dtypes[m])
                for m, name in enumerate(names)
            }
            for r in range(case["W"])
        ],
    }


def _chunk_cat(rng, name):
    case = _base(rng, "chunk_cat", name, [_unit(rng, "u")])
    hand = _bucket(case, "reduce")
    how = reduction.Plan(divide=rng.choice([None, None, 2, 3, 1.5, 300]))
    if how.divide:
        case["inputs"]["divide"] = how.divide
    tensors, segments = {}, []
    for p, layout in zip(hand.params, hand.layout.layouts):
        t = rng.choice(FLOATS)
        values = _values(rng, t, prod(p.shape))
        tensors[p.name] = {"dtype": t, "values": values}
        source, full = tensor(tensors[p.name], p.shape, 0)
        packed = reduction.pack_gradient(full, source, hand.wire, how)
        segments.append(layout.cut(packed))
    case["inputs"]["tensors"] = tensors
    _expect_segments(case, hand, hand.packed_type, segments)
    return case


def _concat(rng, name):
    case = _base(rng, "concat", name, [_unit(rng, "u", opaque=True)])
    hand = _bucket(case, "gather")
    tensors, segments, full = {}, [], {}
    for p, layout, to in zip(hand.params, hand.layout.layouts, hand.member_dtypes):
        values = _values(rng, p.storage, prod(p.shape))
        tensors[p.name] = {"values": values}
        _, stored = tensor(tensors[p.name], p.shape, 0, p.storage)
        result = dtypes.cast(stored, p.storage, to)
        segments.append(layout.cut(result))
        full[p.name] = {"dtype": to.name, "values": _listed(result, to)}
    case["inputs"]["tensors"] = tensors
    _expect_segments(case, hand, hand.flat_type, segments)
    case["expected"]["full"] = full
    return case


def _steps(rng, case, precisions):
    """One to three microbatches; later ones may leave parameters out."""
    ranks = prod(case["grid"]["shape"])
    steps = []
    for s in range(rng.choice([1, 1, 2, 3])):
        grads = {}
        for unit in case["units"]:
            for p in unit["params"]:
                if s and rng.random() < 0.3:
                    continue
                own = precisions[p["name"]].param.name
                t = own if rng.random() < 0.7 else rng.choice(FLOATS)
                values = [_values(rng, t, prod(p["shape"])) for _ in range(ranks)]
                grads[p["name"]] = {"dtype": t, "ranks": values}
        if grads:
            steps.append({"grads": grads})
    return steps


def _reduce(rng, name):
    case = _base(
        rng, "reduce", name, [_unit(rng, f"u{i}") for i in range(rng.randint(1, 2))]
    )
    ranks = prod(case["grid"]["shape"])
    for unit in case["units"]:
        if rng.random() < 0.3:
            unit["reduction"] = "sum"
        if rng.random() < 0.4:
            unit["divide_factor"] = rng.choice([1, 2, 3, 6, 7.5, 300, ranks, case["W"]])
    if rng.random() < 0.3:
        case["options"]["max_bytes"] = rng.choice([64, 256, 1024, 4096])
    units = units_of(case)
    precisions = precisions_of(case, units)
    steps = _steps(rng, case, precisions)
    case["inputs"] = {"steps": steps}
    last = buckets.reduce_buckets(
        units, precisions, options_of(case), steps[-1]["grads"]
    )
    case["expected"] = {
        "buckets": [
            dict(
                plan_fields(b.plan),
                wire=b.wire.name,
                members=[p.name for _, p, _ in b.members],
                row_bytes=b.layout.row_bytes,
            )
            for b in last
        ],
        "shards": {
            p.name: _shards(unit, p, precisions[p.name], steps)
            for unit in units
            for p in unit.params
        },
    }
    return case


def _shards(unit, p, precision, steps):
    layout = ShardLayout(p.shape, p.shard_dim, unit.grid.w)
    reducer = reduction.GradientReducer(unit, p, layout, precision)
    for step in steps:
        if p.name in step["grads"]:
            spec = step["grads"][p.name]
            full = [tensor(spec, p.shape, r)[1] for r in range(unit.grid.ranks)]
            reducer.step(full, dtype(spec["dtype"]))
    return {
        "dtype": reducer.grad.name,
        "ranks": [_listed(s, reducer.grad) for s in reducer.shards],
    }


def cases(count, seed):
    makers = [_reduce, _concat, _chunk_cat, _reduce]
    for i in range(count):
        rng = Random(f"{seed}/{i}")
        make = makers[i % len(makers)]
        kind = make.__name__.strip("_").replace("_", "-")
        yield make(rng, f"random-{seed}-{i}-{kind}")
