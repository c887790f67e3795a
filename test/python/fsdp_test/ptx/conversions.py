# What several ptxas make of every kind of kernel: is it what the PTX says?
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.conversions NVDISASM PTXAS...
#
# An assembler may read a program wrongly, which no interpreter of PTX sees: the
# ptxas of CUDA 12.1 to 13.0 stores the low byte of a float as the number itself,
# converted to an integer. So machine code must not hold a conversion whose types
# no conversion of the kernel's PTX has, none to an integer at all, and a call only
# where the PTX divides. Nor does any kernel spill.
#
# The kernels: random ops of every kind and pair of dtypes, the same in dense
# buckets at any byte, and the workloads. Prints one line per ptxas.

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import misaligned
from .compiler import compile_module
from .random_modules import modules, random_cases
from .sass import INSTRUCTION
from .workloads import WORKLOADS

RANDOM_OPS = 36  # every kind and pair of dtypes
FORBIDDEN = {"F2I", "F2IP", "I2F", "I2FP", "FRND", "LDL", "STL"}
DIVISION = {"CALL", "MUFU"}
FLOATS = {"F16", "BF16", "F32", "F64"}


def kinds():
    """Modules with every kind of kernel."""
    texts = modules(random_cases(6, RANDOM_OPS)) + modules(misaligned.cases())
    return texts + [workload(8).text() for workload in WORKLOADS.values()]


def by_kernel(text, head):
    """{name: lines} of a text in which lines that match `head` begin one."""
    found, lines = {}, []
    for line in text.splitlines():
        start = re.match(head, line)
        if start:
            lines = found.setdefault(start[1], [])
        lines.append(line)
    return found


def ptx_conversions(lines):
    """{(to, from)} of a kernel's PTX."""
    found = set()
    for line in lines:
        match = re.search(r"\bcvt(?:\.rn)?\.(\w+)\.(\w+)", line)
        if match:
            found.add(tuple(t.upper().removesuffix("X2") for t in match.groups()))
    return found


def sass_conversion(opcode):
    """(to, from) of what converts floats, else None."""
    operation, *modifiers = opcode.split(".")
    if operation == "HADD2" and modifiers[:1] == ["F32"]:
        return "F32", "F16"  # the sum with nothing
    if operation in ("F2F", "F2FP"):
        types = [m for m in modifiers if m in FLOATS]
        # A pair of 16 bits is made of f32.
        return tuple(types) if len(types) == 2 else (types[0], "F32")
    return None


def complaints(name, ptx, sass):
    """What is wrong with one kernel."""
    allowed = ptx_conversions(ptx)
    divides = any(re.search(r"\bdiv\.", line) for line in ptx)
    for line in sass:
        match = INSTRUCTION.search(line)
        if not match:
            continue
        opcode = match[2]
        operation = opcode.split(".")[0]
        conversion = sass_conversion(opcode)
        if operation in FORBIDDEN or operation in DIVISION and not divides:
            yield f"{name}: {opcode} must not occur"
        elif conversion and conversion not in allowed and not divides:
            yield f"{name}: {opcode} converts what the PTX does not"


def check(ptxas, nvdisasm, images, scratch):
    """One assembler; returns (line, complaints)."""
    label = Path(ptxas).name
    cubin = os.path.join(scratch, f"{label}.cubin")
    kernels, found = 0, []
    for number, image in enumerate(images):
        source = os.path.join(scratch, f"{number}.ptx")
        done = subprocess.run(
            [ptxas, "-arch=sm_90", "-O3", source, "-o", cubin],
            capture_output=True, text=True,
        )
        if done.returncode:
            found.append(f"module {number}: {done.stderr.strip()}")
            continue
        text = subprocess.run(
            [nvdisasm, "-c", cubin], capture_output=True, text=True, check=True
        ).stdout
        machine_code = by_kernel(text, r"\.text\.(\w+):")
        for name, ptx in by_kernel(image, r"\.visible \.entry (\w+)\(").items():
            kernels += 1
            found += complaints(name, ptx, machine_code[name])
    return f"{label}: {kernels} kernels, {len(found)} complaints", found


def main():
    nvdisasm, *assemblers = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        images = list(pool.map(lambda text: compile_module(text).ptx, kinds()))
        for number, image in enumerate(images):
            Path(scratch, f"{number}.ptx").write_text(image)
        results = pool.map(
            lambda ptxas: check(ptxas, nvdisasm, images, scratch), assemblers
        )
        for line, found in results:
            print(line)
            failed |= bool(found)
            for text in sorted(set(found))[:20]:
                print(f"  {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
