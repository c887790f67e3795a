#!/usr/bin/python3
# Runs the kernels of modules in the PTX interpreter against the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   run_kernels.py [--data=N] [--seed=N] FILE...
#   run_kernels.py [--data=N] [--seed=N] --random=COUNT
#
# Every local op of every file, in buffer form, runs on N sets of random data:
# the first with aligned operands, the others with operands anywhere. Prints one
# line per file; fails at the first difference.

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from compiler import compile_module
from execution import Placement, WrongResult, execute
from interpreter import Counts, PtxError, parse
from random_modules import random_module


def launches_by_op(compiled):
    """[(op, its launches)], in order."""
    groups = defaultdict(list)
    for launch in compiled.launches:
        groups[id(launch.op)].append(launch)
    return [(group[0].op, group) for group in groups.values()]


def run_module(text, name, data, seed):
    """Returns the number of failed ops."""
    start = time.time()
    compiled = compile_module(text)
    module = parse(compiled.ptx)
    failed = blocks = instructions = 0
    covered = total = 0
    for number, (op, launches) in enumerate(launches_by_op(compiled)):
        counts = Counts()
        for attempt in range(data):
            rng = np.random.default_rng([seed, number, attempt])
            place = Placement.random(op, rng) if attempt else Placement.aligned(op)
            try:
                execute(module, launches, place, [seed, number, attempt], counts)
            except (WrongResult, PtxError) as error:
                print(f"{name}: {op}, {place}: {error}", file=sys.stderr)
                failed += 1
                break
        blocks += counts.blocks
        instructions += counts.instructions
        covered += len(counts.executed)
        total += sum(len(module.kernels[l.kernel].blocks) for l in launches)
    print(
        f"{name}: {len(compiled.ops)} ops, {failed} wrong, {blocks} blocks, "
        f"{instructions} warp instructions, {100 * covered // max(total, 1)} % of "
        f"basic blocks, {time.time() - start:.1f} s"
    )
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--random", type=int, help="ops of a random module")
    parser.add_argument("--data", type=int, default=3, help="sets of data per op")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failed = 0
    for path in arguments.files:
        text = Path(path).read_text()
        failed += run_module(text, path, arguments.data, arguments.seed)
    if arguments.random:
        text = random_module(arguments.seed, arguments.random)
        failed += run_module(
            text, f"random {arguments.seed}", arguments.data, arguments.seed
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
