# Arguments of a random program, and its results by the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A value is one flat carrier per grid rank. How arguments come about:
#   fill       fsdp-run's own, the same formula here; no file
#   edges      numbers at the edges of every type, garbage in the padding of shards
#   integers   small ones, and only on the first ranks, so that no sum is rounded
#              and a result does not depend on the number of ranks

from math import prod
from zlib import crc32

import numpy as np

from fsdp_test.edges import EDGES
from fsdp_test.oracle import dtypes, reduction
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.fill import fill
from fsdp_test.oracle.layout import ShardLayout

from .description import oracle_units
from .emit import names_of

SEED = 7


def layout_of(tensor, models):
    unit = models[tensor.unit["name"]]
    param = unit.param(tensor.param["name"])
    return ShardLayout(param.shape, param.shard_dim, unit.grid.w)


def _random(rng, kind, t, count):
    if not t.floating:  # any bits: nothing computes with them
        return np.frombuffer(rng.bytes(count * t.size), t.carrier)
    if kind == "integers":
        return dtypes.narrow(rng.integers(-4, 5, count).astype(np.float64), t)
    x = rng.standard_normal(count) * 2.0 ** rng.integers(-4, 9, count)
    edge = rng.random(count) < 0.1
    x[edge] = rng.choice(EDGES, int(edge.sum()))
    return dtypes.narrow(x, t)


class Arguments:
    """Each rank's local tensors, for the files and for the oracle."""

    def __init__(self, program, line, grid, shared_ranks=None):
        self.models = oracle_units(program, grid)
        self.ranks = prod(grid["shape"])
        self.values = {}  # tensor: carriers
        self.in_files = {}  # name: tensor; fsdp-run fills the others
        shared_ranks = shared_ranks or self.ranks
        for tensor, name in zip(line.arguments, names_of(line.arguments, "arg")):
            if program["values"] == "fill":
                self.values[tensor] = self._fill(tensor, name)
                continue
            # Not Python's hash, which is another one in every process.
            rng = np.random.default_rng(crc32(f"{program['name']} {name}".encode()))
            self.in_files[name] = tensor
            self.values[tensor] = self._random(
                rng, program["values"], tensor, shared_ranks
            )

    def _cut(self, tensor, full, padding=None):
        """Every rank's shard of one full tensor."""
        grid = self.models[tensor.unit["name"]].grid
        layout = layout_of(tensor, self.models)
        shares = layout.cut(full)
        if padding is not None:
            inside = layout.cut(np.ones(full.size, bool))
            shares = [np.where(i, s, padding) for i, s in zip(inside, shares)]
        return [shares[grid.shard_place(r)] for r in range(self.ranks)]

    def _fill(self, tensor, name):
        t = dtype(tensor.dtype)
        if tensor.role == "shard":
            count = prod(tensor.param["shape"])
            return self._cut(tensor, fill(name, t, 0, count, SEED))
        count = prod(tensor.shape)
        return [fill(name, t, 0, count, SEED, r) for r in range(self.ranks)]

    def _random(self, rng, kind, tensor, shared_ranks):
        t = dtype(tensor.dtype)
        if tensor.role == "shard":
            full = _random(rng, kind, t, prod(tensor.param["shape"]))
            garbage = None
            if kind == "edges":
                garbage = t.zeros(1)
                garbage.view(np.uint8)[:] = 0x7F if t.floating else 0xA5
            return self._cut(tensor, full, garbage)
        count = prod(tensor.shape)
        return [
            _random(rng, kind, t, count) if r < shared_ranks else t.zeros(count)
            for r in range(self.ranks)
        ]

    def file(self, rank):
        """{name: (dtype, shape, carrier)}"""
        return {
            name: (dtype(t.dtype), t.shape, self.values[t][rank])
            for name, t in self.in_files.items()
        }


