# One op between members and a bucket, with the unit and the bucket that it needs.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# On buffers it says which memory it reads and writes, so that a kernel can be run
# on its own; on tensors it is what fsdp-compile takes, and an entry that consists of
# it makes that very launch.

from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import BucketLayout, ShardLayout

from .declarations import bucket_text, grid_text, unit_text
from .text import number, shaped, several

PACKS = ("chunk_cat", "concat")
FLAT = ("concat", "split")  # on shards, not on full tensors


class LocalOp:
    """`members` are (shape, shard dimension); `wires` their dtypes in the bucket,
    `dtypes` those outside of it; `wire` is the bucket's, or "bytes". Names get
    `number`, where a module has several ops."""

    ranks = 8
    align = 128
    divide = None
    adds = False
    number = ""

    def __init__(self, kind, members, dtypes, wire, wires=None):
        self.kind, self.members, self.dtypes, self.wire = kind, members, dtypes, wire
        self.wires = wires or [wire] * len(members)

    @property
    def layout(self):
        return BucketLayout(
            [ShardLayout(s, d, self.ranks) for s, d in self.members],
            [dtype(w) for w in self.wires],
            None if self.wire == "bytes" else dtype(self.wire),
            self.align,
        )

    def declarations(self):
        """The unit and the bucket."""
        params = []
        for i, ((shape, dim), wire) in enumerate(zip(self.members, self.wires)):
            param = {"name": f"p{self.number}_{i}", "shape": shape, "storage": wire}
            param |= {"shard_dim": dim, "precision": {"param": wire}}
            if dtype(wire).floating:
                param["precision"] |= {"reduce": wire, "grad": wire}
            else:
                param["frozen"] = True
            params.append(param)
        unit = {"name": f"u{self.number}", "params": params}
        kind = "gather" if self.kind in ("concat", "unchunk") else "reduce"
        names = [p["name"] for p in params]
        return [
            unit_text({"shape": [self.ranks]}, unit),
            bucket_text(f"b{self.number}", kind, unit["name"], names, self.wire, self.align),
        ]

    def _signature(self, form):
        """([name of a member], [its type], the bucket's type)"""
        layout, flat = self.layout, self.kind in FLAT
        element = "i8" if self.wire == "bytes" else self.wire
        rows = [] if flat else [self.ranks]
        types = [
            shaped(form, l.shard_shape if flat else l.shape, t)
            for l, t in zip(layout.layouts, self.dtypes)
        ]
        names = [f"%m{i}" for i in range(len(types))]
        return names, types, shaped(form, rows + [layout.row_elements], element)

    def _words(self, types):
        """(what follows the bucket's name, [name of an existing shard])"""
        words = f" divide {number(self.divide)}" if self.divide else ""
        if not self.adds:
            return words, []
        old = [f"%o{i}" for i in range(len(types))]
        return words + f" add({', '.join(old)} : {', '.join(types)})", old

    def on_buffers(self):
        names, types, bucket = self._signature("memref")
        words, old = self._words(types)
        joined, joined_types = ", ".join(names), ", ".join(types)
        args = [f"{n}: {t}" for n, t in zip(names, types)] + [f"%b: {bucket}"]
        args += [f"{o}: {t}" for o, t in zip(old, types)]
        if self.kind in PACKS:
            text = f"{joined} into @b{self.number}{words} outs(%b : {bucket})"
            text += f" : ({joined_types}) -> ()"
        else:
            text = f"%b of @b{self.number}{words} outs({joined} : {joined_types})"
            text += f" : ({bucket}) -> ()"
        head = f"func.func @f{self.number}({', '.join(args)}) {{"
        return [head, f"  fsdp.{self.kind} {text}", "  return", "}"]

    def on_tensors(self):
        names, types, bucket = self._signature("tensor")
        words, old = self._words(types)
        if self.kind in PACKS:
            preposition, inputs, results = "into", list(zip(names, types)), [bucket]
        else:
            preposition, inputs, results = "of", [("%b", bucket)], types
        args = ", ".join(f"{n}: {t}" for n, t in inputs + list(zip(old, types)))
        left, parts = several("r", len(results))
        operands = ", ".join(n for n, _ in inputs)
        operand_types, out = ", ".join(t for _, t in inputs), ", ".join(results)
        return [
            f"func.func @f{self.number}({args}) -> ({out}) {{",
            f"  {left} = fsdp.{self.kind} {operands} {preposition} @b{self.number}{words}"
            f" : ({operand_types}) -> ({out})",
            f"  return {', '.join(parts)} : {out}",
            "}",
        ]

    def text(self):
        """A module of its own, on buffers."""
        return module_of([self])


def module_of(ops, on_tensors=False):
    """Ops on as many ranks, with different numbers, as one module: it has one grid."""
    lines = [grid_text({"shape": [ops[0].ranks]})]
    for one in ops:
        lines += one.declarations()
        lines += one.on_tensors() if on_tensors else one.on_buffers()
    return "\n".join(lines) + "\n"


def by_ranks(ops):
    """{ranks: the ops on so many}, in the order of the first ones."""
    groups = {}
    for one in ops:
        groups.setdefault(one.ranks, []).append(one)
    return groups
