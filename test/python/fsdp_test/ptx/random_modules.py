# Random modules of local ops in buffer form.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# One module holds many ops, each with a unit and a bucket of its own: shapes with
# short and empty rows, on any shard dimension, tiles of one run and of several,
# dense and aligned layouts, every pair of dtypes. A module is a function of its seed.

from math import prod
from random import Random

from fsdp_test.ir.local_op import LocalOp, by_ranks, module_of
from fsdp_test.oracle.dtypes import BY_NAME

RANKS = [1, 2, 3, 4, 8, 16, 64]
ALIGNMENTS = [1, 1, 32, 128, 128, 4096]
FLOATS = ["f32", "bf16", "f16"]
OPAQUE = [name for name, t in BY_NAME.items() if not t.floating]
DIVISORS = [2.0, 3.0, 1.5, 0.75, 7.0, 64.0, 1e-3]
KINDS = ["chunk_cat", "unchunk", "concat", "split"]


def _shape(rng, ranks):
    """A shape and a shard dimension; mostly small."""
    pick = rng.random()
    if pick < 0.25:  # a vector, often shorter than the ranks
        return [rng.choice([1, 2, 3, 4, 5, 6, 7, 10, 33, 257, 1000])], 0
    if pick < 0.35:  # long enough for full tiles
        return [ranks * 4096 + rng.choice([0, 1, 8, 100])], 0
    if pick < 0.45:  # long runs of several tiles, on dimension 1
        return [2, ranks * rng.choice([4096, 4100, 4104, 4111])], 1
    if pick < 0.75:  # runs of one row of a matrix
        shape = [rng.choice([1, 3, 8, 16, 65]), rng.choice([1, 2, 3, 5, 64, 257])]
    else:
        shape = [rng.choice([1, 2, 3, 5, 8, 17]) for _ in range(3)]
        shape[2] = rng.choice([1, 2, 3, 5, 16, 257])
    if rng.random() < 0.04:
        shape[rng.randrange(len(shape))] = 0
    dim = rng.randrange(len(shape))
    if rng.random() < 0.5:  # divisible, so that vectors are legal
        shape[dim] = ranks * rng.choice([1, 2, 4, 8])
    return shape, dim


def _members(rng, ranks):
    """(shape, shard dimension) of a few parameters, in total not too large."""
    members, elements = [], 0
    for _ in range(rng.choice([1, 1, 2, 3, 5, 9])):
        shape, dim = _shape(rng, ranks)
        if elements + prod(shape) < 200_000:
            members.append((shape, dim))
            elements += prod(shape)
    return members or [([5, 3], 0)]


class Case(LocalOp):
    """One op of `kind` with members at random."""

    def __init__(self, rng, number, kind, pair=None, f64=False):
        self.number, self.kind = number, kind
        self.ranks = rng.choice(RANKS)
        self.align = rng.choice(ALIGNMENTS)
        self.members = _members(rng, self.ranks)
        count = len(self.members)
        names = ["f64"] + FLOATS if f64 else FLOATS
        is_gather = kind in ("concat", "unchunk")
        self.wire = pair[1] if pair else rng.choice(names)
        if f64 and rng.random() < 0.5:
            self.wire = "f64"
        self.wires = [self.wire] * count
        if pair:
            self.dtypes = [pair[0]] * count
        else:
            self.dtypes = [rng.choice([self.wire, rng.choice(names)]) for _ in range(count)]
            if is_gather and rng.random() < 0.5:
                self.wire = "bytes"
                self.wires = [rng.choice(names + OPAQUE[:4]) for _ in range(count)]
                if rng.random() < 0.5:
                    self.wires = [rng.choice(BY_NAME_LIST) for _ in range(count)]
                self.dtypes = [
                    w if w in OPAQUE or rng.random() < 0.7 else rng.choice(names)
                    for w in self.wires
                ]
        if not is_gather and rng.random() < 0.4:
            self.divide = rng.choice(DIVISORS)
        self.adds = kind == "split" and rng.random() < 0.5


BY_NAME_LIST = FLOATS + ["f64"] + OPAQUE


def modules(cases):
    """The cases, one module per number of ranks."""
    return [module_of(ops) for ops in by_ranks(cases).values()]


def random_cases(seed, count):
    """`count` ops: first one of every kind and pair of dtypes, then any."""
    rng = Random(seed)
    cases = []
    pairs = [(a, b) for a in FLOATS for b in FLOATS]
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        number_of_pair = number // len(KINDS)
        pair = pairs[number_of_pair] if number_of_pair < len(pairs) else None
        cases.append(Case(rng, number, kind, pair, f64=number % 7 == 6 and not pair))
    return cases
