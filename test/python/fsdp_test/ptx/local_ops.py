# The local ops of a module in buffer form, in the oracle's terms.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Reads what fsdp-opt prints, so that any module can be given to the
# interpreter: grids, units, buckets, and the four ops on memrefs.

import re
from dataclasses import dataclass
from math import prod
from typing import Optional

from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import BucketLayout, ShardLayout

SYMBOL = r'@(?:"[^"]+"|[\w$.]+)'


class ModuleError(Exception):
    """The text is not what this reader knows."""


@dataclass
class LocalOp:
    """One op: what the oracle needs to say what it writes."""

    kind: str  # chunk_cat, concat, unchunk or split
    bucket: str
    w: int
    layout: BucketLayout
    member_dtypes: list  # of the operands or results
    divide: Optional[float]
    adds: bool

    @property
    def packs(self):
        return self.kind in ("chunk_cat", "concat")

    @property
    def rows(self):
        return self.w if self.kind in ("chunk_cat", "unchunk") else 1

    @property
    def is_flat(self):
        return self.kind in ("concat", "split")

    def member_elements(self, index):
        layout = self.layout.layouts[index]
        return layout.elements if self.is_flat else layout.outer * layout.line

    @property
    def is_empty(self):
        """No member has an element: nothing is launched."""
        return all(layout.elements == 0 for layout in self.layout.layouts)

    def __str__(self):
        wires = [t.name for t in self.layout.dtypes]
        pairs = sorted({f"{m}/{w}" for m, w in zip(self.member_dtypes, wires)})
        extra = f" divide {self.divide}" if self.divide else ""
        return (
            f"{self.kind} {self.bucket}: {self.w} ranks, "
            f"{len(self.member_dtypes)} members, {' '.join(pairs)}{extra}"
            + (" add" if self.adds else "")
        )


def _name(symbol):
    return symbol.lstrip("@").strip('"')


def _numbers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def _tensor(text):
    """(shape, dtype name) of the inside of `tensor<...>` or `memref<...>`."""
    match = re.match(r"((?:\d+x)*)(\w+)", text)
    return tuple(_numbers(match[1])), match[2]


@dataclass
class _Param:
    shape: tuple
    shard_dim: int
    wire: str  # in a byte bucket


def _units(text):
    """{unit name: (ranks in the shard group, {parameter name: _Param})}"""
    grids = {
        _name(name): _numbers(shape)
        for name, shape in re.findall(
            rf"shard\.grid ({SYMBOL})\s*\(shape = ([\dx]+)\)", text
        )
    }
    units = {}
    unit = re.compile(
        rf"fsdp\.unit ({SYMBOL}) on ({SYMBOL})([^{{]*)\{{(.*?)\n\s*\}}", re.S
    )
    for name, grid, head, body in unit.findall(text):
        shape = grids[_name(grid)]
        shard = re.search(r"shard_axes \[([^\]]*)\]", head)
        replicate = re.search(r"replicate_axes \[([^\]]*)\]", head)
        others = set(range(len(shape)))
        others -= set(_numbers(replicate[1])) if replicate else set()
        axes = _numbers(shard[1]) if shard else others
        precision = re.search(r"precision <([^>]*)>", head)
        params = {}
        for line in body.splitlines():
            match = re.match(rf"\s*fsdp\.param ({SYMBOL}) : tensor<([^>]*)>(.*)", line)
            if not match:
                continue
            dims, storage = _tensor(match[2])
            wire = storage
            if dtype(storage).floating:
                wire = _param_dtype(precision and precision[1]) or wire
            own = re.search(r"precision <([^>]*)>", match[3])
            wire = _param_dtype(own and own[1]) or wire
            shard_dim = re.search(r"shard_dim (\d+)", match[3])
            params[_name(match[1])] = _Param(
                dims, int(shard_dim[1]) if shard_dim else 0, wire
            )
        units[_name(name)] = (prod(shape[a] for a in axes), params)
    return units


def _param_dtype(entries):
    match = entries and re.search(r"param = (\w+)", entries)
    return match and match[1]


def _buckets(text):
    """{bucket name: (ranks, layout)}"""
    units = _units(text)
    found = {}
    bucket = re.compile(
        rf"fsdp\.bucket ({SYMBOL}) (?:gather|reduce) (.*) : (\w+)(?: align (\d+))?"
    )
    for line in text.splitlines():
        match = bucket.search(line)
        if not match:
            continue
        wire = None if match[3] == "bytes" else dtype(match[3])
        params, ranks = [], 1
        for unit, members in re.findall(rf"({SYMBOL})\[([^\]]*)\]", match[2]):
            ranks, declared = units[_name(unit)]
            params += [declared[_name(m)] for m in re.findall(SYMBOL, members)]
        layout = BucketLayout(
            [ShardLayout(p.shape, p.shard_dim, ranks) for p in params],
            [wire or dtype(p.wire) for p in params],
            wire,
            int(match[4] or 128),
        )
        found[_name(match[1])] = (ranks, layout)
    return found


def read_local_ops(text):
    """The local ops of `text`, in the order in which they come there."""
    buckets = _buckets(text)
    ops = []
    op = re.compile(
        rf"fsdp\.(chunk_cat|concat|unchunk|split) .*?(?:into|of) ({SYMBOL})(.*)"
    )
    for kind, bucket, rest in op.findall(text):
        outputs = re.search(r"outs\((.*?)\) :", rest)
        if not outputs:
            raise ModuleError(f"{kind} of {bucket} is not in buffer form")
        inputs = rest[outputs.end():]
        members = inputs if kind in ("chunk_cat", "concat") else outputs[1]
        divide = re.search(r"divide (\S+)", rest)
        ranks, layout = buckets[_name(bucket)]
        ops.append(
            LocalOp(
                kind,
                _name(bucket),
                ranks,
                layout,
                [dtype(_tensor(t)[1]) for t in re.findall(r"memref<([^>]*)", members)],
                float(divide[1]) if divide else None,
                "add(" in rest,
            )
        )
    return ops
