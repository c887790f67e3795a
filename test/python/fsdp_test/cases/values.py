# The numbers of a cases file as arrays, and comparisons that can speak.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from math import prod

import numpy as np

from fsdp_test.oracle import dtypes
from fsdp_test.oracle.dtypes import dtype


class Mismatch(Exception):
    """What was expected, what came, and where."""

    def __init__(self, what, expected, actual):
        super().__init__(f"{what}: expected {expected}, got {actual}")


class NotCovered(Exception):
    """The case needs something that does not exist yet; the message says what."""


def expect(what, expected, actual):
    if expected != actual:
        raise Mismatch(what, expected, actual)


def shared_tensors(document):
    """The cases of a file. A string `@name` in one stands for that one of the
    file's tensors, so that what many cases read is written once."""
    shared = document.get("tensors", {})

    def replaced(value):
        if isinstance(value, dict):
            return {k: replaced(v) for k, v in value.items()}
        if isinstance(value, list):
            return [replaced(v) for v in value]
        if isinstance(value, str) and value.startswith("@"):
            return shared[value[1:]]
        return value

    return replaced(document["cases"]) if shared else document["cases"]


def count_of(values, t):
    return len(values) // (2 * t.size) if isinstance(values, str) else len(values)


def numbers(values, t):
    """A list of numbers, `nan`, `inf`, `-inf` and 0x... patterns as a carrier; or
    one string of patterns, two digits a byte, without anything between them."""
    if isinstance(values, str):
        big_endian = np.frombuffer(bytes.fromhex(values), f">u{t.size}")
        out = t.zeros(big_endian.size)
        dtypes.bits(out)[:] = big_endian
        return out
    out = t.zeros(len(values))
    pattern = dtypes.bits(out)
    for i, v in enumerate(values):
        if isinstance(v, str) and v.lower().startswith("0x"):
            pattern[i] = int(v, 16)
        elif t.floating:
            out[i] = dtypes.narrow(np.array([float(v)], np.float64), t)[0]
        else:
            out[i] = int(v)
    return out


def tensor(spec, shape, rank, storage=None):
    """(dtype, flat carrier) of a tensor description on one rank."""
    t = dtype(spec["dtype"]) if "dtype" in spec else storage
    count = prod(shape)
    if "values" in spec:
        values = spec["values"]
    elif "ranks" in spec:
        values = spec["ranks"][rank]
    elif "fill" in spec:
        one = spec["fill"]
        values = [one[rank] if isinstance(one, list) else one] * count
    else:
        scope = {"__builtins__": {}, "r": rank}
        code = compile(spec["formula"], "formula", "eval")
        values = [eval(code, scope, {"i": i}) for i in range(count)]
    if count_of(values, t) != count:
        raise ValueError(f"{count_of(values, t)} values for a tensor of {count}")
    return t, numbers(values, t)


def expect_values(what, expected, actual, t):
    """`expected`: numbers of a case; `actual`: a carrier of type `t`."""
    want = numbers(expected, t)
    actual = np.asarray(actual).reshape(-1)
    expect(f"{what}, number of elements", want.size, actual.size)
    wrong = dtypes.differences(want, actual, t)
    if wrong.size:
        i = int(wrong[0])
        raise Mismatch(
            f"{what}[{i}] ({wrong.size} of {want.size} differ)",
            dtypes.show(want[i], t), dtypes.show(actual[i], t),
        )


def expect_rows(case, layout, member_dtypes, rows):
    """Segments of packed rows (bytes) against `expected.rows`; every byte
    outside the segments must be zero."""
    members = case["inputs"]["bucket"]["members"]
    expected = case["expected"]
    expect("number of rows", len(expected["rows"]), len(rows))
    for r, (want, row) in enumerate(zip(expected["rows"], rows)):
        expect(f"row {r}, bytes", expected["row_bytes"], row.size)
        inside = np.zeros(row.size, bool)
        for name, place, t in zip(members, layout.layouts, member_dtypes):
            begin = expected["offset_bytes"][name]
            end = begin + place.elements * t.size
            inside[begin:end] = True
            segment = dtypes.from_bytes(row[begin:end], t)
            expect_values(f"row {r}, {name}", want[name], segment, t)
        gaps = np.flatnonzero(row.astype(bool) & ~inside)
        if gaps.size:
            raise Mismatch(f"row {r}, gap byte {gaps[0]}", 0, int(row[gaps[0]]))
        if "row_hex" in expected:
            expect(f"row {r}", expected["row_hex"][r], row.tobytes().hex())
