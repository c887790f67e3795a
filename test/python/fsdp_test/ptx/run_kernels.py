# Runs the kernels of modules in the PTX interpreter against the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.run_kernels [--data=N] [--seed=N] FILE...
#   python3 -m fsdp_test.ptx.run_kernels [--data=N] [--seed=N] --random=COUNT
#
# Every local op of every file, in buffer form, runs on N sets of random data:
# the first with aligned operands, the others with operands anywhere. Prints one
# line per file; fails at the first difference.

import argparse
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .compiler import compile_module
from .execution import Placement, WrongResult, execute
from .interpreter import Counts, PtxError, parse
from .random_modules import modules, random_cases


def launches_by_op(compiled):
    """[(op, its launches)], in order."""
    groups = defaultdict(list)
    for launch in compiled.launches:
        groups[id(launch.op)].append(launch)
    return [(group[0].op, group) for group in groups.values()]


@dataclass
class Total:
    """Of several modules."""

    ops: int = 0
    failed: int = 0
    blocks: int = 0
    instructions: int = 0
    covered: int = 0  # basic blocks that ran, of
    basic_blocks: int = 0


def run_module(text, name, data, seed, total):
    compiled = compile_module(text)
    module = parse(compiled.ptx)
    total.ops += len(compiled.ops)
    for number, (op, launches) in enumerate(launches_by_op(compiled)):
        counts = Counts()
        for attempt in range(data):
            rng = np.random.default_rng([seed, number, attempt])
            place = Placement.random(op, rng) if attempt else Placement.aligned(op)
            try:
                execute(module, launches, place, [seed, number, attempt], counts)
            except (WrongResult, PtxError) as error:
                print(f"{name}: {op}, {place}: {error}", file=sys.stderr)
                total.failed += 1
                break
        total.blocks += counts.blocks
        total.instructions += counts.instructions
        total.covered += len(counts.executed)
        total.basic_blocks += sum(
            len(module.kernels[l.kernel].blocks) for l in launches
        )


def run_modules(texts, name, data, seed):
    """Prints a line; returns the number of failed ops."""
    start, total = time.time(), Total()
    for text in texts:
        run_module(text, name, data, seed, total)
    print(
        f"{name}: {total.ops} ops, {total.failed} wrong, {total.blocks} blocks, "
        f"{total.instructions} warp instructions, "
        f"{100 * total.covered // max(total.basic_blocks, 1)} % of basic blocks, "
        f"{time.time() - start:.1f} s"
    )
    return total.failed


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
        failed += run_modules([text], path, arguments.data, arguments.seed)
    if arguments.random:
        texts = modules(random_cases(arguments.seed, arguments.random))
        failed += run_modules(
            texts, f"random {arguments.seed}", arguments.data, arguments.seed
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
