# Planted faults: would the comparison find them?
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# All but one are planted in the optimised program: fsdp-opt brings a batch to stage
# packed, a text replacement spoils every place where it can, and the rest of the
# way is as usual. Wrong padding cannot be written in IR, since the layout
# decides it: there the oracle is spoiled instead.

import re
from math import prod

import numpy as np

from fsdp_test.oracle.layout import ShardLayout

from .check import Tools, check
from .emit import optimize_options
from .generate import batch

MAX_BATCHES = 60  # in which a fault looks for a place
MAX_PLANTED = 3  # batches with the fault in which it must show

SYMBOL = r'@(?:"[^"]*"|[\w$.-]+)'
_FUNCTION = re.compile(r"^  func\.func .*?^  }$", re.M | re.S)
_PACK = re.compile(r"(fsdp\.(?:chunk_cat|concat) )([^)]*?)( into .*?: \()([^)]*)(\))")


def _per_function(text, change):
    """`change(function) -> (function, places)` on every function."""
    places = 0

    def one(match):
        nonlocal places
        out, count = change(match[0])
        places += count
        return out

    return _FUNCTION.sub(one, text), places


def _elements(tensor_type):
    sizes = re.findall(r"(\d+)x", tensor_type)
    return prod(map(int, sizes))


# --- the faults -----------------------------------------------------------------


def swapped_members(text):
    """Two members of a bucket packed in each other's place."""
    places = 0

    def swap(match):
        nonlocal places
        names, types = match[2].split(", "), match[4].split(", ")
        for i in range(1, len(names)):
            if types[i] == types[i - 1] and _elements(types[i]):
                names[i - 1], names[i] = names[i], names[i - 1]
                places += 1
                break
        return match[1] + ", ".join(names) + match[3] + match[4] + match[5]

    return _PACK.sub(swap, text), places


def double_division(text):
    """An average that is divided by the number of ranks again."""

    def change(function):
        pattern = rf"fsdp\.reduce_scatter avg .* of ({SYMBOL}) : \(tensor<(\d+)x"
        ranks = dict(re.findall(pattern, function))
        places = 0

        def divide(match):
            nonlocal places
            if match[2] not in ranks:
                return match[0]
            places += 1
            return f"{match[1]}{match[2]} divide {ranks[match[2]]}.0 :"

        pattern = rf"(fsdp\.split \S+ of )({SYMBOL}) :"
        return re.sub(pattern, divide, function), places

    return _per_function(text, change)


def missing_rounding(text):
    """A 16-bit sum that is not rounded after every addition. Two terms are one
    addition, so there must be more."""
    pattern = (
        r"(fsdp\.reduce_scatter (?:sum|avg|premul \S+) )"
        r"(%.* : \(tensor<(?:[3-9]|\d\d)x[1-9]\d*xb?f16>)"
    )
    return re.subn(pattern, r"\1accumulate f32 \2", text)


def wrong_offset(text):
    """A split that finds a member at the offset of another. The bucket's copy
    has two members of different sizes in the other order; with an alignment
    of 128 the row is as long as before."""
    copies = {}

    def change(function):
        pattern = rf"(%\w+):\d+ = fsdp\.split \S+ of ({SYMBOL}).* -> \((.*)\)$"
        places = 0
        for match in list(re.finditer(pattern, function, re.M)):
            if " add(" in match[0]:
                continue  # the shards that are added have their types too
            types = match[3].split(", ")
            first = next(
                (
                    i
                    for i in range(len(types) - 1)
                    if _elements(types[i]) != _elements(types[i + 1])
                    and _elements(types[i]) and _elements(types[i + 1])
                ),
                None,
            )
            if first is None:
                continue
            name = match[2]
            bare = name.strip('@"')
            copies[name] = (first, f'@"{bare}.fault"')
            types[first], types[first + 1] = types[first + 1], types[first]
            line = match[0].replace(f" of {name}", f" of {copies[name][1]}")
            line = line.replace(f"({match[3]})", f"({', '.join(types)})")
            function = function.replace(match[0], line)
            a, b = f"{match[1]}#{first}", f"{match[1]}#{first + 1}"
            function = re.sub(
                rf"{a}\b|{b}\b", lambda m: b if m[0] == a else a, function
            )
            places += 1
        return function, places

    text, places = _per_function(text, change)
    for name, (first, copy) in copies.items():
        line = re.search(rf"^  fsdp\.bucket {re.escape(name)} .*$", text, re.M)[0]
        unit, listed = re.search(rf"({SYMBOL})\[(.*?)\]", line).groups()
        members = listed.split(", ")
        members[first], members[first + 1] = members[first + 1], members[first]
        copied = line.replace(f"bucket {name} ", f"bucket {copy} ")
        copied = copied.replace(
            f"{unit}[{listed}]", f"{unit}[{', '.join(members)}]"
        )
        text = text.replace(line, f"{line}\n{copied}")
    return text, places


