#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Checks what fsdp-run wrote and printed for an entry of artefact.py.

    check.py ENTRY GRID REPLICATE_AXES SEED OUT STDOUT

OUT is a file of full tensors, or one with {rank} of each rank's own.
"""

import re
import sys
from math import prod
from pathlib import Path

import numpy as np

from artefact import LARGE, PARAMS, numbers
from fsdp_test.oracle import dtypes, fill, reduction, tensor_file
from fsdp_test.oracle.layout import ShardLayout


def full_of(name, seed, suffix="", rank=0):
    shape, _, dtype = (PARAMS | LARGE)[name]
    t = dtypes.BY_NAME[dtype]
    return t, shape, fill.fill(name + suffix, t, 0, prod(shape), seed, rank)


def mean_gradient(grid, replicate, seed):
    """Average over the shard group, then over the replicas, in rank order."""
    def average(terms):
        return reduction.combine(terms, dtypes.F32, "avg")

    coordinates = list(np.ndindex(*grid))
    groups = {}
    for rank, at in enumerate(coordinates):
        key = tuple(at[a] for a in replicate)
        groups.setdefault(key, []).append(full_of("w", seed, ".grad", rank)[2])
    means = [average(groups[key]) for key in sorted(groups)]
    return average(means) if len(means) > 1 else means[0]


def main():
    entry, grid, replicate, seed, out, stdout = sys.argv[1:7]
    grid, replicate, seed = numbers(grid, "x"), numbers(replicate, ","), int(seed)
    if entry == "backward":
        t, shape, _ = full_of("w", seed)
        expected = {"w.grad": (t, shape, mean_gradient(grid, replicate, seed))}
    else:
        names = LARGE if entry == "large" else PARAMS
        expected = {name: full_of(name, seed) for name in names}

    if "{rank}" in out:
        # Each rank's shards, padding included and zero.
        w = prod(n for a, n in enumerate(grid) if a not in replicate)
        files = []
        for rank, at in enumerate(np.ndindex(*grid)):
            shard = 0
            for axis, n in enumerate(grid):
                if axis not in replicate:
                    shard = shard * n + at[axis]
            local = {}
            for name, (t, shape, full) in expected.items():
                layout = ShardLayout(shape, PARAMS[name][1], w)
                local[name] = (t, layout.shard_shape, layout.cut(full)[shard])
            files.append((out.replace("{rank}", str(rank)), f"@{rank}", local))
    else:
        files = [(out, "", expected)]

    lines = {}
    for line in Path(stdout).read_text().splitlines():
        match = re.match(r"^(\S+) (tensor\S+) checksum=([0-9a-f]{16}) min=", line)
        if match:
            lines[match[1]] = match.groups()[1:]
    count = 0
    for path, suffix, tensors in files:
        found = tensor_file.read(path)
        assert list(found) == list(tensors), (path, list(found))
        for name, (t, shape, want) in tensors.items():
            got = found[name]
            assert got[0] is t and got[1] == tuple(shape), (path, name, got[:2])
            raw = np.ascontiguousarray(want).reshape(-1).view(np.uint8)
            assert np.array_equal(got[2].reshape(-1).view(np.uint8), raw), (path, name)
            type_text = f"tensor<{''.join(f'{n}x' for n in shape)}{t.name}>"
            checksum = f"{fill.checksum(raw):016x}"
            assert lines.get(name + suffix) == (type_text, checksum), (
                name + suffix, lines.get(name + suffix), (type_text, checksum))
            count += 1
    assert count == len(lines), (count, lines)
    print(f"{count} tensors are right")


if __name__ == "__main__":
    main()
