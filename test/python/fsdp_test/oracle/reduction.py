# The division table, the reductions, and one whole gradient reduction.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from dataclasses import dataclass
from typing import Optional

import numpy as np

from . import dtypes
from .dtypes import BF16, F16


@dataclass(frozen=True)
class Plan:
    """How a bucket's division is carried out."""

    reduce_scatter: str = "sum"
    premul: Optional[float] = None
    all_reduce: Optional[str] = None
    divide: Optional[float] = None
    split_divide: Optional[float] = None
    accumulate: Optional[str] = None


def predivisor(divisor):
    q = 1
    while divisor % q == 0 and divisor / q > q:
        q *= 2
    return q


def not_one(x):
    return None if x == 1 else x


def plan(unit, wire, accumulate="wire", average="before"):
    """The row of the division table for a unit and a wire dtype."""
    grid, d = unit.grid, unit.divisor
    wide = accumulate if accumulate == "f32" and wire in (F16, BF16) else None
    after = "sum" if grid.replicate_axes else None
    if average == "after":
        return Plan("sum", None, after, None, not_one(d), wide)
    if wire is F16 and d != 1:
        q = predivisor(d)
        return Plan("sum", None, after, not_one(q), not_one(d / q), wide)
    if d == 1:
        return Plan("sum", None, after, None, None, wide)
    if unit.reduction == "sum":
        return Plan("sum", None, after, None, d, wide)
    if unit.factor is None:
        return Plan(
            "avg" if grid.w > 1 else "sum", None, "avg" if after else None,
            None, None, wide,
        )
    if d == grid.w:
        return Plan("avg", None, after, None, None, wide)
    return Plan("premul", dtypes.round_scalar(1 / d, wire), after, None, None, wide)


def ring(terms, last):
    """The terms in the order of a ring: downwards from the member before the
    last one, around, to the last one."""
    return terms[:last][::-1] + terms[last:][::-1]


def ring_chunk(length, members, size):
    """How many elements of all rows, one after the other, a ring adds in one
    order: a multiple of the number of segments that a member's part has."""
    bytes_of_all = length * members * size
    segments = 2
    while segments * members * 2**20 < bytes_of_all:
        segments += 1
    return -(-length // segments) * segments


def ring_members(offset, count, length, owner, members, size):
    """For each of `count` elements from `offset` of the owner's row of `length`
    elements, the member at which its sum ends."""
    places = owner * length + offset + np.arange(count)
    return places // ring_chunk(length, members, size)


def combine(terms, t, mode, premul=None, accumulate=None):
    """What a member of a group gets, from the members' rows. Each term is scaled
    first, then added in the order of the list."""
    size = len(terms)
    if mode == "premul":
        scale = premul
    elif mode == "avg" and size > 1:
        scale = dtypes.round_scalar(1 / size, t)
    else:
        scale = None

    def term(x):
        return x if scale is None else dtypes.multiply(x, t, scale)

    if accumulate == "f32":
        total = dtypes.widen(term(terms[0]), t)
        with np.errstate(all="ignore"):
            for x in terms[1:]:
                total = total + dtypes.widen(term(x), t)
        return dtypes.narrow(total, t)
    total = term(terms[0])
    for x in terms[1:]:
        total = dtypes.add(total, term(x), t)
    return total


def pack_gradient(gradient, source, wire, how):
    """`chunk_cat`: cast, then divide."""
    x = dtypes.cast(gradient, source, wire)
    return x if how.divide is None else dtypes.divide(x, wire, how.divide)


def unpack_gradient(x, wire, grad, how):
    """`split`: divide, then cast to the grad dtype."""
    if how.split_divide is not None:
        x = dtypes.divide(x, wire, how.split_divide)
    return dtypes.cast(x, wire, grad)


def reduce_scatter(grid, packed, wire, how, sum_order="rank", place=None):
    """Per rank, its share of its group's sum. `packed[rank]` holds one share
    per place of the shard group. `place`, for a ring: (where in its row a share
    begins, length of the row); by default a chunk is a row."""
    out = []
    for rank in range(grid.ranks):
        owner = grid.shard_place(rank)
        rows = [packed[m][owner] for m in grid.group(rank, grid.shard_axes)]
        scale = (wire, how.reduce_scatter, how.premul, how.accumulate)
        if sum_order == "rank":
            out.append(combine(rows, *scale))
            continue
        ends = np.full(rows[0].size, owner)
        if place is not None:
            ends = ring_members(
                place[0], rows[0].size, place[1], owner, len(rows), wire.size
            )
        share = np.zeros_like(rows[0])
        for last in np.unique(ends):
            here = ends == last
            share[here] = combine(ring([r[here] for r in rows], last), *scale)
        out.append(share)
    return out


def all_reduce(grid, shares, wire, how):
    if how.all_reduce is None:
        return shares
    return [
        combine(
            [shares[m] for m in grid.group(rank, grid.replicate_axes)],
            wire, how.all_reduce, None, how.accumulate,
        )
        for rank in range(grid.ranks)
    ]


class GradientReducer:
    """One trainable parameter over several microbatches: `step` takes every
    rank's full gradient and returns the accumulated shards, or None while a
    partial sum waits for its all-reduce."""

    def __init__(
        self, unit, param, layout, precision, accumulate="wire", average="before",
        sum_order="rank", place=None,
    ):
        self.grid = unit.grid
        self.layout = layout
        self.wire = precision.reduce
        self.grad = precision.grad
        self.how = plan(unit, self.wire, accumulate, average)
        self.sum_order, self.place = sum_order, place
        self.partial = None
        self.shards = None

    def step(self, gradients, source, with_all_reduce=True):
        packed = [
            self.layout.cut(pack_gradient(g, source, self.wire, self.how))
            for g in gradients
        ]
        shares = reduce_scatter(
            self.grid, packed, self.wire, self.how, self.sum_order, self.place
        )
        if self.partial is not None:
            shares = [
                dtypes.add(old, new, self.wire)
                for old, new in zip(self.partial, shares)
            ]
            self.partial = None
        if not with_all_reduce and self.how.all_reduce is not None:
            self.partial = shares
            return None
        shares = all_reduce(self.grid, shares, self.wire, self.how)
        new = [unpack_gradient(s, self.wire, self.grad, self.how) for s in shares]
        if self.shards is not None:
            new = [dtypes.add(o, n, self.grad) for o, n in zip(self.shards, new)]
        self.shards = new
        return new
