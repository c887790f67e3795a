# Runs the kernels of a local op in the interpreter and checks what they write.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from dataclasses import dataclass

import numpy as np

from . import reference
from .interpreter import Counts, Memory, PtxError, launch
from .interpreter.memory import WRITTEN
from fsdp_test.oracle import dtypes

THREADS = 256
BUCKET_ALIGNMENT = 128


class WrongResult(Exception):
    """An output differs from the oracle's, or was not written."""


@dataclass
class Placement:
    """Where buffers lie: offsets from a multiple of 4096, in elements."""

    members: list
    bucket: int = 0  # bytes
    in_place: bool = False  # the existing shards are the results
    member_bytes: int = 0  # that the members lie further on

    @staticmethod
    def aligned(op):
        return Placement([0] * len(op.member_dtypes))

    @staticmethod
    def random(op, rng):
        """Mostly any multiple of an element's size; the bucket at times at any
        byte, and a byte bucket always."""
        is_bytes = op.layout.wire is None or rng.random() < 0.25
        return Placement(
            [int(n) for n in rng.integers(0, 17, len(op.member_dtypes))],
            int(rng.integers(0, 17)) * (1 if is_bytes else op.layout.wire.size),
            in_place=bool(op.adds and rng.random() < 0.5),
        )


def _operands(op, placement, rng, values):
    """The memory of one execution: (memory, members, old shards, bucket)."""
    memory = Memory()

    def member(index, what, **arguments):
        t = op.member_dtypes[index]
        name = f"{what} {index}"
        size = op.member_elements(index) * t.size
        at = placement.members[index] * t.size + placement.member_bytes
        return memory.add(name, size, at, **arguments)

    count = range(len(op.member_dtypes))
    values = values or [
        reference.random_values(rng, op.member_dtypes[i], op.member_elements(i))
        for i in count
    ]
    content = [v.view(np.uint8) for v in values]
    size = op.rows * op.layout.row_bytes
    if op.packs:
        members = [member(i, "member", content=content[i]) for i in count]
        bucket = memory.add("bucket", size, placement.bucket, writable=True)
        return memory, members, [], bucket, values, None
    rows = reference.bucket_values(op, rng)
    bucket = memory.add(
        "bucket", size, placement.bucket, content=rows.reshape(-1),
        readable=reference.readable(op).reshape(-1),
    )
    if placement.in_place:
        members = [
            member(i, "member", content=content[i], writable=True) for i in count
        ]
        return memory, members, members, bucket, values, rows
    members = [member(i, "member", writable=True) for i in count]
    old = [member(i, "old", content=content[i]) for i in count] if op.adds else []
    return memory, members, old, bucket, values, rows


def _check(memory, buffer, expected, t, what):
    states = memory.states_of(buffer)
    missing = np.flatnonzero(states != WRITTEN)
    if missing.size:
        raise WrongResult(f"{what}: byte {missing[0]} of {buffer.size} is not written")
    actual = dtypes.from_bytes(memory.bytes_of(buffer), t)
    wrong = dtypes.differences(expected, actual, t)
    if wrong.size:
        at = int(wrong[0])
        raise WrongResult(
            f"{what}: element {at} ({wrong.size} of {actual.size} differ): expected "
            f"{dtypes.show(expected[at], t)}, got {dtypes.show(actual[at], t)}"
        )


def _check_bucket(op, memory, bucket, rows):
    """By member, so that a NaN is compared as one, then the gaps."""
    data = memory.bytes_of(bucket).reshape(rows.shape)
    gaps = np.ones(rows.shape[1], bool)
    states = memory.states_of(bucket)
    missing = np.flatnonzero(states != WRITTEN)
    if missing.size:
        row, byte = divmod(int(missing[0]), rows.shape[1])
        raise WrongResult(f"bucket: byte {byte} of row {row} is not written")
    for index, layout in enumerate(op.layout.layouts):
        t, begin = op.layout.dtypes[index], op.layout.offsets[index]
        end = begin + layout.elements * t.size
        gaps[begin:end] = False
        expected = dtypes.from_bytes(rows[:, begin:end].tobytes(), t)
        actual = dtypes.from_bytes(data[:, begin:end].tobytes(), t)
        wrong = dtypes.differences(expected, actual, t)
        if wrong.size:
            row, at = divmod(int(wrong[0]), layout.elements)
            raise WrongResult(
                f"bucket, member {index}: element {at} of row {row} "
                f"({wrong.size} of {actual.size} differ): expected "
                f"{dtypes.show(expected[wrong[0]], t)}, got "
                f"{dtypes.show(actual[wrong[0]], t)}"
            )
    if data[:, gaps].any():
        raise WrongResult("bucket: a gap is not zero")


def execute(
    module, launches, placement, seed, counts=None, check=True, values=None
):
    """Runs `launches`, all those of one op, on random data, or with `values` of
    the members that are read. Returns the counts; raises WrongResult or
    PtxError."""
    op = launches[0].op
    rng = np.random.default_rng(seed)
    memory, members, old, bucket, values, rows = _operands(
        op, placement, rng, values
    )
    tables = {}
    for part in launches:
        name = f"{part.kernel}_tiles"
        # A second kernel's name ends with a number, its table's too.
        name = _table_of(module, part.kernel)
        data = module.globals[name]
        tables[name] = memory.add(
            name, data.size, content=data, misalignment=0
        )
    memory.seal()
    counts = counts or Counts()
    for part in launches:
        chosen = slice(part.first, part.first + part.count)
        addresses = members[chosen] + old[chosen] + [bucket]
        params = np.array([b.address for b in addresses], np.uint64)
        launch(
            module, part.kernel, part.blocks, THREADS, params, memory, tables, counts
        )
    if not check:
        return counts
    if op.packs:
        _check_bucket(op, memory, bucket, reference.packed(op, values))
    else:
        expected = reference.unpacked(op, rows, values if op.adds else None)
        for index, buffer in enumerate(members):
            t = op.member_dtypes[index]
            _check(memory, buffer, expected[index], t, f"member {index}")
    return counts


def _table_of(module, kernel):
    """The one global that the kernel's instructions name."""
    for block in module.kernels[kernel].blocks:
        for instruction in block.instructions:
            for operand in instruction.operands:
                if isinstance(operand, str) and operand in module.globals:
                    return operand
    raise PtxError(f"{kernel} refers to no table")
