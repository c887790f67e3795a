# PTX text to kernels: basic blocks of instructions.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Reads what LLVM's NVPTX back end prints: one instruction, label or directive a
# line, globals with their bytes, kernels with parameters.

import re
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from .errors import PtxError

LABEL = re.compile(r"(\$\w+):\s*(.*)$")
INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.]*)\s*(.*?)\s*;$")
MEMORY = re.compile(r"\[([%$\w]+)(?:\+(-?\d+))?\]$")


@dataclass
class Address:
    base: str  # a register or a symbol
    offset: int


@dataclass
class Instruction:
    line: int
    opcode: str
    operands: list  # str, Address, or a list of str
    predicate: Optional[str] = None
    negated: bool = False

    def __str__(self):
        return f"line {self.line}: {self.opcode}"


@dataclass
class Block:
    instructions: list = field(default_factory=list)
    # The block that runs next where the last instruction does not jump.
    next: Optional[int] = None


@dataclass
class Kernel:
    name: str
    params: dict  # name -> (offset, bytes) in the parameter space
    param_bytes: int
    max_threads: int
    registers: dict  # prefix -> "pred", "b16", "b32", "b64"
    blocks: list
    labels: dict  # label -> index of a block
    tables: dict  # name of .branchtargets -> labels


@dataclass
class Module:
    version: tuple  # of PTX
    target: str
    globals: dict  # name -> bytes, as an array
    alignments: dict  # name -> alignment
    kernels: dict


def _operand(text, line):
    if text.startswith("{"):
        return [part.strip() for part in text[1:-1].split(",")]
    if text.startswith("["):
        match = MEMORY.match(text)
        if not match:
            raise PtxError(f"line {line}: address {text} is not understood")
        return Address(match[1], int(match[2] or 0))
    return text


def _operands(text, line):
    parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text)
    return [_operand(part, line) for part in parts]


def _parse_instruction(text, line):
    match = INSTRUCTION.match(text)
    if not match:
        raise PtxError(f"line {line}: '{text}' is not understood")
    negated, predicate, opcode, operands = match.groups()
    return Instruction(
        line, opcode, _operands(operands, line), predicate, negated == "!"
    )


def _ends_block(instruction):
    return instruction.opcode.split(".")[0] in ("bra", "brx", "ret")


class _KernelReader:
    """Lines between the braces of a kernel."""

    def __init__(self):
        self.registers, self.labels, self.tables = {}, {}, {}
        self.blocks = [Block()]
        self.table = None  # the one that is being read

    def read(self, text, line):
        if self.table is not None:
            self.tables[self.table] += re.findall(r"\$\w+", text)
            if text.endswith(";"):
                self.table = None
            return
        register = re.match(r"\.reg\s+\.(\w+)\s+%(\w+)<\d+>;", text)
        if register:
            self.registers[register[2]] = register[1]
            return
        label = LABEL.match(text)
        if label and label[2].startswith(".branchtargets"):
            self.tables[label[1]] = re.findall(r"\$\w+", label[2])
            self.table = None if label[2].endswith(";") else label[1]
            return
        if label:
            if self.blocks[-1].instructions:
                self._open_block()
            self.labels[label[1]] = len(self.blocks) - 1
            return
        instruction = _parse_instruction(text, line)
        self.blocks[-1].instructions.append(instruction)
        if _ends_block(instruction):
            self._open_block()

    def _open_block(self):
        self.blocks.append(Block())

    def finish(self, name, params, max_threads):
        if not self.blocks[-1].instructions:
            self.blocks.pop()
        for index, block in enumerate(self.blocks):
            block.next = index + 1 if index + 1 < len(self.blocks) else None
        places, end = {}, 0
        for param, size, alignment in params:
            start = -(-end // alignment) * alignment
            places[param] = (start, size)
            end = start + size
        return Kernel(
            name, places, end, max_threads, self.registers, self.blocks,
            self.labels, self.tables,
        )


_SIZES = {"u64": 8, "b64": 8, "u32": 4, "b32": 4, "b8": 1}
PARAM = re.compile(
    r"\.param (?:\.align (\d+) )?\.(\w+)(?: \.ptr \.global \.align \d+)? (\w+)"
    r"(?:\[(\d+)\])?"
)
GLOBAL = re.compile(r"\.global \.align (\d+) \.b8 (\w+)\[(\d+)\] = \{([^}]*)\};")
# What does not change what a kernel computes.
IGNORED = (".address_size", ".maxnreg")


def max_param_bytes(version):
    """What the parameters of a kernel may take together."""
    return 4352 if version < (8, 1) else 32764


def _check_params(kernel, version):
    most = max_param_bytes(version)
    if kernel.param_bytes > most:
        text = ".".join(map(str, version))
        raise PtxError(
            f"{kernel.name}: {kernel.param_bytes} bytes of parameters, but PTX {text} "
            f"has room for {most}"
        )


def parse(text):
    module = Module((0, 0), "", {}, {}, {})
    header, params, max_threads, reader = None, [], 0, None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("//")[0].strip()
        if not line:
            continue
        if reader is not None:
            if line == "}":
                kernel = reader.finish(header, params, max_threads)
                _check_params(kernel, module.version)
                module.kernels[header] = kernel
                header, params, max_threads, reader = None, [], 0, None
            else:
                reader.read(line, number)
            continue
        data = GLOBAL.match(line)
        if data:
            # Zeros at the end may be left out.
            values = np.array([int(v) for v in data[4].split(",")], np.uint8)
            content = np.zeros(int(data[3]), np.uint8)
            content[: values.size] = values
            module.globals[data[2]] = content
            module.alignments[data[2]] = int(data[1])
        elif line.startswith(".version"):
            module.version = tuple(map(int, line.split()[1].split(".")))
        elif line.startswith(".target"):
            module.target = line.split()[1]
        elif line.startswith(".visible .entry"):
            header = line.split()[-1].rstrip("(")
        elif line.startswith(".param"):
            match = PARAM.match(line)
            if not match or match[2] not in _SIZES:
                raise PtxError(f"line {number}: parameter '{line}' is not understood")
            size = _SIZES[match[2]]
            params.append(
                (match[3], size * int(match[4] or 1), int(match[1] or size))
            )
        elif line.startswith(".maxntid"):
            max_threads = int(line.split()[1].rstrip(","))
        elif line == "{":
            reader = _KernelReader()
        elif line != ")" and not line.startswith(IGNORED):
            raise PtxError(f"line {number}: '{line}' is not understood")
    return module