def late_partial(text):
    """A partial sum that is added after the all-reduce and not before it: the
    parts of the other replicas are lost."""

    def change(function):
        places = 0
        pattern = r"^( *)(%\S+) = (fsdp\.all_reduce .*?)(%\S+)( of .*)\n"
        for match in list(re.finditer(pattern, function, re.M)):
            indent, result, op, operand, rest = match.groups()
            addition = rf"^ *{operand} = arith\.addf (%\S+), (%\S+) : (\S+)\n"
            added = re.search(addition, function, re.M)
            if not added:
                continue
            partial, last, flat = added.groups()
            function = function.replace(added[0], "")
            function = function.replace(
                match[0],
                f"{indent}{operand} = {op}{last}{rest}\n"
                f"{indent}{result} = arith.addf {partial}, {operand} : {flat}\n",
            )
            places += 1
        return function, places

    return _per_function(text, change)


def lost_shard(text):
    """A split that forgets the shards it is to add to."""
    return re.subn(r"(fsdp\.split [^\n]*?) add\([^\n]*?\)( : \()", r"\1\2", text)


def _cut_with_ones(self, full):
    lines = np.zeros((self.outer, self.w * self.inner), full.dtype)
    lines[:, : self.line] = full.reshape(self.outer, self.line)
    lines[:, self.line :] = 1
    return [
        lines[:, r * self.inner : (r + 1) * self.inner].reshape(-1)
        for r in range(self.w)
    ]


class NoPlace(Exception):
    """The fault cannot be planted in this batch."""


class InProgram:
    """A fault in the IR of level 2; a hook of Tools."""

    levels = (2,)

    def __init__(self, change):
        self.change = change
        self.places = 0
        self.needs_default_align = change is wrong_offset

    def before_compile(self, tools, work, options):
        words = f"opt-level=2 {optimize_options(options)}".strip()
        error = tools.call(
            work, "fsdp-opt", "batch.mlir", f"--fsdp-optimize={words}", "-o",
            "packed.mlir",
        )
        if error:
            raise RuntimeError(error)
        text, places = self.change((work / "packed.mlir").read_text())
        if not places:
            raise NoPlace
        self.places += places
        (work / "faulty.mlir").write_text(text)
        return "faulty.mlir"

    def check(self, tools_folder, described):
        return check(described, Tools(tools_folder, fault=self))


class InOracle:
    """Padding of ones where it must be zero. Every batch with padding in a
    reduced gradient shows it."""

    needs_default_align = False

    def __init__(self):
        self.places = 0

    def check(self, tools_folder, described):
        whole = ShardLayout.cut

        def cut(layout, full):
            self.places += layout.line != layout.w * layout.inner
            return _cut_with_ones(layout, full)

        ShardLayout.cut = cut
        try:
            return check(described, Tools(tools_folder))
        finally:
            ShardLayout.cut = whole


FAULTS = {
    "wrong padding": InOracle,
    "swapped members": lambda: InProgram(swapped_members),
    "double division": lambda: InProgram(double_division),
    "missing rounding": lambda: InProgram(missing_rounding),
    "wrong offset": lambda: InProgram(wrong_offset),
    "late partial sum": lambda: InProgram(late_partial),
    "lost shard": lambda: InProgram(lost_shard),
}


def _find(name, tools, seed):
    """How the fault was found, or None. A batch may have no place for it, and a
    place may hold nothing but zeros."""
    planted = 0
    for number in range(MAX_BATCHES):
        described = batch(seed, number)
        fault = FAULTS[name]()
        if fault.needs_default_align and "align" in described["options"]:
            continue
        try:
            failures = fault.check(tools, described)
        except NoPlace:
            continue
        for failure in failures:
            if failure.program is None:  # refused, not found
                print(f"{name}: {described['name']}: {failure}", flush=True)
                return None
        if failures and fault.places:
            return f"in {failures[0].program}: {failures[0]}"
        planted += fault.places > 0
        if planted == MAX_PLANTED:
            return None
    return None


def run(tools, seed):
    """(found, missed)"""
    found = 0
    for name in FAULTS:
        how = _find(name, tools, seed)
        print(f"{name}: {'found ' + how if how else 'NOT FOUND'}", flush=True)
        found += how is not None
    return found, len(FAULTS) - found
