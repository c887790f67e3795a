# Which parameters share a collective, and where they lie in its rows.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from dataclasses import dataclass
from typing import Optional

from . import reduction
from .layout import BucketLayout, ShardLayout


@dataclass
class Options:
    profile: str = "per_param"
    align: int = 128
    gather: str = "bytes"
    scope: str = "unit"
    max_bytes: Optional[int] = None
    accumulate: str = "wire"
    average: str = "before"
    sum_order: str = "rank"
    unused: str = "skip"
    policy: str = ""
    opt_level: int = 2

    def __post_init__(self):
        if self.policy not in ("", "torch-fsdp2"):
            raise ValueError(f"the oracle knows no policy '{self.policy}'")
        if self.policy:
            self.align = 1


@dataclass
class Bucket:
    kind: str
    members: list  # (unit, param, wire dtype of the member)
    plan: Optional[reduction.Plan]
    align: int

    @property
    def w(self):
        return self.members[0][0].grid.w

    @property
    def wire(self):
        """None for a byte bucket."""
        first = self.members[0][2]
        same = all(t is first for _, _, t in self.members)
        return first if same and first.floating else None

    @property
    def layout(self):
        return bucket_layout(
            [p for _, p, _ in self.members],
            [t for _, _, t in self.members],
            self.wire, self.w, self.align,
        )

    @property
    def packed_bytes(self):
        return self.w * self.layout.row_bytes


def bucket_layout(params, member_dtypes, wire, w, align):
    layouts = [ShardLayout(p.shape, p.shard_dim, w) for p in params]
    return BucketLayout(layouts, member_dtypes, wire, align)


def _merge(items, key, options):
    """One open bucket per key; a bucket that would pass the limit is closed.
    Order = order of the first members."""
    buckets, open_buckets = [], {}
    for item in items:
        k = key(item)
        if options.opt_level == 0:
            buckets.append(item)
            continue
        current = open_buckets.get(k)
        if current is not None:
            joint = Bucket(
                item.kind, current.members + item.members, item.plan, item.align
            )
            limit = options.max_bytes
            if limit is None or joint.packed_bytes <= limit:
                current.members = joint.members
                continue
        buckets.append(item)
        open_buckets[k] = item
    return buckets


def _axes(unit):
    return (unit.grid.shape, unit.grid.shard_axes, unit.grid.replicate_axes)


def _scoped(unit, options):
    return unit.name if options.scope == "unit" else None


def gather_buckets(units, precisions, options):
    """One `unshard` of every unit. `precisions` is keyed by parameter name."""
    items = [
        Bucket("gather", [(u, p, precisions[p.name].param)], None, options.align)
        for u in units
        for p in u.params
    ]

    def key(item):
        unit, _, t = item.members[0]
        per_dtype = t.name if options.gather == "per-dtype" else None
        return (_scoped(unit, options), _axes(unit), per_dtype)

    return _merge(items, key, options)


def reduce_buckets(units, precisions, options, has_grad=None):
    """One `reduce_grads` of every unit over the parameters in `has_grad`
    (default: all trainable ones); none for a unit without any."""
    items = []
    for unit in units:
        named = [
            p for p in unit.trainable if has_grad is None or p.name in has_grad
        ]
        if named and options.unused == "zero":
            named = unit.trainable
        for p in named:
            wire = precisions[p.name].reduce
            how = reduction.plan(
                unit, wire, options.accumulate, options.average
            )
            items.append(Bucket("reduce", [(unit, p, wire)], how, options.align))

    def key(item):
        unit, _, wire = item.members[0]
        return (_scoped(unit, options), _axes(unit), wire.name, item.plan)

    return _merge(items, key, options)


def counts(gathers, reduces):
    return {
        "all_gather": len(gathers),
        "reduce_scatter": len(reduces),
        "all_reduce": sum(b.plan.all_reduce is not None for b in reduces),
    }
