#!/usr/bin/python3
# Checks bucketing vectors: short notation in, IR through fsdp-opt, buckets out.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A line `// VECTOR NAME [WORDS]: ITEMS -> BUCKETS` of the file is one vector:
#
#   // VECTOR R2_closed_stays_closed cap=10: 3 12 3 -> {a} {b} {c}
#
# Items are called a, b, c ... in program order, unless WORDS say otherwise. Each
# is SIZE KEY @AXIS <NEEDS, and all parts but one may be left out:
#
#   12     12 units: tensor<24xbf16>, 48 bytes packed on 2 ranks (default 1)
#   k, j   the dtype: k is bf16 (default), j is f16, w is f32
#   @0, @1 the axis of a 2x2 grid along which it is cut, instead of a grid of 2
#   <a,b   its input is made by an op that uses the results of a and b
#   =a     its input is the result of a, which is half as large, or a cast of
#          that where one is k and the other w
#   !      an op with side effects uses its result at once
#
# Every item is a unit of its own, its bucket has `align 1`. BUCKETS stand in the
# order of issue, members in the order of payload. WORDS:
#
#   cap=N[,N..]  max-bytes=4N, or max-elements=N with `elements`
#   elements     an item of size n has n elements, not 2n
#   reduce       reductions instead of gathers
#   backward     the program has the items in reverse; a is still declared first
#   one-unit     all items belong to one unit op, group 0
#   k=v          any other: an option of the pass, in place of --options
#
#   bucket_vectors.py FSDP_OPT FILE [--options "scope=global ..."] [--ir NAME]

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

VECTOR = re.compile(r"^(?://|#) VECTOR ([^\s:]+)((?: [^:\n]+)?): (.+) -> (.+)$", re.M)
ITEM = re.compile(
    r"(\d+)?([kjw])?(?:@([01]))?(?:<([a-z](?:,[a-z])*)|=([a-z]))?(!)?"
)
DTYPE = {"k": "bf16", "j": "f16", "w": "f32"}


