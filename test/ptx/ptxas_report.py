#!/usr/bin/python3
# What ptxas says of a workload's kernel, and what follows from it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   ptxas_report.py PTXAS NAME...      names of workloads.py
#
# Prints one line per kernel: registers, stack, spills; blocks that fit an SM of
# sm_90 by registers and threads; and bytes of loads in flight per SM, that is of
# the loads that a thread of a full tile issues before its first store.

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compiler import compile_module
from interpreter import parse
from workloads import WORKLOADS

REGISTERS_PER_SM, THREADS_PER_SM, THREADS = 65536, 2048, 256
BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}


def batch_bytes(block):
    """Bytes that a basic block loads before its first store; 0 if it loads or
    stores nothing."""
    total = 0
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
    batches = []
    for block in kernel.blocks:
        memory = [
            i for i in block.instructions
            if i.opcode.startswith(("ld.global", "st.global"))
        ]
        if any(i.predicate or ".v" not in i.opcode for i in memory):
            continue
        if batch_bytes(block):
            batches.append(batch_bytes(block))
    return min(batches, default=0)


def report(ptxas, name, scratch):
    ptx = compile_module(WORKLOADS[name](8).text()).ptx
    source = os.path.join(scratch, f"{name}.ptx")
    Path(source).write_text(ptx)
    done = subprocess.run(
        [ptxas, "-arch=sm_90", "-O3", "-v", source, "-o", os.devnull],
        capture_output=True, text=True, check=True,
    )
    registers = int(re.search(r"Used (\d+) registers", done.stderr)[1])
    stack, stores, loads = re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
        done.stderr,
    ).groups()
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


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[2:]:
            report(sys.argv[1], name, scratch)


if __name__ == "__main__":
    main()
