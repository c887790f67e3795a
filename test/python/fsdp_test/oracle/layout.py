# Shards, segments and rows.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A full tensor of shape s, cut on dimension k over W ranks, is a matrix of
# `outer` lines of `line` elements. A rank owns `inner` elements of every line:
# line elements r*inner to (r+1)*inner, padding beyond the end of the line.

from math import prod

import numpy as np

from .dtypes import I8


class ShardLayout:
    def __init__(self, shape, shard_dim, w):
        self.shape = tuple(shape)
        self.w = w
        size = self.shape[shard_dim]
        rest = prod(self.shape[shard_dim + 1 :])
        self.chunk = -(-size // w)
        self.outer = prod(self.shape[:shard_dim])
        self.inner = self.chunk * rest
        self.line = size * rest
        self.elements = self.outer * self.inner
        self.shard_shape = (
            self.shape[:shard_dim] + (self.chunk,) + self.shape[shard_dim + 1 :]
        )
        self.rows = [
            max(0, min(self.chunk, size - r * self.chunk)) for r in range(w)
        ]

    def cut(self, full):
        """The W shares of a full tensor, flat, padded with zero."""
        lines = np.zeros((self.outer, self.w * self.inner), full.dtype)
        lines[:, : self.line] = full.reshape(self.outer, self.line)
        return [
            lines[:, r * self.inner : (r + 1) * self.inner].reshape(-1)
            for r in range(self.w)
        ]

    def join(self, shares):
        """The full tensor, flat, from all shares; padding is not read."""
        lines = np.concatenate(
            [s.reshape(self.outer, self.inner) for s in shares], axis=1
        )
        return np.ascontiguousarray(lines[:, : self.line]).reshape(-1)


def round_up(x, multiple):
    return -(-x // multiple) * multiple


class BucketLayout:
    """Offsets of a bucket's members in one row. `wire` is None for a byte
    bucket; `dtypes` are the members' wire dtypes."""

    def __init__(self, layouts, dtypes, wire, align):
        self.layouts = layouts
        self.dtypes = dtypes
        self.wire = wire
        self.offsets = []
        end = 0
        for layout, t in zip(layouts, dtypes):
            self.offsets.append(round_up(end, align))
            end = self.offsets[-1] + layout.elements * t.size
        self.row_bytes = round_up(end, align)
        self.row_elements = self.row_bytes // (wire.size if wire else 1)

    def pack(self, shares):
        """One row's bytes from each member's share, gaps zero."""
        row = np.zeros(self.row_bytes, np.uint8)
        for offset, share in zip(self.offsets, shares):
            data = np.ascontiguousarray(share).view(np.uint8)
            row[offset : offset + data.size] = data
        return row

    def unpack(self, row):
        """The members' shares out of one row's bytes."""
        shares = []
        for offset, layout, t in zip(self.offsets, self.layouts, self.dtypes):
            data = row[offset : offset + layout.elements * t.size]
            shares.append(np.frombuffer(data.tobytes(), t.carrier))
        return shares

    @property
    def element_type(self):
        return self.wire or I8