@dataclass
class Item:
    name: str
    elements: int  # of the full parameter
    dtype: str
    axis: str = ""
    needs: list = field(default_factory=list)
    is_of: str = ""
    is_used: bool = False

    @property
    def full(self):
        return f"tensor<{self.elements}x{self.dtype}>"

    @property
    def row(self):
        return -(-self.elements // 2)

    @property
    def shard(self):
        return f"tensor<{self.row}x{self.dtype}>"

    @property
    def packed(self):
        return f"tensor<2x{self.row}x{self.dtype}>"


def parse_items(text, per_size):
    items = []
    for word in text.split():
        match = ITEM.fullmatch(word)
        if not match:
            sys.exit(f"'{word}' is no item")
        size, key, axis, needs, is_of, used = match.groups()
        name = chr(ord("a") + len(items)) if len(items) < 26 else f"z{len(items)}"
        items.append(
            Item(
                name, per_size * int(size or 1), DTYPE[key or "k"], axis or "",
                needs.split(",") if needs else [], is_of or "", bool(used),
            )
        )
    return items


def declarations(items, words):
    one_unit = "one-unit" in words
    shape = "2x2" if any(i.axis for i in items) else "2"
    lines = [f"shard.grid @dp(shape = {shape})"]

    def unit(name, members):
        axis = f" shard_axes [{members[0].axis}]" if members[0].axis else ""
        body = [
            f"  fsdp.param @{i.name} : {i.full} precision "
            f"<param = {i.dtype}, reduce = {i.dtype}, grad = {i.dtype}>"
            for i in members
        ]
        return [f"fsdp.unit @{name} on @dp{axis} {{", *body, "}"]

    if one_unit:
        lines += unit("u", items)
    else:
        lines += [line for i in items for line in unit(f"u_{i.name}", [i])]
    kind = "reduce" if "reduce" in words else "gather"
    for i in items:
        owner = "u" if one_unit else f"u_{i.name}"
        group = " group 0" if one_unit else ""
        lines.append(
            f"fsdp.bucket @{i.name} {kind} @{owner}[@{i.name}] : {i.dtype} "
            f"align 1{group}"
        )
    return lines


def module(items, words):
    by_name = {i.name: i for i in items}
    reduce = "reduce" in words
    source = (lambda i: i.full) if reduce else (lambda i: i.shard)
    result = (lambda i: i.shard) if reduce else (lambda i: i.full)
    lines = declarations(items, words)
    args = ", ".join(f"%s{i.name}: {source(i)}" for i in items)
    lines.append(f"func.func @main({args}) -> ({', '.join(map(result, items))}) {{")
    for i in reversed(items) if "backward" in words else items:
        n, value = i.name, f"%s{i.name}"
        if i.needs:
            made = [f"%w{m}" for m in i.needs] + [value]
            types = [result(by_name[m]) for m in i.needs] + [source(i)]
            lines.append(
                f'  %x{n} = "test.use"({", ".join(made)})'
                f" : ({', '.join(types)}) -> {source(i)}"
            )
            value = f"%x{n}"
        if i.is_of:
            value = f"%w{i.is_of}"
            made = result(by_name[i.is_of])
            if made != source(i):
                cast = "extf" if i.dtype == "f32" else "truncf"
                lines.append(
                    f"  %x{n} = arith.{cast} {value} : {made} to {source(i)}"
                )
                value = f"%x{n}"
        if reduce:
            lines += [
                f"  %p{n} = fsdp.chunk_cat {value} into @{n}"
                f" : ({i.full}) -> {i.packed}",
                f"  %r{n} = fsdp.reduce_scatter avg %p{n} of @{n}"
                f" : ({i.packed}) -> {i.shard}",
                f"  %w{n} = fsdp.split %r{n} of @{n} : ({i.shard}) -> {i.shard}",
            ]
        else:
            lines += [
                f"  %f{n} = fsdp.concat {value} into @{n}"
                f" : ({i.shard}) -> {i.shard}",
                f"  %g{n} = fsdp.all_gather %f{n} of @{n}"
                f" : ({i.shard}) -> {i.packed}",
                f"  %w{n} = fsdp.unchunk %g{n} of @{n} : ({i.packed}) -> {i.full}",
            ]
        if i.is_used:
            lines.append(f'  "test.effect"(%w{n}) : ({result(i)}) -> ()')
    lines.append(
        f"  return {', '.join(f'%w{i.name}' for i in items)}"
        f" : {', '.join(map(result, items))}"
    )
    return "\n".join([*lines, "}"]) + "\n"


def buckets_of(printed):
    """`{a,b} {c}`: members of the buckets in the order of their collectives."""
    members = {
        name: re.findall(r"@(\w+)(?=[,\]])", rest)
        for name, rest in re.findall(r"fsdp\.bucket @(\w+) \w+ (.*) : ", printed)
    }
    issued = re.findall(
        r"fsdp\.(?:all_gather|reduce_scatter)\b.* of @(\w+)", printed
    )
    return " ".join("{" + ",".join(members[name]) + "}" for name in issued)


def split_words(words, options):
    """The words about the program, and the pass's options."""
    given = dict(option.split("=", 1) for option in options.split())
    about = []
    for word in words.split():
        key, is_option, value = word.partition("=")
        if key == "cap":
            elements = "elements" in words.split()
            numbers = [int(n) * (1 if elements else 4) for n in value.split(",")]
            key = "max-elements" if elements else "max-bytes"
            given[key] = ",".join(map(str, numbers))
        elif is_option:
            given[key] = value
        else:
            about.append(word)
    return about, given


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fsdp_opt")
    parser.add_argument("file", type=Path)
    parser.add_argument("--options", default="")
    parser.add_argument("--ir", metavar="NAME", help="print that vector's IR")
    args = parser.parse_args()
    vectors = VECTOR.findall(args.file.read_text())
    lines = [ln for ln in args.file.read_text().splitlines() if " VECTOR " in ln]
    wrong = 0
    if len(lines) != len(vectors) or len({v[0] for v in vectors}) != len(vectors):
        print("a VECTOR line is malformed, or has the name of another")
        wrong += 1
    for name, words, items_text, expected in vectors:
        about, options = split_words(words, args.options)
        items = parse_items(items_text, 1 if "elements" in about else 2)
        text = module(items, about)
        if args.ir:
            print(text if name == args.ir else "", end="")
            continue
        given = " ".join(f"{key}={value}" for key, value in options.items())
        done = subprocess.run(
            [
                args.fsdp_opt, f"--fsdp-form-buckets={given}",
                "--fsdp-fuse-casts", "--fsdp-verify-stage=stage=packed",
            ],
            input=text, capture_output=True, text=True,
        )
        got = done.stderr.strip() if done.returncode else buckets_of(done.stdout)
        if got != expected.strip():
            print(f"{name}: expected {expected.strip()}, got {got}")
            wrong += 1
    if not args.ir:
        print(f"{len(vectors)} vectors, {wrong} wrong")
    return 1 if wrong or not vectors else 0


if __name__ == "__main__":
    sys.exit(main())
