# Symbols, types, values, functions and calls as text.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A function's operands and results are `Value`s; `tensor_names` gives the names
# that fsdp-run uses for them, by role and by position.

import re
from dataclasses import dataclass
from typing import Optional


def symbol(name):
    """@name, with quotes where the grammar needs them."""
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][\w$.]*", name) else f'@"{name}"'


def number(x):
    """A literal of MLIR, which wants a point."""
    mantissa, e, exponent = repr(float(x)).partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent


def shaped(kind, shape, dtype):
    """`kind` is tensor or memref."""
    return f"{kind}<{''.join(f'{d}x' for d in shape)}{dtype}>"


def tensor_type(shape, dtype):
    return shaped("tensor", shape, dtype)


def types_text(types):
    return f"({', '.join(types)})"


@dataclass
class Value:
    ssa: str
    type: str
    role: Optional[str] = None  # e.g. `fsdp.shard`
    ref: Optional[str] = None  # @unit::@param
    name: Optional[str] = None  # the parameter's name

    @property
    def signature(self):
        return f"{self.type} {{{self.role} = {self.ref}}}" if self.role else self.type


def tensor_names(values, kind):
    """The names of `arg` or `result` values in fsdp-run's files. What would have
    the name of another one is numbered; a parameter that is an argument has one
    name in shards and full."""
    suffix = {"fsdp.shard_grad": ".grad", "fsdp.full_grad": ".grad"}
    names, counts = [], {}
    for i, v in enumerate(values):
        name = v.name + suffix.get(v.role, "") if v.role else f"{kind}{i}"
        shared = kind == "arg" and v.role in ("fsdp.shard", "fsdp.full")
        key = (name, v.role if shared else None)
        counts[key] = counts.get(key, 0) + 1
        count = counts[key] - 1
        names.append(f"{name}#{count}" if count else name)
    return names


def several(name, count):
    """The left side of an op with so many results, and their names."""
    if count == 1:
        return f"%{name}", [f"%{name}"]
    return f"%{name}:{count}", [f"%{name}#{i}" for i in range(count)]


def call(left, callee, operands, operand_types, result_types):
    """An op with its operands in parentheses, and a functional type."""
    return (
        f"{left} = {callee}({', '.join(operands)}) : "
        f"{types_text(operand_types)} -> {types_text(result_types)}"
    )


def op(left, name, operands, words, operand_types, result_types):
    """An op on a bucket: `words` are what follows the operands, such as `into @b`."""
    return (
        f"{left} = fsdp.{name} {', '.join(operands)} {words} : "
        f"{types_text(operand_types)} -> {types_text(result_types)}"
    )


def function(name, args, results, body):
    signature = ", ".join(f"{a.ssa}: {a.signature}" for a in args)
    out = ", ".join(r.signature for r in results)
    lines = [f"func.func @{name}({signature}) -> ({out}) {{"]
    lines += [f"  {line}" for line in body]
    if results:
        values = ", ".join(r.ssa for r in results)
        lines.append(f"  return {values} : {', '.join(r.type for r in results)}")
    else:
        lines.append("  return")
    return "\n".join(lines + ["}"])


def module(parts, profile=None):
    text = "\n".join(parts)
    if not profile:
        return text + "\n"
    return f'module attributes {{fsdp.profile = "{profile}"}} {{\n{text}\n}}\n'
