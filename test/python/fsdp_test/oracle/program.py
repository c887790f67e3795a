# Whole programs, streamed: what `forward` and `backward` of declared units give.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sharding moves elements and never mixes them: element f of a result depends
# on element f of the inputs alone. So a program of any size is computed piece
# by piece, from fill values, without ever holding a whole tensor.

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Callable

from . import dtypes, reduction
from .dtypes import Dtype
from .fill import fill
from .precision import resolve

PIECE = 1 << 17


@dataclass
class Result:
    """A full result tensor; `piece(start, stop)` gives its elements."""

    name: str
    dtype: Dtype
    shape: tuple
    piece: Callable

    def pieces(self, pool=None):
        """(start, elements) in order, a few ahead on the pool's threads."""
        count = prod(self.shape)
        starts = range(0, count, PIECE)

        def compute(start):
            return start, self.piece(start, min(start + PIECE, count))

        if pool is None:
            yield from map(compute, starts)
            return
        ahead, pending = 8, []
        for start in starts:
            pending.append(pool.submit(compute, start))
            if len(pending) == ahead:
                yield pending.pop(0).result()
        for future in pending:
            yield future.result()


def forward(units, seed, profile="per_param"):
    """Shards filled by name, cast to the param dtype, gathered."""
    out = []
    for unit in units:
        for p in unit.params:
            t = resolve(unit, profile)[p.name].param

            def piece(start, stop, p=p, t=t):
                stored = fill(p.name, p.storage, start, stop, seed)
                return dtypes.cast(stored, p.storage, t)

            out.append(Result(p.name, t, p.shape, piece))
    return out


def backward(units, seed, profile="per_param", accumulate="wire"):
    """Full gradients in the param dtype, filled by name and rank, reduced into
    the grad dtype."""
    out = []
    for unit in units:
        precisions = resolve(unit, profile)
        for p in unit.trainable:
            piece = _backward_piece(unit, p, precisions[p.name], seed, accumulate)
            grad = precisions[p.name].grad
            out.append(Result(f"{p.name}.grad", grad, p.shape, piece))
    return out


def _backward_piece(unit, p, precision, seed, accumulate):
    grid, wire = unit.grid, precision.reduce
    how = reduction.plan(unit, wire, accumulate)
    # All ranks of a shard group contribute to every element, so any one rank
    # of each group stands for it; the groups of one replicate group follow.
    replicas = grid.group(0, grid.replicate_axes)
    groups = [grid.group(r, grid.shard_axes) for r in replicas]

    def piece(start, stop):
        def sent(rank):
            name = f"{p.name}.grad"
            full = fill(name, precision.param, start, stop, seed, rank)
            return reduction.pack_gradient(full, precision.param, wire, how)

        shares = [
            reduction.combine(
                [sent(rank) for rank in group], wire,
                how.reduce_scatter, how.premul, how.accumulate,
            )
            for group in groups
        ]
        if how.all_reduce is not None:
            total = reduction.combine(
                shares, wire, how.all_reduce, None, how.accumulate
            )
        else:
            total = shares[0]
        return reduction.unpack_gradient(total, wire, precision.grad, how)

    return piece


def results(units, entry, seed, profile="per_param"):
    return {"forward": forward, "backward": backward}[entry](units, seed, profile)


def threads(count=2):
    return ThreadPoolExecutor(count)
