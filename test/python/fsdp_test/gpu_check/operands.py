# The memory of one launch: what lies in it, and whether what comes back is right.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# All operands lie in one allocation, with guard bytes between them, and go to
# the device in one copy. Outputs, gaps, padding and guards hold poison. What
# comes back is compared byte by byte: outputs with the oracle's, everything else
# with what was sent. For a memory checker each operand is an allocation of its
# own, of its exact size.

from dataclasses import dataclass, field

import numpy as np

from fsdp_test.edges import TIE_HALVES
from fsdp_test.oracle import dtypes
from fsdp_test.ptx import reference

POISON = 0xA5
GUARD = 512  # bytes at least, on both sides
ALIGNMENT = 512
PATTERNS = 1 << 16
LARGE = 1 << 20  # elements; beyond, most of the data is random bits


class Wrong(Exception):
    """What a launch left in memory is not what the oracle says."""


@dataclass
class Operand:
    name: str
    content: np.ndarray  # bytes before the launch
    misalignment: int = 0  # bytes
    expected: np.ndarray = None  # bytes afterwards; None: as before
    parts: list = field(default_factory=list)  # (begin, end, dtype) with NaNs

    @property
    def size(self):
        return self.content.size


# --- data ---------------------------------------------------------------------


def patterns(t, count):
    """All values of a 16-bit type, or the f32 values around ties; else None."""
    if t.size == 2 and count == PATTERNS:
        return np.arange(PATTERNS, dtype=np.uint16).view(t.carrier)
    if t.name == "f32" and count == PATTERNS * len(TIE_HALVES):
        upper = np.arange(PATTERNS, dtype=np.uint32) << np.uint32(16)
        lower = np.array(TIE_HALVES, np.uint32)
        return (upper[:, None] | lower).reshape(-1).view(t.carrier)
    return None


def values(rng, t, count, kind):
    known = patterns(t, count) if kind == "exhaustive" else None
    if known is not None:
        return known
    if count <= LARGE:
        return reference.random_values(rng, t, count)
    bits = rng.integers(0, 256, count * t.size, np.uint8).view(t.carrier)
    bits[:PATTERNS] = reference.random_values(rng, t, PATTERNS)
    return bits


def _bucket(rng, op, kind):
    """Bytes of a bucket that is read: poison where nothing may be read."""
    rows = np.full((op.rows, op.layout.row_bytes), POISON, np.uint8)
    for offset, layout, t in zip(op.layout.offsets, op.layout.layouts, op.layout.dtypes):
        size = layout.elements * t.size
        if op.is_flat:
            shares = [values(rng, t, layout.elements, kind)]
        else:
            shares = layout.cut(values(rng, t, layout.outer * layout.line, kind))
        for row, share in zip(rows, shares):
            row[offset : offset + size] = np.ascontiguousarray(share).view(np.uint8)
    rows[reference.readable(op) == 0] = POISON
    return rows


# --- operands of one op -------------------------------------------------------


class Operands:
    """Members, existing shards and the bucket of one launch of `op`."""

    def __init__(self, op, kind, placement, rng):
        self.op = op
        count = range(len(op.member_dtypes))
        need_values = op.packs or op.adds
        data = [
            values(rng, op.member_dtypes[i], op.member_elements(i), kind)
            for i in count
        ] if need_values else None
        if op.packs:
            members = [self._member("member", i, data[i], placement) for i in count]
            bucket = self._packed(data, placement)
            self.members, self.old, self.bucket = members, [], bucket
            return
        rows = _bucket(rng, op, kind)
        expected = reference.unpacked(op, rows, data if op.adds else None)
        self.bucket = Operand("bucket", rows.reshape(-1), placement.bucket)
        in_place = placement.in_place and op.adds
        self.members = [
            self._member("member", i, data[i] if in_place else None, placement)
            for i in count
        ]
        for operand, value, t in zip(self.members, expected, op.member_dtypes):
            operand.expected = value.view(np.uint8)
            operand.parts = [(0, operand.size, t)]
        self.old = self.members if in_place else [
            self._member("old", i, data[i], placement) for i in count if op.adds
        ]

    def _member(self, what, index, value, placement):
        t = self.op.member_dtypes[index]
        if value is None:
            size = self.op.member_elements(index) * t.size
            content = np.full(size, POISON, np.uint8)
        else:
            content = np.ascontiguousarray(value).view(np.uint8)
        return Operand(f"{what} {index}", content, placement.members[index] * t.size)

    def _packed(self, data, placement):
        op = self.op
        rows = reference.packed(op, data)
        operand = Operand(
            "bucket", np.full(rows.size, POISON, np.uint8), placement.bucket,
            rows.reshape(-1),
        )
        layout = op.layout
        for row in range(op.rows):
            for offset, l, t in zip(layout.offsets, layout.layouts, layout.dtypes):
                begin = row * layout.row_bytes + offset
                operand.parts.append((begin, begin + l.elements * t.size, t))
        return operand

    @property
    def all(self):
        distinct = {id(o): o for o in [*self.members, *self.old, self.bucket]}
        return list(distinct.values())


