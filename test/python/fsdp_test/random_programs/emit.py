# A batch of random programs as IR at stage declared.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from fsdp_test.ir import (
    Value, bucket_text, call, function, grid_text, module, number, op, param_ref,
    several, symbol, tensor_names, tensor_type, unit_text,
)
from fsdp_test.oracle.dtypes import dtype

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
    return [type_of(tensor) for tensor in tensors]


def _divide(constant):
    return "" if constant is None else f" divide {number(constant)}"


def _reduction(keyword, how):
    if keyword == "premul":
        keyword = f"premul {number(how.premul)}"
    return keyword + (" accumulate f32" if how.accumulate else "")


def _bucket(bucket):
    return bucket_text(
        bucket.name, "reduce", bucket.unit["name"], [p["name"] for p in bucket.params],
        bucket.wire, bucket.align,
    )


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

    def several(self, tensors):
        """Names results of one operation; its left side."""
        left, names = several(f"v{tensors[0].number}", len(tensors))
        self.ssa.update(zip(tensors, names))
        return left

    def call(self, operation, callee):
        left = self.several(operation.results)
        names = [self.ssa[o] for o in operation.operands]
        operands, results = _types(operation.operands), _types(operation.results)
        self.lines.append(call(left, callee, names, operands, results))

    def bucket_op(self, operation, left, name, words=""):
        """An op on a bucket of the program's own."""
        flat, *old = operation.operands
        packs = name == "chunk_cat"
        operands = operation.operands if packs else [flat]
        if old and name == "split":
            types = ", ".join(_types(old))
            words += f" add({', '.join(self.ssa[o] for o in old)} : {types})"
        bucket = f"{'into' if packs else 'of'} {symbol(operation.bucket.name)}"
        self.lines.append(
            op(
                left, name, [self.ssa[o] for o in operands], bucket + words,
                _types(operands), _types(operation.results),
            )
        )

    def one(self, operation, name, words=""):
        self.bucket_op(operation, self.several(operation.results), name, words)

    def pack(self, operation):
        self.one(operation, "chunk_cat", _divide(operation.bucket.how.divide))

    def reduce_scatter(self, operation):
        how = operation.bucket.how
        self.one(operation, f"reduce_scatter {_reduction(how.reduce_scatter, how)}")

    def all_reduce(self, operation):
        how = operation.bucket.how
        self.one(operation, f"all_reduce {_reduction(how.all_reduce, how)}")

    def split(self, operation):
        left = self.several(operation.results)
        how = operation.bucket.how
        self.bucket_op(operation, left, "split", _divide(how.split_divide))

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
    units += map(_bucket, line.buckets)
    arguments = [value_of(a, printer.ssa[a]) for a in line.arguments]
    results = [value_of(r, printer.ssa[r]) for r in line.results]
    entry = function(program["name"], arguments, results, printer.lines)
    return "\n".join([*units, entry])


def module_text(grid, programs):
    return module([grid_text(grid)] + [program_text(p, grid) for p in programs])


OPTION_FLAGS = {
    "align": "align", "max_bytes": "max-bytes", "gather": "gather",
    "accumulate": "accumulate", "average": "average", "unused": "unused",
    "order": "order", "scope": "scope", "policy": "policy",
    "max_elements": "max-elements",
}


def optimize_options(options):
    """Options of fsdp-optimize."""
    return " ".join(f"{OPTION_FLAGS[k]}={v}" for k, v in options.items())


EXPAND_OPTIONS = {"align", "accumulate", "average", "unused"}


def form_flags(options):
    """The passes up to fsdp-form-buckets, and that one alone."""
    expand = {k: v for k, v in options.items() if k in EXPAND_OPTIONS}
    form = {k: v for k, v in options.items() if k not in EXPAND_OPTIONS}
    form_flag = f"--fsdp-form-buckets={optimize_options(form)}"
    flags = [
        "--fsdp-resolve-precision",
        f"--fsdp-expand-units={optimize_options(expand)}", form_flag,
    ]
    return flags, form_flag


def compile_flags(batch):
    """Options of fsdp-compile, without the level."""
    flags = [f"--codegen-level={batch.get('codegen_level', 0)}"]
    words = optimize_options(batch["options"])
    return flags + ([f"--optimize={words}"] if words else [])
