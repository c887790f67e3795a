# A batch of random programs as IR at stage declared.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from fsdp_ir import grid_text, param_ref, symbol, tensor_type, unit_text

from cases.ir import Value, function, tensor_names
from oracle.dtypes import dtype

from .description import operations


def type_of(tensor):
    return tensor_type(tensor.shape, tensor.dtype)


def value_of(tensor, ssa):
    if tensor.role is None:
        return Value(ssa, type_of(tensor))
    ref = param_ref(tensor.unit, tensor.param)
    role = f"fsdp.{tensor.role}"
    return Value(ssa, type_of(tensor), role, ref, tensor.param["name"])


def names_of(tensors, kind):
    """Names in fsdp-run's files, by position."""
    return tensor_names([value_of(t, "") for t in tensors], kind)


def _types(tensors):
    return f"({', '.join(map(type_of, tensors))})"


class _Printer:
    def __init__(self):
        self.ssa, self.lines = {}, []

    def cast(self, operation):
        (source,), (result,) = operation.operands, operation.results
        a, b = dtype(source.dtype), dtype(result.dtype)
        name = self.ssa[source]
        if a.size == b.size:  # f16 and bf16: there is no such cast in arith
            wide = f"%w{result.number}"
            middle = tensor_type(source.shape, "f32")
            self.lines.append(
                f"{wide} = arith.extf {name} : {type_of(source)} to {middle}"
            )
            self.convert("truncf", wide, middle, result)
        else:
            kind = "extf" if a.size < b.size else "truncf"
            self.convert(kind, name, type_of(source), result)

    def convert(self, kind, name, source_type, result):
        self.ssa[result] = f"%v{result.number}"
        self.lines.append(
            f"{self.ssa[result]} = arith.{kind} {name} : "
            f"{source_type} to {type_of(result)}"
        )

    def add(self, operation):
        (result,) = operation.results
        self.ssa[result] = f"%v{result.number}"
        names = ", ".join(self.ssa[o] for o in operation.operands)
        self.lines.append(
            f"{self.ssa[result]} = arith.addf {names} : {type_of(result)}"
        )

    def call(self, operation, callee):
        first, count = operation.results[0].number, len(operation.results)
        left = f"%v{first}" if count == 1 else f"%v{first}:{count}"
        for i, result in enumerate(operation.results):
            self.ssa[result] = f"%v{first}" if count == 1 else f"%v{first}#{i}"
        names = ", ".join(self.ssa[o] for o in operation.operands)
        results = _types(operation.results)
        self.lines.append(
            f"{left} = {callee}({names}) : {_types(operation.operands)} -> {results}"
        )

    def gather(self, operation):
        self.call(operation, f"fsdp.unshard {symbol(operation.unit['name'])}")

    def reduce(self, operation):
        names = ", ".join(symbol(p["name"]) for p in operation.params)
        unit = symbol(operation.unit["name"])
        self.call(operation, f"fsdp.reduce_grads {unit}[{names}]")


def program_text(program, grid):
    line = operations(program, grid)
    printer = _Printer()
    for i, argument in enumerate(line.arguments):
        printer.ssa[argument] = f"%arg{i}"
    for operation in line.body:
        getattr(printer, operation.kind)(operation)
    units = [unit_text(grid, unit) for unit in program["units"]]
    arguments = [value_of(a, printer.ssa[a]) for a in line.arguments]
    results = [value_of(r, printer.ssa[r]) for r in line.results]
    entry = function(program["name"], arguments, results, printer.lines)
    return "\n".join([*units, entry])


def module_text(grid, programs):
    parts = [grid_text(grid)] + [program_text(p, grid) for p in programs]
    return "\n".join(parts) + "\n"


OPTION_FLAGS = {
    "align": "align", "max_bytes": "max-bytes", "gather": "gather",
    "accumulate": "accumulate", "unused": "unused", "order": "order",
    "scope": "scope",
}


def optimize_options(options):
    """Options of fsdp-optimize."""
    return " ".join(f"{OPTION_FLAGS[k]}={v}" for k, v in options.items())


def compile_flags(batch):
    """Options of fsdp-compile, without the level."""
    flags = [f"--codegen-level={batch.get('codegen_level', 0)}"]
    words = optimize_options(batch["options"])
    return flags + ([f"--optimize={words}"] if words else [])
