# What a local op must write, by the oracle, and adversarial inputs.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import numpy as np

from fsdp_test.edges import EDGES, TIE_HALVES
from fsdp_test.oracle import dtypes
from fsdp_test.oracle.dtypes import F32


def random_values(rng, t, count):
    """`count` elements of `t`: ordinary numbers, edges, ties, any bits at all."""
    kind = f"u{t.size}"
    bits = rng.integers(0, 256, count * t.size, np.uint8).view(kind)
    if not t.floating:
        return bits.view(t.carrier)
    with np.errstate(all="ignore"):
        ordinary = rng.standard_normal(count) * 2.0 ** rng.integers(-20, 16, count)
        edges = np.array(EDGES)[rng.integers(0, len(EDGES), count)]
        choice = rng.integers(0, 4, count)
        values = np.where(choice == 0, edges, ordinary)
        result = dtypes.narrow(values, t)
    patterns = dtypes.bits(result).copy()
    if t is F32:  # ties of bf16 and of f16, and their neighbours
        low = rng.integers(0, 2**16, count).astype(kind)
        ends = np.array(TIE_HALVES, kind)
        low = np.where(rng.random(count) < 0.7, ends[low % ends.size], low)
        tied = (patterns & np.uint32(0xFFFF0000)) | low
        patterns = np.where(choice == 1, tied, patterns)
    patterns = np.where(choice == 2, bits, patterns)
    return patterns.astype(kind).view(t.carrier)


def _segments(op, values, share):
    """Row bytes out of each member's shares; `share` turns one into the wire's."""
    layouts = op.layout.layouts
    if op.is_flat:
        rows = [[v] for v in values]
    else:
        rows = [layout.cut(v) for layout, v in zip(layouts, values)]
    return np.stack(
        [
            op.layout.pack([share(i, rows[i][r]) for i in range(len(values))])
            for r in range(op.rows)
        ]
    )


def packed(op, values):
    """The bucket's bytes, by rows, of members with `values`."""

    def share(index, value):
        wire = op.layout.dtypes[index]
        value = dtypes.cast(value, op.member_dtypes[index], wire)
        return dtypes.divide(value, wire, op.divide) if op.divide else value

    return _segments(op, values, share)


def unpacked(op, rows, old):
    """The members' values of a bucket's bytes; `old`: existing shards, or None."""
    shares = [op.layout.unpack(row) for row in rows]
    result = []
    for index, layout in enumerate(op.layout.layouts):
        wire, to = op.layout.dtypes[index], op.member_dtypes[index]
        parts = [row[index] for row in shares]
        value = parts[0] if op.is_flat else layout.join(parts)
        if op.divide:
            value = dtypes.divide(value, wire, op.divide)
        value = dtypes.cast(value, wire, to)
        if old is not None:
            value = dtypes.add(old[index], value, to)
        result.append(value)
    return result


def bucket_values(op, rng):
    """Bytes of a bucket that is read: every element of every segment random."""
    rows = np.zeros((op.rows, op.layout.row_bytes), np.uint8)
    for offset, layout, t in zip(op.layout.offsets, op.layout.layouts, op.layout.dtypes):
        size = layout.elements * t.size
        values = random_values(rng, t, op.rows * layout.elements)
        rows[:, offset : offset + size] = values.view(np.uint8).reshape(op.rows, size)
    return rows


def readable(op):
    """A mask over a bucket that is read: gaps never are, and padding only by
    `split`, which copies whole shards."""
    mask = np.zeros((op.rows, op.layout.row_bytes), np.uint8)
    for offset, layout, t in zip(op.layout.offsets, op.layout.layouts, op.layout.dtypes):
        ones = np.ones(layout.outer * layout.line, np.uint8)
        shares = layout.cut(ones)
        for row in range(op.rows):
            share = np.ones(layout.elements, np.uint8) if op.is_flat else shares[row]
            end = offset + layout.elements * t.size
            mask[row, offset:end] = np.repeat(share, t.size)
    return mask
