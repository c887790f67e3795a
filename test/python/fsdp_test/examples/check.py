# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Compares the results of `fsdp-run --fill=SEED` on an example with the oracle.

The program is derived from examples/model_shapes.json, not from IR. Every
tensor of every file must be equal to the oracle's, bit by bit; with --stdout
so must the checksums that fsdp-run printed.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from fsdp_test.oracle import dtypes, fill, program, tensor_file
from fsdp_test.oracle.description import units_of

from . import models


class Wrong(Exception):
    pass


def check_header(path, tensors, expected):
    """Names, dtypes and shapes of a file, before any value."""
    names = {r.name for r in expected}
    for name in sorted(names - set(tensors)):
        raise Wrong(f"{path}: tensor '{name}' is missing")
    for name in sorted(set(tensors) - names):
        raise Wrong(f"{path}: unexpected tensor '{name}'")
    for r in expected:
        t, shape, _ = tensors[r.name]
        if (t, shape) != (r.dtype, tuple(r.shape)):
            raise Wrong(
                f"{path}: tensor '{r.name}': expected {r.dtype} {list(r.shape)}, "
                f"got {t} {list(shape)}"
            )


def check_piece(path, result, start, want, got):
    wrong = dtypes.differences(want, got, result.dtype)
    if wrong.size:
        i = int(wrong[0])
        raise Wrong(
            f"{path}: tensor '{result.name}', element {start + i}: expected "
            f"{dtypes.show(want[i], result.dtype)}, "
            f"got {dtypes.show(got[i], result.dtype)}"
        )


def read_checksums(path):
    """{name: checksum} of fsdp-run's result lines."""
    pattern = re.compile(r"^(\S+) \S+ checksum=(?:0x)?([0-9a-fA-F]+)\b")
    found = {}
    for line in Path(path).read_text().splitlines():
        match = pattern.match(line.strip())
        if match:
            found[match[1]] = int(match[2], 16)
    return found


def check(results, files, printed, pool):
    """Every result once, against all files and printed checksums."""
    for path, tensors in files.items():
        check_header(path, tensors, results)
    for result in results:
        state = fill.FNV_START
        for start, want in result.pieces(pool):
            for path, tensors in files.items():
                got = tensors[result.name][2][start : start + want.size]
                check_piece(path, result, start, want, got)
            if printed:
                state = fill.checksum(want, state)
        for path, sums in printed.items():
            if result.name not in sums:
                raise Wrong(f"{path}: no checksum of '{result.name}'")
            if sums[result.name] != state:
                raise Wrong(
                    f"{path}: checksum of '{result.name}': expected {state:016x}, "
                    f"got {sums[result.name]:016x}"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(models.MODELS))
    parser.add_argument("entry", choices=["forward", "backward"])
    parser.add_argument("files", nargs="*", help="--out files of fsdp-run")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--grid", metavar="AxB", help="A replicas of B shards")
    parser.add_argument("--experts", type=int)
    parser.add_argument("--divisor", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--stdout", action="append", default=[], metavar="FILE",
        help="what fsdp-run printed: check its checksums too",
    )
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_intermixed_args()
    if not args.files and not args.stdout:
        parser.error("nothing to check")

    grid = [int(n) for n in args.grid.split("x")] if args.grid else None
    description = models.describe(
        args.model, args.ranks, grid, args.experts, divisor=args.divisor
    )
    results = program.results(units_of(description), args.entry, args.seed)
    began = time.monotonic()
    try:
        files = {path: tensor_file.read(path) for path in args.files}
        printed = {path: read_checksums(path) for path in args.stdout}
        with program.threads(args.threads) as pool:
            check(results, files, printed, pool)
    except (Wrong, OSError, ValueError, KeyError) as error:
        print(f"check_example: {error}", file=sys.stderr)
        return 1
    print(
        f"{args.model} {args.entry} on {args.ranks} ranks: {len(results)} tensors "
        f"equal the oracle's ({time.monotonic() - began:.1f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
