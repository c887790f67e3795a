#!/usr/bin/python3
# Recomputes the tables of docs/Numerics.md that `<!-- vectors: KIND -->` marks.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The oracle computes; the tools are held to the oracle by test/cases.json and by
# scripts/random-programs. A kind without a table, or a table of an unknown
# kind, is an error. So is a pass of Passes.md that the document does not name.
#
#   check_numerics.py Numerics.md Passes.md

import re
import sys
from pathlib import Path

import numpy as np

from fsdp_test.oracle import dtypes, reduction
from fsdp_test.oracle.description import Grid, Unit
from fsdp_test.oracle.dtypes import F16, F32, dtype


def number(text, t):
    """A number, or the bits of one, as a carrier of one element."""
    text = text.strip()
    if text.startswith("0x"):
        out = t.zeros(1)
        dtypes.bits(out)[:] = int(text, 16)
        return out
    return dtypes.narrow(np.array([float(text)], np.float64), t)


def expect(row, text, got, t):
    want = number(text, t)
    if dtypes.differences(want, got, t).size:
        shown = dtypes.show(got, t)
        sys.exit(f"{' | '.join(row)}: expected {text}, computed {shown}")


def cast(row):
    source, value, to, bits = row[0], row[1], dtype(row[2]), row[3]
    got = dtypes.cast(number(value, dtype(source)), dtype(source), to)
    expect(row, bits, got, to)


def divide(row):
    wire, x, d, result = row
    t = dtype(wire)
    expect(row, result, dtypes.divide(number(x, t), t, float(d)), t)


def predivisor(row):
    d, q, rest = map(float, row)
    if (reduction.predivisor(d), d / q) != (q, rest):
        sys.exit(f"{' | '.join(row)}: computed {reduction.predivisor(d)}")


def average(unit, wire, terms):
    """One element, packed, reduced and divided."""
    how = reduction.plan(unit, wire)
    rows = [reduction.pack_gradient(x, wire, wire, how) for x in terms]
    return reduction.combine(rows, wire, how.reduce_scatter, how.premul), how


def unit_of(ranks):
    return Unit("u", [], Grid((ranks,), (0,), ()))


def f16_average(row):
    x, ranks, mean = number(row[0], F16), int(row[1]), row[2]
    got, how = average(unit_of(ranks), F16, [x] * ranks)
    expect(row, mean, reduction.unpack_gradient(got, F16, F16, how), F16)


def reduce(row):
    listed, wire, mode, default, wide = row
    t = dtype(wire)
    repeated = re.fullmatch(r"(\S+) \((\d+) times\)", listed)
    names = [repeated[1]] * int(repeated[2]) if repeated else listed.split(",")
    terms = [number(x, t) for x in names]
    expect(row, default, reduction.combine(terms, t, mode), t)
    expect(row, wide, reduction.combine(terms, t, mode, accumulate="f32"), t)


def mean(row):
    listed, wire, before, after = row[0].split(","), dtype(row[1]), row[2], row[3]
    terms = [number(x, wire) for x in listed]
    for average, want in (("before", before), ("after", after)):
        how = reduction.plan(unit_of(len(terms)), wire, average=average)
        rows = [reduction.pack_gradient(x, wire, wire, how) for x in terms]
        total = reduction.combine(rows, wire, how.reduce_scatter, how.premul)
        expect(row, want, reduction.unpack_gradient(total, wire, wire, how), wire)


def ring(row):
    listed, wire, by_rank, *by_owner = row
    t = dtype(wire)
    terms = [number(x, t) for x in listed.split(",")]
    expect(row, by_rank, reduction.combine(terms, t, "sum"), t)
    owners = [0, 1, 2, len(terms) - 1]
    for owner, want in zip(owners, by_owner):
        if want:
            ordered = reduction.ring(terms, owner)
            expect(row, want, reduction.combine(ordered, t, "sum"), t)


def ring_chunk(row):
    members, length, wire, chunk = int(row[0]), int(row[1]), row[2], int(row[3])
    got = reduction.ring_chunk(length, members, dtype(wire).size)
    if got != chunk:
        sys.exit(f"{' | '.join(row)}: computed {got}")


def add(row):
    t = dtype(row[0])
    expect(row, row[3], dtypes.add(number(row[1], t), number(row[2], t), t), t)


def grad_dtype(row):
    t = dtype(row[0])
    terms = [number(x, F32) for x in ("1", "1.0078125")]
    got, how = average(unit_of(2), F32, terms)
    expect(row, row[1], reduction.unpack_gradient(got, F32, t, how), t)


KINDS = {
    "cast": cast, "divide": divide, "predivisor": predivisor,
    "f16 average": f16_average, "reduce": reduce, "add": add,
    "grad dtype": grad_dtype, "average": mean, "ring": ring,
    "ring chunk": ring_chunk,
}


def tables(text):
    """(kind, rows) of every marked table, without its two header lines."""
    for match in re.finditer(r"<!-- vectors: (.*?) -->\n((?:\|.*\n)+)", text):
        lines = match[2].splitlines()[2:]
        yield match[1], [[c.strip() for c in x.strip("|").split("|")] for x in lines]


def main():
    text, passes = (Path(name).read_text() for name in sys.argv[1:])
    for name in re.findall(r"^### `-(\S+)`", passes, re.M):
        if f"`{name}`" not in text:
            sys.exit(f"no line says what {name} may change")
    found = list(tables(text))
    if sorted(k for k, _ in found) != sorted(KINDS):
        sys.exit(f"expected one table each of {sorted(KINDS)}")
    for kind, rows in found:
        if not rows:
            sys.exit(f"the table '{kind}' is empty")
        for row in rows:
            KINDS[kind](row)
    print(f"{sum(len(rows) for _, rows in found)} vectors")


if __name__ == "__main__":
    main()
