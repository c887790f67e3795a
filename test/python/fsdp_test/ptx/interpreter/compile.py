# Basic blocks to lists of Python functions.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Inside a basic block values live in a dictionary; only what a later block needs
# goes back to the registers.

import numpy as np

from .errors import PtxError
from .instructions import WIDTHS, carrier, immediate, semantics
from .parser import Address

SPECIAL = {"%tid.x", "%ctaid.x", "%ctaid.y"}


class Code:
    """A basic block that can run."""

    def __init__(self, length):
        self.length = length  # instructions
        self.operations = []
        self.exits = None
        self.targets = []
        self.reads, self.writes = set(), set()


class _Compiler:
    def __init__(self, kernel):
        self.kernel = kernel

    def _fail(self, instruction, why):
        raise PtxError(f"{self.kernel.name}, {instruction}: {why}")

    def _width(self, register, instruction):
        if register in SPECIAL:
            return 32
        kind = self.kernel.registers.get(register[1:].rstrip("0123456789"))
        if kind is None:
            self._fail(instruction, f"{register} is not declared")
        return WIDTHS[kind]

    # --- operands ---------------------------------------------------------------

    def _source(self, text, ptx_type, instruction, narrows=False):
        """A function (values, view) -> bits of `ptx_type`, and the registers."""
        if isinstance(text, Address):
            self._fail(instruction, "an address is not expected here")
        if text.startswith("%"):
            width = self._width(text, instruction)
            if width == WIDTHS[ptx_type]:
                return (lambda values, view: values[text]), {text}
            if narrows and width > WIDTHS[ptx_type]:
                kind = carrier(ptx_type)
                return (lambda values, view: values[text].astype(kind)), {text}
            self._fail(instruction, f"{text} has {width} bits")
        value = immediate(text, ptx_type)
        if value is not None:
            return (lambda values, view: value), set()
        if WIDTHS[ptx_type] != 64:
            self._fail(instruction, f"operand '{text}' is not understood")

        def symbol(values, view):
            address = view.symbols.addresses.get(text)
            if address is None:
                raise PtxError(f"{instruction}: unknown symbol {text}")
            return np.array(address, np.uint64)

        return symbol, set()

    def _address(self, address, instruction):
        if not isinstance(address, Address):
            self._fail(instruction, "an address is expected")
        base, registers = self._source(address.base, "u64", instruction)
        offset = np.uint64(address.offset % 2**64)
        if not offset:
            return base, registers
        return (lambda values, view: base(values, view) + offset), registers

    # --- instructions -----------------------------------------------------------

    def _unpredicated(self, instruction):
        if instruction.predicate:
            self._fail(instruction, "a predicate is not expected here")

    def _compute(self, code, instruction):
        self._unpredicated(instruction)
        types, function = semantics(instruction.opcode)
        target, *operands = instruction.operands
        if len(operands) != len(types) - 1:
            self._fail(instruction, f"{len(types) - 1} operands are expected")
        if self._width(target, instruction) != WIDTHS[types[0]]:
            self._fail(instruction, f"{target} has the wrong width")
        sources, reads = [], set()
        # Bytes have no registers of their own.
        narrows = instruction.opcode.startswith("cvt.") and WIDTHS[types[1]] == 8
        for text, ptx_type in zip(operands, types[1:]):
            source, registers = self._source(text, ptx_type, instruction, narrows)
            sources.append(source)
            reads |= registers

        def operation(values, view):
            values[target] = function(*[s(values, view) for s in sources])

        self._append(code, operation, reads, {target})

    def _unpack(self, code, instruction):
        """mov.b32 {low, high}, register, and the other way round."""
        target, source = instruction.operands
        half, whole = (np.uint16, np.uint32)
        if instruction.opcode != "mov.b32":
            self._fail(instruction, "only halves of 32 bits are known")
        if isinstance(target, list):
            low, high = target
            read, registers = self._source(source, "b32", instruction)

            def operation(values, view):
                bits = read(values, view)
                values[low] = bits.astype(half)
                values[high] = (bits >> whole(16)).astype(half)

            self._append(code, operation, registers, {low, high} - {"_"})
            return
        parts = [self._source(part, "b16", instruction) for part in source]

        def operation(values, view):
            low, high = [read(values, view).astype(whole) for read, _ in parts]
            values[target] = low | (high << whole(16))

        self._append(code, operation, set().union(*[r for _, r in parts]), {target})

    def _memory(self, code, instruction):
        operation, space, *modifiers = instruction.opcode.split(".")
        if operation == "ld" and modifiers[:1] == ["nc"]:
            modifiers = modifiers[1:]
        count = 1
        if modifiers and modifiers[0] in ("v2", "v4"):
            count = int(modifiers.pop(0)[1])
        extends = operation == "ld" and modifiers in (["s8"], ["s16"], ["s32"])
        if not extends and modifiers not in (["b8"], ["b16"], ["b32"], ["b64"]):
            self._fail(instruction, "is not known")
        ptx_type = modifiers[0]
        if space == "param" and operation == "ld" and count == 1 and not extends:
            return self._load_param(code, instruction, WIDTHS[ptx_type] // 8)
        if space != "global":
            self._fail(instruction, "is not known")
        if operation == "ld":
            return self._load(code, instruction, ptx_type, count)
        return self._store(code, instruction, ptx_type, count)

    def _load_param(self, code, instruction, size):
        self._unpredicated(instruction)
        target, address = instruction.operands
        where, reads = self._address(address, instruction)
        kind = carrier(f"b{max(16, self._width(target, instruction))}")

        def operation(values, view):
            values[target] = view.param(where(values, view), size, instruction).astype(kind)

        self._append(code, operation, reads, {target})

    def _load(self, code, instruction, ptx_type, count):
        self._unpredicated(instruction)
        targets, address = instruction.operands
        targets = targets if isinstance(targets, list) else [targets]
        if len(targets) != count:
            self._fail(instruction, f"{count} registers are expected")
        where, reads = self._address(address, instruction)
        size = WIDTHS[ptx_type] // 8
        # A register may be wider than what is loaded into it.
        kinds = [
            carrier(f"b{max(16, self._width(t, instruction))}") for t in targets
        ]
        signed = ptx_type[0] == "s"

        def operation(values, view):
            loaded = view.load(where(values, view), size, count, instruction)
            for target, kind, value in zip(targets, kinds, loaded):
                if signed:
                    value = value.view(f"i{size}").astype(f"i{kind.itemsize}")
                values[target] = value.astype(kind)

        self._append(code, operation, reads, set(targets))

    def _store(self, code, instruction, ptx_type, count):
        address, sources = instruction.operands
        sources = sources if isinstance(sources, list) else [sources]
        if len(sources) != count:
            self._fail(instruction, f"{count} registers are expected")
        where, reads = self._address(address, instruction)
        parts = [
            self._source(s, ptx_type, instruction, narrows=True) for s in sources
        ]
        reads = reads.union(*[r for _, r in parts])
        predicate = self._predicate(instruction)
        if instruction.predicate:
            reads.add(instruction.predicate)
        size = WIDTHS[ptx_type] // 8

        def operation(values, view):
            data = [read(values, view) for read, _ in parts]
            condition = predicate and predicate(values)
            view.store(where(values, view), size, data, condition, instruction)

        self._append(code, operation, reads, set())

    def _predicate(self, instruction):
        name = instruction.predicate
        if name is None:
            return None
        if instruction.negated:
            return lambda values: ~values[name]
        return lambda values: values[name]

    def _append(self, code, operation, reads, writes):
        code.operations.append(operation)
        code.reads |= reads - code.writes
        code.writes |= writes

    # --- control ----------------------------------------------------------------

    def _target(self, label, instruction):
        if label not in self.kernel.labels:
            self._fail(instruction, f"unknown label {label}")
        return self.kernel.labels[label]

    def _jump(self, code, block, instruction):
        """The end of a block: what it reads, where it goes."""
        if instruction is None or instruction.opcode == "ret":
            if instruction is not None:
                self._unpredicated(instruction)
            onward = block.next if instruction is None else None
            code.targets = [] if onward is None else [onward]
            code.exits = lambda values, view: [(t, view.active) for t in code.targets]
        elif instruction.opcode in ("bra", "bra.uni"):
            target = self._target(instruction.operands[0], instruction)
            predicate = self._predicate(instruction)
            if predicate is None:
                code.targets = [target]
                code.exits = lambda values, view: [(target, view.active)]
                return
            code.reads |= {instruction.predicate} - code.writes
            code.targets = [target, block.next]

            def branch(values, view):
                taken, passed = view.split(predicate(values))
                return [(target, p) for p in taken] + [(block.next, p) for p in passed]

            code.exits = branch
        elif instruction.opcode == "brx.idx":
            self._jump_by_table(code, instruction)
        else:
            self._fail(instruction, "is not known")

    def _jump_by_table(self, code, instruction):
        self._unpredicated(instruction)
        index, table = instruction.operands
        labels = self.kernel.tables.get(table)
        if labels is None:
            self._fail(instruction, f"unknown table {table}")
        code.targets = [self._target(label, instruction) for label in labels]
        code.reads |= {index} - code.writes

        def branch(values, view):
            where = values[index]
            if (where >= len(labels)).any():
                raise PtxError(f"{instruction}: index outside of the table")
            return [
                (target, part)
                for number, target in enumerate(code.targets)
                for part in view.split(where == number)[0]
            ]

        code.exits = branch

    def compile(self, block):
        code = Code(len(block.instructions))
        last = None
        for instruction in block.instructions:
            operation = instruction.opcode.split(".")[0]
            if operation in ("bra", "brx", "ret"):
                last = instruction
            elif operation in ("ld", "st"):
                self._memory(code, instruction)
            elif instruction.opcode == "griddepcontrol.wait":
                self._unpredicated(instruction)
                self._append(code, lambda values, view: view.wait(), set(), set())
            elif any(isinstance(o, list) for o in instruction.operands):
                self._unpredicated(instruction)
                self._unpack(code, instruction)
            else:
                self._compute(code, instruction)
        self._jump(code, block, last)
        return code


def _keep_live(program):
    """Drops from `writes` what no later block reads."""
    live_in = [set(code.reads) for code in program]
    defined = [set(code.writes) for code in program]
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(program))):
            code = program[index]
            live_out = set().union(*[live_in[t] for t in code.targets])
            code.writes = defined[index] & live_out
            wider = code.reads | (live_out - defined[index])
            if wider != live_in[index]:
                live_in[index], changed = wider, True


def compile_kernel(kernel):
    """The kernel's basic blocks as Code."""
    compiler = _Compiler(kernel)
    program = [compiler.compile(block) for block in kernel.blocks]
    _keep_live(program)
    return program
