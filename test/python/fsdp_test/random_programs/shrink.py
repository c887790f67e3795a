# The smallest batch that still fails in the same way.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Greedy: candidates, the largest cuts first, until none of them fails any more.
# A candidate that fails otherwise (because it is not a legal program, say) is
# none.

import copy
import re
import time
from itertools import chain

from fsdp_test.oracle.precision import Refused

from .check import check
from .description import gradients_of, unit_of

MAX_SECONDS = 120


def kind_of(failure):
    """A failure's message without names and numbers."""
    text = str(failure)
    text = re.split(r", rank |, element |: expected ", text)[0]
    text = re.sub(r"'[^']*'|@\S+|%\S+|/\S+", "", text)
    return re.sub(r"\d+", "", text[7:])  # without "level N"


def _dropped(items):
    """The list without each of its parts: halves, then single items."""
    if len(items) > 2:
        half = len(items) // 2
        yield items[half:]
        yield items[:half]
    for i in range(len(items)):
        yield items[:i] + items[i + 1 :]


def _lists(owner, key, least=0):
    for shorter in _dropped(owner.get(key, [])):
        if len(shorter) >= least:
            yield owner, key, shorter


def _absent(owner, *keys):
    for key in keys:
        if owner.get(key):
            yield owner, key, None


def _smaller(param):
    """A parameter's shape, simpler."""
    shape, k = param["shape"], param.get("shard_dim", 0)
    for i, size in enumerate(shape):
        if len(shape) > 1 and i != k:
            less = shape[:i] + shape[i + 1 :]
            yield {"shape": less, "shard_dim": k - (i < k)}
        for new in (1, 2, size // 2, size - 1):
            if 0 < new < size:
                yield {"shape": shape[:i] + [new] + shape[i + 1 :]}


def _changes(batch):
    """(dictionary, key, new value or None); the key None stands for several."""
    yield from _lists(batch, "programs", 1)
    yield from _absent(batch, "other_grid", "codegen_level", "sum_order")
    for key in list(batch["options"]):
        yield batch["options"], key, None
    for program in batch["programs"]:
        yield from _lists(program, "steps", 1)
        if program["values"] != "fill" and "other_grid" not in batch:
            yield program, "values", "fill"
        used = {unit_of(s) for s in program["steps"]}
        if len(used) < len(program["units"]):
            kept = [u for u in program["units"] if u["name"] in used]
            yield program, "units", kept
        for step in program["steps"]:
            yield from _step_changes(step)
            for grad in chain(*gradients_of(step)):
                yield from _lists(grad, "terms", 1)
                yield from _absent(grad, "old", "add", "casts", "result_casts")
                for term in grad["terms"]:
                    yield from _absent(term, "casts", "weight")
        for unit in program["units"]:
            yield from _unit_changes(program, unit)
    if batch["grid"]["shape"] != [2] and "other_grid" not in batch:
        yield batch, None, {"grid": {"shape": [2]}}


def _step_changes(step):
    yield from _lists(step, "grads", 1)
    for name in list(step.get("casts", {})):
        yield step["casts"], name, None
    yield from _lists(step, "microbatches", 1)
    # Every microbatch has the same parameters.
    columns = list(zip(*step.get("microbatches", [])))
    for fewer in _dropped(columns):
        if fewer:
            yield step, "microbatches", [list(row) for row in zip(*fewer)]
    yield from _absent(
        step, "enters", "leaves", "split_add", "joint", "accumulate", "align"
    )


def _unit_changes(program, unit):
    yield from _absent(unit, "reduction", "divide_factor", "profile")
    named = {
        g["param"]
        for s in program["steps"]
        if unit_of(s) == unit["name"]
        for g in chain(*gradients_of(s))
    }
    for p in unit["params"]:
        if p["name"] not in named and len(unit["params"]) > 1:
            yield unit, "params", [q for q in unit["params"] if q is not p]
    for key in list(unit.get("precision", {})):
        yield unit["precision"], key, None
    for p in unit["params"]:
        for key in list(p.get("precision", {})):
            yield p["precision"], key, None
        for change in _smaller(p):
            yield p, None, change


def _apply(batch, number):
    """A copy of the batch with its change of that number, or None."""
    batch = copy.deepcopy(batch)
    for i, (owner, key, value) in enumerate(_changes(batch)):
        if i < number:
            continue
        if key is None:
            owner.update(value)
        elif value is None:
            owner.pop(key)
        else:
            owner[key] = value
        if owner is batch and key is None:  # a grid of one axis
            for program in batch["programs"]:
                for unit in program["units"]:
                    unit["shard_axes"], unit["replicate_axes"] = [0], []
        return batch
    return None


def shrink(batch, tools, failure):
    """(batch, its failure)"""
    wanted = kind_of(failure)
    deadline = time.monotonic() + MAX_SECONDS

    def failing(candidate):
        try:
            found = check(candidate, tools)
        except (Refused, ValueError, KeyError):  # not a legal program
            return None
        return next((f for f in found if kind_of(f) == wanted), None)

    if failure.program:
        named = [p for p in batch["programs"] if p["name"] == failure.program]
        alone = dict(batch, programs=named)
        found = failing(alone)
        if found:
            batch, failure = alone, found
    number, smaller = 0, False
    while time.monotonic() < deadline:
        candidate = _apply(batch, number)
        if candidate is None:
            if not smaller:
                break
            number, smaller = 0, False  # changes that were in vain may help now
            continue
        found = failing(candidate)
        if found:
            batch, failure, smaller = candidate, found, True
        else:
            number += 1
    return batch, failure
