# From a module to the PTX that ships, and what the host launches of it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import os
import re
import subprocess
import sys
from dataclasses import dataclass

from .local_ops import read_local_ops

# Addresses of a kernel, those of existing shards included; an op with more
# members is launched in parts. The second number is for PTX before 8.1, if the
# caller asks for it.
MAX_ADDRESSES, MAX_ADDRESSES_OF_PTX_80 = 4090, 543
THREADS = 256  # of a block
IMAGE = "fsdp_kernel_image"  # the symbol of an artefact's kernels


@dataclass
class Launch:
    """One launch: which kernel, on how many blocks, for which members."""

    kernel: str
    blocks: tuple  # in x and y
    op: object  # LocalOp
    first: int  # member
    count: int


@dataclass
class Compiled:
    ptx: str
    ops: list  # LocalOp, those without elements too
    launches: list


def _run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[:4000]}")
    return done.stdout


def _bytes(literal):
    """The text of a string that MLIR prints, which ends with a zero."""
    escaped = re.compile(r"\\([0-9A-Fa-f]{2}|\\)")
    text = escaped.sub(
        lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), literal
    )
    return text.rstrip("\0")


def _calls(text):
    """(kernel, blocks in x and y, bytes of addresses) of every launch of the host
    code, in order."""
    names = {
        symbol: _bytes(literal)
        for symbol, literal in re.findall(
            r'constant @(fsdp_kernel_name\w*)\("([^"]*)"\)', text
        )
    }
    calls, values = [], {}
    for line in text.splitlines():
        if line.lstrip().startswith("llvm.func"):
            values = {}
        constant = re.match(r"\s*(%\w+) = llvm\.mlir\.constant\((-?\d+) :", line)
        address = re.match(r"\s*(%\w+) = llvm\.mlir\.addressof @(\w+)", line)
        if constant:
            values[constant[1]] = int(constant[2])
        elif address:
            values[address[1]] = address[2]
        call = re.search(r"llvm\.call @fsdprtLaunch\(([^)]*)\)", line)
        if not call:
            continue
        _, image, _, name, x, y, threads, _, size, _ = call[1].split(", ")
        if values[image] != IMAGE or values[threads] != THREADS:
            raise RuntimeError(f"not a launch of our kernels: {line.strip()}")
        calls.append((names[values[name]], (values[x], values[y]), values[size]))
    return calls


def _launches(text, ops, max_addresses):
    """The launches, matched with the ops that they stem from."""
    found = _calls(text)
    launches = []
    for op in ops:
        if op.is_empty:
            continue
        members = len(op.member_dtypes)
        addresses = 2 if op.adds else 1
        per_launch = max_addresses // addresses
        for first in range(0, members, per_launch):
            count = min(per_launch, members - first)
            part = op.layout.layouts[first : first + count]
            if all(layout.elements == 0 for layout in part):
                continue
            kernel, blocks, size = found[len(launches)]
            if size != 8 * addresses * count:
                raise RuntimeError(f"{kernel}: {size} bytes for {count} members")
            launches.append(Launch(kernel, blocks, op, first, count))
    if len(launches) != len(found):
        raise RuntimeError(f"{len(found)} launches, expected {len(launches)}")
    return launches


def compile_module(text, chip=None, features=None):
    """`text`: a module whose local ops are in buffer form. It goes through the
    pipeline that artefacts are made with: the PTX is the image that they embed,
    the launches are the calls that their host code makes."""
    opt = os.environ.get("FSDP_OPT", "fsdp-opt")
    ops = read_local_ops(_run([opt], text))
    options = "format=isa" + (f" chip={chip}" if chip else "")
    options += f" features={features}" if features else ""
    lowered = _run([opt, f"--fsdp-to-cuda={options}"], text)
    few = features == "+ptx80"
    launches = _launches(
        lowered, ops, MAX_ADDRESSES_OF_PTX_80 if few else MAX_ADDRESSES
    )
    if not launches:
        return Compiled("", ops, [])
    image = re.search(rf'constant @{IMAGE}\("((?:[^"\\]|\\.)*)"\)', lowered)
    return Compiled(_bytes(image[1]), ops, launches)


if __name__ == "__main__":
    with open(sys.argv[1]) as module:
        print(compile_module(module.read()).ptx)
