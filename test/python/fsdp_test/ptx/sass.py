# What ptxas makes of a workload's kernel: machine code, as nvdisasm prints it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.sass PTXAS NVDISASM NAME...      names of workloads.py
#
# Prints one line per pair of dtypes of every kernel: the memory instructions of
# the class without predicates, in order. Fails if a kernel has an instruction
# that it must not have, or reads data before it has waited for the kernel before.

import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .compiler import compile_module
from .workloads import WORKLOADS

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)")
# Local memory, calls, conversions of integers, approximations.
FORBIDDEN = {"LDL", "STL", "CALL", "F2I", "F2IP", "I2F", "I2FP", "MUFU"}
ENDS_BLOCK = {"BRA", "EXIT", "BRX", "RET"}


class WrongCode(Exception):
    pass


def disassemble(ptxas, nvdisasm, name, scratch):
    """The kernel's (predicate or None, opcode), in order; None at a label."""
    ptx, cubin = Path(scratch, f"{name}.ptx"), Path(scratch, f"{name}.cubin")
    ptx.write_text(compile_module(WORKLOADS[name](8).text()).ptx)
    subprocess.run([ptxas, "-arch=sm_90", "-O3", ptx, "-o", cubin], check=True)
    text = subprocess.run(
        [nvdisasm, "-c", cubin], capture_output=True, text=True, check=True
    ).stdout
    code = []
    for line in text.splitlines():
        found = INSTRUCTION.search(line)
        if found:
            code.append(found.groups())
        elif line.startswith(".L"):
            code.append(None)
    return code


def check(code):
    """Raises WrongCode where a kernel is not as it must be."""
    waited = False
    for predicate, opcode in filter(None, code):
        operation = opcode.split(".")[0]
        if operation in FORBIDDEN:
            raise WrongCode(f"{opcode} must not occur")
        waited |= operation == "ACQBULK"
        is_data = operation == "LDG" and "CONSTANT" not in opcode
        if is_data and not waited:
            raise WrongCode(f"{opcode} before ACQBULK")
    if not waited:
        raise WrongCode("no ACQBULK")


def blocks(code):
    block = []
    for entry in code:
        if entry:
            block.append(entry)
        if entry is None or entry[1].split(".")[0] in ENDS_BLOCK:
            yield block
            block = []
    yield block


def full_tiles(code):
    """Of every block that loads and stores several vectors without a predicate,
    the opcodes with their numbers."""
    for block in blocks(code):
        memory = [
            entry for entry in block
            if re.match(r"(LDG|STG)\b", entry[1]) and "CONSTANT" not in entry[1]
        ]
        if any(predicate for predicate, _ in memory):
            continue
        opcodes = [opcode for _, opcode in memory]
        if not all(re.search(r"\.(64|128)$", opcode) for opcode in opcodes):
            continue
        loads = [opcode for opcode in opcodes if opcode.startswith("LDG")]
        if len(loads) < 2 or len(opcodes) - len(loads) < 2:
            continue
        yield ", ".join(
            f"{len(list(group))} {opcode}"
            for opcode, group in itertools.groupby(opcodes)
        )


def main():
    ptxas, nvdisasm, *names = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            code = disassemble(ptxas, nvdisasm, name, scratch)
            for line in full_tiles(code):
                print(f"{name}: {line}")
            try:
                check(code)
            except WrongCode as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
