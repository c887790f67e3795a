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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from local_ops import read_local_ops

# Addresses that fit a kernel's parameters, those of existing shards included;
# an op with more members is launched in parts.
MAX_ADDRESSES = 4090

KERNEL_PIPELINE = (
    "builtin.module(gpu.module(convert-nvvm-to-llvm,convert-scf-to-cf,"
    "convert-vector-to-llvm,convert-gpu-to-nvvm,canonicalize,cse,"
    "reconcile-unrealized-casts),gpu-module-to-binary{format=isa})"
)
WHOLE_CONSTANTS = "--mlir-elide-elementsattrs-if-larger=100000000"


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


def _without_declarations(text):
    """Grids, units and buckets belong to dialects that stop here."""
    text = re.sub(r"  shard\.grid.*\n", "", text)
    text = re.sub(r"  fsdp\.unit .*?\n  }\n", "", text, flags=re.S)
    return re.sub(r"  fsdp\.bucket.*\n", "", text)


def _assembly(text):
    """The PTX in a gpu.binary."""
    literal = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', text)[1]
    escaped = re.compile(r"\\([0-9A-Fa-f]{2}|\\)")
    return escaped.sub(
        lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), literal
    ).rstrip("\0")


def _launches(text, ops):
    """gpu.launch_func ops in order, matched with the ops that they stem from."""
    constants = dict(re.findall(r"(%\S+) = arith\.constant (\d+) : index", text))
    found = re.findall(
        r"gpu\.launch_func\s+@fsdp_kernels::@(\S+) blocks in \((%\S+), (%\S+), %\S+\)",
        text,
    )
    launches = []
    for op in ops:
        if op.is_empty:
            continue
        members = len(op.member_dtypes)
        per_launch = MAX_ADDRESSES // (2 if op.adds else 1)
        for first in range(0, members, per_launch):
            count = min(per_launch, members - first)
            part = op.layout.layouts[first : first + count]
            if all(layout.elements == 0 for layout in part):
                continue
            kernel, x, y = found[len(launches)]
            blocks = (int(constants[x]), int(constants[y]))
            launches.append(Launch(kernel, blocks, op, first, count))
    if len(launches) != len(found):
        raise RuntimeError(f"{len(found)} launches, expected {len(launches)}")
    return launches


def compile_module(text, chip=None):
    """`text`: a module whose local ops are in buffer form."""
    opt = os.environ.get("FSDP_OPT", "fsdp-opt")
    mlir_opt = os.environ.get("MLIR_OPT", "mlir-opt")
    ops = read_local_ops(_run([opt], text))
    option = "target=cuda" + (f" chip={chip}" if chip else "")
    tiles = _run([opt, f"--convert-fsdp-to-tiles={option}", WHOLE_CONSTANTS], text)
    launches = _launches(tiles, ops)
    if not launches:
        return Compiled("", ops, [])
    binary = _run(
        [mlir_opt, f"--pass-pipeline={KERNEL_PIPELINE}", WHOLE_CONSTANTS],
        _without_declarations(tiles),
    )
    return Compiled(_assembly(binary), ops, launches)


if __name__ == "__main__":
    with open(sys.argv[1]) as module:
        print(compile_module(module.read()).ptx)
