# Runs local ops on buffers that start at every byte.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.misaligned
#
# Dense buckets, in which segments start at any byte, of every pair of dtypes,
# in every direction; the bucket starts at each of 16 consecutive bytes, and the
# members at each of the first 8, the size of the largest dtype. The interpreter
# refuses an access that is less aligned than it is long, as a device does.

import sys
from random import Random

from .compiler import compile_module
from .execution import Placement, WrongResult, execute
from .interpreter import PtxError, parse
from .random_modules import FLOATS, OPAQUE, Case, modules
from .run_kernels import launches_by_op

BUCKET_BYTES, MEMBER_BYTES = 16, 8
# An odd number of elements, several runs, rows of which some are short.
SHAPES = [([29], 0), ([4, 21], 1), ([3, 35, 2], 1)]
ODD = ([3], 0)  # one byte for every rank
LONG = ([1400, 9], 1)  # tiles of several runs, the second at an odd element


class Dense(Case):
    """Members of `dtypes` in a dense bucket, whose wire dtypes are `wires`."""

    def __init__(self, number, kind, wire, wires, dtypes, shapes, adds=False):
        super().__init__(Random(number), number, kind)
        self.ranks, self.align, self.wire = 3, 1, wire
        self.wires, self.dtypes, self.members = wires, dtypes, shapes
        self.divide = 3.0 if kind in ("chunk_cat", "split") else None
        self.adds = adds


def byte_buckets():
    """(wire dtypes, member dtypes, shapes): an odd byte, then every shape."""
    names = FLOATS + ["f64"]
    groups = [[(name, wire) for name in names] for wire in names]
    groups.append([(name, name) for name in OPAQUE + names])
    for pairs in groups:
        members = [((name, wire), s) for name, wire in pairs for s in SHAPES]
        members.append((pairs[1], LONG))
        members = [m for member in members for m in ((("i8", "i8"), ODD), member)]
        pairs, shapes = zip(*members)
        yield [p[1] for p in pairs], [p[0] for p in pairs], list(shapes)


def cases():
    found = []

    def add(*arguments, **options):
        found.append(Dense(len(found), *arguments, **options))

    for wires, dtypes, shapes in byte_buckets():
        for kind in ("concat", "unchunk"):
            add(kind, "bytes", wires, dtypes, shapes)
    names = FLOATS + ["f64"]
    for wire in names:
        dtypes = [name for name in names for _ in SHAPES]
        wires, shapes = [wire] * len(dtypes), SHAPES * len(names)
        add("chunk_cat", wire, wires, dtypes, shapes)
        add("split", wire, wires, dtypes, shapes)
        add("split", wire, wires, dtypes, shapes, adds=True)
    return found


def placements(op):
    members = [0] * len(op.member_dtypes)
    for byte in range(BUCKET_BYTES):
        yield Placement(members, bucket=byte)
    for byte in range(1, MEMBER_BYTES):
        yield Placement(members, member_bytes=byte)
        yield Placement(members, bucket=5 * byte % MEMBER_BYTES, member_bytes=byte)


def main():
    found = cases()
    compiled = compile_module(*modules(found))
    module = parse(compiled.ptx)
    failed = ran = 0
    for number, (op, launches) in enumerate(launches_by_op(compiled)):
        for place in placements(op):
            ran += 1
            try:
                execute(module, launches, place, number)
            except (PtxError, WrongResult) as error:
                print(
                    f"{op}, bucket at byte {place.bucket}, members at "
                    f"{place.member_bytes}: {error}",
                    file=sys.stderr,
                )
                failed += 1
    print(f"{len(found)} ops, {ran} executions, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