@dataclass
class Placement:
    """Where operands lie: elements (of the bucket: bytes) after a multiple of
    512 bytes."""

    members: list
    bucket: int = 0
    in_place: bool = False  # the results are the existing shards

    @staticmethod
    def aligned(op):
        return Placement([0] * len(op.member_dtypes))

    @staticmethod
    def anywhere(op, rng):
        """A byte bucket is at least as aligned as its largest element."""
        sizes = [t.size for t in op.layout.dtypes]
        return Placement(
            [int(n) for n in rng.integers(0, 17, len(op.member_dtypes))],
            int(rng.integers(0, 17)) * max(sizes), bool(rng.random() < 0.5),
        )


# --- memory of the device -----------------------------------------------------


def _compare(operand, actual):
    expected = operand.content if operand.expected is None else operand.expected
    if np.array_equal(expected, actual):
        return
    different = expected != actual
    for begin, end, t in operand.parts:  # a NaN may be any NaN
        part = slice(begin, end)
        if not different[part].any():
            continue
        want, have = (dtypes.from_bytes(a[part], t) for a in (expected, actual))
        wrong = dtypes.differences(want, have, t)
        if wrong.size:
            at = int(wrong[0])
            raise Wrong(
                f"{operand.name}: element {at} from byte {begin} ({wrong.size} of "
                f"{want.size} differ): expected {dtypes.show(want[at], t)}, got "
                f"{dtypes.show(have[at], t)}"
            )
        different[part] = False
    if different.any():
        at = int(np.flatnonzero(different)[0])
        raise Wrong(
            f"{operand.name}: byte {at} ({int(different.sum())} differ): expected "
            f"{expected[at]:#04x}, got {actual[at]:#04x}"
        )


class Arena:
    """One allocation for all operands of a launch, with guards between them."""

    def __init__(self, gpu):
        self.gpu, self.address, self.size = gpu, 0, 0

    def place(self, operands):
        """Copies the operands to the device; returns their addresses."""
        self.places, end = [], 0
        for operand in operands:
            begin = -(-(end + GUARD) // ALIGNMENT) * ALIGNMENT + operand.misalignment
            self.places.append(begin)
            end = begin + operand.size
        total = end + GUARD
        if total > self.size:
            self.free()
            self.address, self.size = self.gpu.allocate(total), total
        self.sent = np.full(total, POISON, np.uint8)
        for operand, begin in zip(operands, self.places):
            self.sent[begin : begin + operand.size] = operand.content
        self.gpu.upload(self.address, self.sent)
        return [self.address + begin for begin in self.places]

    def check(self, operands):
        """Compares what the device holds now."""
        data = np.empty_like(self.sent)
        self.gpu.download(self.address, data)
        guards = np.ones(data.size, bool)
        for operand, begin in zip(operands, self.places):
            guards[begin : begin + operand.size] = False
        touched = np.flatnonzero(guards & (data != POISON))
        if touched.size:
            at = int(touched[0])
            near = max((b, o.name) for o, b in zip(operands, self.places) if b <= at)
            raise Wrong(f"a byte that is no operand's is written, {at - near[0]} bytes "
                        f"after the begin of {near[1]}")
        for operand, begin in zip(operands, self.places):
            _compare(operand, data[begin : begin + operand.size])

    def free(self):
        if self.size:
            self.gpu.free(self.address)
        self.size = 0


class ExactAllocations:
    """An allocation per operand, for a memory checker: it sees one byte more."""

    def __init__(self, gpu):
        self.gpu, self.addresses = gpu, []

    def place(self, operands):
        self.addresses = []
        for operand in operands:
            # A base is aligned; a misaligned operand begins after it.
            address = self.gpu.allocate(operand.misalignment + operand.size)
            self.addresses.append(address)
            self.gpu.upload(address + operand.misalignment, operand.content)
        return [a + o.misalignment for a, o in zip(self.addresses, operands)]

    def check(self, operands):
        for operand, address in zip(operands, self.addresses):
            data = np.empty(operand.size, np.uint8)
            self.gpu.download(address + operand.misalignment, data)
            _compare(operand, data)
        for address in self.addresses:
            self.gpu.free(address)

    def free(self):
        pass
