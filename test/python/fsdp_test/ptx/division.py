# Division by constants: every 16-bit operand, and f32 operands of all kinds.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.division
#
# Prints, for every dtype and divisor, how the kernel divides and how many
# quotients are not the oracle's. A kernel has no division instruction: it
# multiplies by the reciprocal and corrects the product, in f32 where that was
# tried to be enough for all operands of the dtype, else in f64.

import sys
from random import Random

import numpy as np

from .compiler import compile_module
from .execution import Placement, WrongResult, execute
from .interpreter import parse
from fsdp_test.oracle.dtypes import dtype
from .random_modules import Case, modules
from .run_kernels import launches_by_op

DIVISORS = [2.0, 3.0, 6.0, 7.0, 10.0, 24.0, 1000.0, 0.75, 1.5, 0.3, 1e-3, 1e-30, 1e30]
# Their reciprocals are subnormal, or infinite, in f32 and in f64.
DIVISORS += [2.0**127, 2.0**-127, 2.0**-149]
DIVISORS_OF_F64 = [2.0, 2.0**1023, 2.0**-1023, 2.0**-1074]
# Fractions of f32 around which roundings change.
FRACTIONS = [0, 1, 2, 0x400000, 0x3FFFFF, 0x555555, 0x2AAAAA, 0x7FFFFF, 0x7FFFFE]


class Division(Case):
    """`elements` of one dtype, divided."""

    def __init__(self, number, name, divisor, elements):
        super().__init__(Random(number), number, "chunk_cat")
        self.ranks, self.align, self.adds = 1, 128, False
        self.wire, self.wires, self.dtypes = name, [name], [name]
        self.members, self.divide = [([elements], 0)], divisor


def operands(name):
    """All bits of a 16-bit type; of f32 every sign and exponent, each with edges
    and some random fractions; of f64 the same with a few fractions."""
    if dtype(name).size == 2:
        return np.arange(2**16, dtype=np.uint16).view(dtype(name).carrier)
    rng = np.random.default_rng(0)
    if name == "f64":
        ends = np.arange(2**12, dtype=np.uint64)[:, None] << np.uint64(52)
        fractions = rng.integers(0, 2**52, (2**12, 8), np.uint64)
        fractions[:, :3] = 0, 1, 2**52 - 1
        return (ends | fractions).reshape(-1).view(np.float64)
    ends = np.arange(2**9, dtype=np.uint32)[:, None] << np.uint32(23)
    fractions = rng.integers(0, 2**23, (2**9, 128), np.uint32)
    fractions[:, : len(FRACTIONS)] = FRACTIONS
    return (ends | fractions).reshape(-1).view(np.float32)


def method(kernel):
    opcodes = [i.opcode for block in kernel.blocks for i in block.instructions]
    if any(opcode.startswith("div") for opcode in opcodes):
        return "a division"
    for name in ("f64", "f32"):
        if f"fma.rn.{name}" in opcodes:
            return f"reciprocal in {name}"
    return "an exact product"


def main():
    names = ["bf16", "f16", "f32"]
    values = {name: operands(name) for name in names + ["f64"]}
    pairs = [(name, divisor) for name in names for divisor in DIVISORS]
    pairs += [("f64", divisor) for divisor in DIVISORS_OF_F64]
    cases = [
        Division(i, name, divisor, values[name].size)
        for i, (name, divisor) in enumerate(pairs)
    ]
    compiled = compile_module(*modules(cases))
    module = parse(compiled.ptx)
    failed = 0
    for (name, divisor), (op, launches) in zip(pairs, launches_by_op(compiled)):
        outcome = "all right"
        try:
            execute(module, launches, Placement.aligned(op), 0, values=[values[name]])
        except WrongResult as error:
            outcome = str(error)
            failed += 1
        how = method(module.kernels[launches[0].kernel])
        print(f"{name} / {divisor}: {how}, {values[name].size} operands, {outcome}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
