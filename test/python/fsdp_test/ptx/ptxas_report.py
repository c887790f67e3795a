# What ptxas says of a workload's kernel, and what follows from it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.ptxas_report PTXAS NAME...      names of workloads.py
#   python3 -m fsdp_test.ptx.ptxas_report PTXAS --random=COUNT [--seed=N]
#
# Prints one line per kernel: registers, stack, spills; blocks that fit an SM of
# sm_90 by registers and threads; and bytes of loads in flight per SM, that is of
# the loads that a thread of a full tile issues before its first store. For random
# ops, of every kind and pair of dtypes, the largest of each.

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

from .compiler import compile_module
from .full_tiles import vector_blocks
from .interpreter import parse
from .random_modules import modules, random_cases
from .workloads import WORKLOADS

REGISTERS_PER_SM, THREADS_PER_SM, THREADS = 65536, 2048, 256
BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}


def batch_bytes(block, memory):
    """Bytes that a basic block loads before its first store; 0 if it does not load
    and store several times."""
    total = 0
    if sum(i.opcode.startswith("st") for i in memory) < 2:
        return 0
    for instruction in block.instructions:
        parts = instruction.opcode.split(".")
        if parts[:2] == ["st", "global"]:
            return total
        if parts[:2] == ["ld", "global"] and "nc" not in parts:
            count = int(parts[2][1]) if parts[2][0] == "v" else 1
            total += BYTES[parts[-1]] * count
    return 0


def full_tile(kernel):
    """The class without predicates: the least batch of those of its blocks that
    use vectors only, one block per pair of dtypes."""
    batches = (batch_bytes(block, memory) for block, memory in vector_blocks(kernel))
    return min((batch for batch in batches if batch), default=0)


def compile_ptx(ptxas, ptx, scratch):
    """For every kernel (registers, stack, spill stores, spill loads)."""
    source = os.path.join(scratch, "kernels.ptx")
    Path(source).write_text(ptx)
    done = subprocess.run(
        [ptxas, "-arch=sm_90", "-O3", "-v", source, "-o", os.devnull],
        capture_output=True, text=True, check=True,
    )
    registers = re.findall(r"Used (\d+) registers", done.stderr)
    memory = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
        done.stderr,
    )
    return [tuple(map(int, (r, *m))) for r, m in zip(registers, memory, strict=True)]


def report(ptxas, name, scratch):
    ptx = compile_module(WORKLOADS[name](8).text()).ptx
    [(registers, stack, stores, loads)] = compile_ptx(ptxas, ptx, scratch)
    allocated = -(-registers // 8) * 8
    blocks = min(
        REGISTERS_PER_SM // (allocated * THREADS), THREADS_PER_SM // THREADS
    )
    [kernel] = parse(ptx).kernels.values()
    in_flight = blocks * THREADS * full_tile(kernel)
    print(
        f"{name}: {registers} registers, {stack} stack, {stores} spill stores, "
        f"{loads} spill loads, {blocks} blocks, {in_flight // 1024} KB in flight"
    )


def report_random(ptxas, count, seed, scratch):
    numbers = []
    for text in modules(random_cases(seed, count)):
        numbers += compile_ptx(ptxas, compile_module(text).ptx, scratch)
    registers, stack, stores, loads = map(max, zip(*numbers))
    print(
        f"{len(numbers)} kernels: at most {registers} registers, {stack} stack, "
        f"{stores} spill stores, {loads} spill loads"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptxas")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--random", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.names:
            report(arguments.ptxas, name, scratch)
        if arguments.random:
            report_random(
                arguments.ptxas, arguments.random, arguments.seed, scratch
            )


if __name__ == "__main__":
    main()