def _gather(unit, operation, values):
    for p, source, result in zip(
        operation.params, operation.operands, operation.results
    ):
        layout = ShardLayout(p["shape"], p.get("shard_dim", 0), unit.grid.w)
        a, b = dtype(source.dtype), dtype(result.dtype)
        shares = [dtypes.cast(s, a, b) for s in values[source]]
        values[result] = [
            layout.join([shares[m] for m in unit.grid.group(r, unit.grid.shard_axes)])
            for r in range(unit.grid.ranks)
        ]


def _reduce(unit, operation, values, precisions, options, sum_order):
    for p, source, result in zip(
        operation.params, operation.operands, operation.results
    ):
        param = unit.param(p["name"])
        layout = ShardLayout(param.shape, param.shard_dim, unit.grid.w)
        precision = precisions[unit.name, param.name]
        reducer = reduction.GradientReducer(
            unit, param, layout, precision, options.get("accumulate", "wire"),
            options.get("average", "before"), sum_order,
        )
        values[result] = reducer.step(values[source], dtype(source.dtype))


def _pack(operation, values):
    """Every rank's rows, one after the other."""
    bucket, (result,) = operation.bucket, operation.results
    layout, wire = bucket.layout, dtype(bucket.wire)
    values[result] = []
    for rank in range(bucket.model.grid.ranks):
        shares = [
            part.cut(
                reduction.pack_gradient(
                    values[source][rank], dtype(source.dtype), wire, bucket.how
                )
            )
            for part, source in zip(layout.layouts, operation.operands)
        ]
        rows = [layout.pack(row) for row in zip(*shares)]
        values[result].append(np.concatenate(rows).view(wire.carrier))


def _split(operation, values):
    bucket = operation.bucket
    flat, *old = operation.operands
    for result in operation.results:
        values[result] = []
    for rank in range(bucket.model.grid.ranks):
        shares = bucket.layout.unpack(values[flat][rank].view(np.uint8))
        for i, (result, share) in enumerate(zip(operation.results, shares)):
            grad = dtype(result.dtype)
            new = reduction.unpack_gradient(
                share, dtype(bucket.wire), grad, bucket.how
            )
            if old:
                new = dtypes.add(values[old[i]][rank], new, grad)
            values[result].append(new)


def _spelled_out(operation, values, sum_order):
    """An operation on a bucket of the program's own."""
    bucket = operation.bucket
    grid, wire, how = bucket.model.grid, dtype(bucket.wire), bucket.how
    source, result = operation.operands[0], operation.results[0]
    if operation.kind == "pack":
        _pack(operation, values)
    elif operation.kind == "reduce_scatter":
        packed = [rows.reshape(grid.w, -1) for rows in values[source]]
        place = (0, bucket.layout.row_elements)
        values[result] = reduction.reduce_scatter(
            grid, packed, wire, how, sum_order, place
        )
    elif operation.kind == "all_reduce":
        values[result] = reduction.all_reduce(grid, values[source], wire, how)
    else:
        _split(operation, values)


def evaluate(line, arguments, precisions, options, sum_order="rank"):
    """{tensor: carriers}, results among them."""
    values = dict(arguments.values)
    for operation in line.body:
        if operation.kind in ("gather", "reduce"):
            unit = arguments.models[operation.unit["name"]]
        if operation.bucket:
            _spelled_out(operation, values, sum_order)
        elif operation.kind == "gather":
            _gather(unit, operation, values)
        elif operation.kind == "reduce":
            _reduce(unit, operation, values, precisions, options, sum_order)
        elif operation.kind == "cast":
            (source,), (result,) = operation.operands, operation.results
            a, b = dtype(source.dtype), dtype(result.dtype)
            values[result] = [dtypes.cast(v, a, b) for v in values[source]]
        else:
            (a, b), (result,) = operation.operands, operation.results
            t = dtype(result.dtype)
            values[result] = [
                dtypes.add(x, y, t) for x, y in zip(values[a], values[b])
            ]
    return values
