# Runs a case through the oracle: does the oracle agree with the case?
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import numpy as np

from fsdp_test.oracle import buckets, dtypes, reduction
from fsdp_test.oracle.description import units_of
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import ShardLayout
from fsdp_test.oracle.precision import Refused, resolve

from .bucket_case import HandWritten, options_of, plan_fields, precisions_of
from .values import (
    Mismatch, NotCovered, expect, expect_rows, expect_values, numbers, tensor,
)


def _layout(case):
    """Numbers alone: no tensor is made."""
    hand = HandWritten(case)
    expected = case["expected"]
    expect("W", case["W"], hand.unit.grid.w)
    for name, want in expected["params"].items():
        param = hand.unit.param(name)
        got = ShardLayout(param.shape, param.shard_dim, case["W"])
        for field, value in want.items():
            actual = getattr(got, field)
            actual = list(actual) if isinstance(actual, tuple) else actual
            expect(f"{name}, {field}", value, actual)
    got = hand.layout
    offsets = dict(zip((p.name for p in hand.params), got.offsets))
    expect("offset_bytes", expected["bucket"]["offset_bytes"], offsets)
    expect("row_bytes", expected["bucket"]["row_bytes"], got.row_bytes)
    expect("row_elements", expected["bucket"]["row_elements"], got.row_elements)
    expect(
        "packed_bytes", expected["bucket"]["packed_bytes"], case["W"] * got.row_bytes
    )


def _chunk_cat(case):
    hand = HandWritten(case)
    expect("type", case["expected"]["type"], hand.packed_type)
    how = reduction.Plan(divide=case["inputs"].get("divide"))
    shares = []
    for p, layout in zip(hand.params, hand.layout.layouts):
        source, full = tensor(case["inputs"]["tensors"][p.name], p.shape, 0)
        shares.append(
            layout.cut(reduction.pack_gradient(full, source, hand.wire, how))
        )
    rows = [
        hand.layout.pack([s[r] for s in shares]) for r in range(case["W"])
    ]
    expect_rows(case, hand.layout, hand.member_dtypes, rows)


def _concat(case):
    hand = HandWritten(case)
    expect("type", case["expected"]["type"], hand.flat_type)
    shares = []
    for p, layout, to in zip(hand.params, hand.layout.layouts, hand.member_dtypes):
        spec = case["inputs"]["tensors"][p.name]
        _, full = tensor(spec, p.shape, 0, p.storage)
        shares.append([dtypes.cast(s, p.storage, to) for s in layout.cut(full)])
    rows = [hand.layout.pack([s[r] for s in shares]) for r in range(case["W"])]
    expect_rows(case, hand.layout, hand.member_dtypes, rows)
    _expect_full(case, hand, rows, hand.member_dtypes)


def _expect_full(case, hand, rows, result_dtypes):
    segments = [hand.layout.unpack(row) for row in rows]
    for m, (p, to) in enumerate(zip(hand.params, result_dtypes)):
        want = case["expected"]["full"][p.name]
        expect(f"{p.name}, dtype", want["dtype"], to.name)
        full = hand.layout.layouts[m].join([s[m] for s in segments])
        full = dtypes.cast(full, hand.member_dtypes[m], to)
        expect_values(p.name, want["values"], full, to)


def packed_rows(case, hand):
    """The bucket of an unchunk case: segments, all other bytes gap_byte."""
    rows = []
    for segments in case["inputs"]["rows"]:
        row = np.full(hand.layout.row_bytes, case["inputs"]["gap_byte"], np.uint8)
        for p, t, at in zip(hand.params, hand.member_dtypes, hand.layout.offsets):
            data = numbers(segments[p.name], t).view(np.uint8)
            row[at : at + data.size] = data
        rows.append(row)
    return rows


def _unchunk(case):
    hand = HandWritten(case)
    expect("type", case["expected"]["type"], hand.packed_type)
    to = case["inputs"].get("result_dtypes", {})
    results = [
        dtype(to.get(p.name, t.name))
        for p, t in zip(hand.params, hand.member_dtypes)
    ]
    _expect_full(case, hand, packed_rows(case, hand), results)


def _named(steps):
    return {name for step in steps for name in step["grads"]}


def _reduce(case):
    units = units_of(case)
    options = options_of(case)
    precisions = precisions_of(case, units)
    steps = case["inputs"]["steps"]
    last = buckets.reduce_buckets(units, precisions, options, steps[-1]["grads"])
    if "buckets" in case["expected"]:
        _expect_reduce_buckets(case["expected"]["buckets"], last)
    expect_shards(case, _shards(units, options, precisions, steps))


def _places(units, options, precisions, grads):
    """{name: (first element, length)} of what lies where in a bucket's row."""
    out = {}
    for bucket in buckets.reduce_buckets(units, precisions, options, grads):
        layout = bucket.layout
        for (_, p, wire), offset in zip(bucket.members, layout.offsets):
            out[p.name] = offset // wire.size, layout.row_elements
    return out


def _shards(units, options, precisions, steps):
    """{name: (dtype, one carrier per grid rank)} after the last step."""
    shards = {}
    places = _places(units, options, precisions, steps[-1]["grads"])
    for unit in units:
        for p in unit.trainable:
            if p.name not in _named(steps):
                continue
            layout = ShardLayout(p.shape, p.shard_dim, unit.grid.w)
            reducer = reduction.GradientReducer(
                unit, p, layout, precisions[p.name], options.accumulate,
                options.average, options.sum_order, places.get(p.name),
            )
            for step in steps:
                if p.name not in step["grads"]:
                    continue
                spec = step["grads"][p.name]
                full = [tensor(spec, p.shape, r) for r in range(unit.grid.ranks)]
                reducer.step(
                    [g for _, g in full], full[0][0], step.get("all_reduce", True)
                )
            shards[p.name] = (reducer.grad, reducer.shards)
    return shards


def _step(case):
    units, options = units_of(case), options_of(case)
    precisions = precisions_of(case, units)
    for unit in units:
        for p in unit.params:
            stored = tensor(case["inputs"]["tensors"][p.name], p.shape, 0, p.storage)
            layout = ShardLayout(p.shape, p.shard_dim, unit.grid.w)
            to, want = precisions[p.name].param, case["expected"]["full"][p.name]
            expect(f"{p.name}, dtype", want["dtype"], to.name)
            cast = [dtypes.cast(s, p.storage, to) for s in layout.cut(stored[1])]
            expect_values(p.name, want["values"], layout.join(cast), to)
    steps = [{"grads": case["inputs"]["grads"]}]
    expect_shards(case, _shards(units, options, precisions, steps))


def expect_shards(case, shards):
    """`shards`: {name: (dtype, one carrier per grid rank)}."""
    for name, want in case["expected"]["shards"].items():
        t, per_rank = shards[name]
        expect(f"{name}, dtype", want["dtype"], t.name)
        expect(f"{name}, ranks", len(want["ranks"]), len(per_rank))
        for r, values in enumerate(want["ranks"]):
            expect_values(f"{name}, rank {r}", values, per_rank[r], t)


def _expect_reduce_buckets(expected, got):
    expect("reduce buckets", len(expected), len(got))
    for i, (want, bucket) in enumerate(zip(expected, got)):
        actual = plan_fields(bucket.plan)
        actual["wire"] = bucket.wire.name
        actual["members"] = [p.name for _, p, _ in bucket.members]
        _expect_layout(f"reduce bucket {i}", want, bucket, actual)


def _expect_layout(what, want, bucket, actual):
    layout = bucket.layout
    names = [p.name for _, p, _ in bucket.members]
    actual["offset_bytes"] = dict(zip(names, layout.offsets))
    actual["row_bytes"] = layout.row_bytes
    for field, value in want.items():
        expect(f"{what}, {field}", value, actual[field])


def _resolve(case):
    precisions = precisions_of(case, units_of(case))
    for name, want in case["expected"]["params"].items():
        for field, value in want.items():
            got = getattr(precisions[name], field)
            expect(f"{name}, {field}", value, got and got.name)


def _buckets(case):
    units = units_of(case)
    options = options_of(case)
    precisions = precisions_of(case, units)
    has_grad = case.get("inputs", {}).get("has_grad")
    expected = case["expected"]
    gathers = buckets.gather_buckets(units, precisions, options)
    reduces = buckets.reduce_buckets(units, precisions, options, has_grad)
    expect("counts", expected["counts"], buckets.counts(gathers, reduces))
    expect("gather buckets", len(expected["gather"]), len(gathers))
    for i, (want, bucket) in enumerate(zip(expected["gather"], gathers)):
        actual = {
            "wire": bucket.wire.name if bucket.wire else "bytes",
            "members": [p.name for _, p, _ in bucket.members],
        }
        _expect_layout(f"gather bucket {i}", want, bucket, actual)
    _expect_reduce_buckets(expected["reduce"], reduces)

    options.opt_level = 0
    gathers = buckets.gather_buckets(units, precisions, options)
    reduces = buckets.reduce_buckets(units, precisions, options, has_grad)
    expect(
        "explicit_counts", expected["explicit_counts"],
        buckets.counts(gathers, reduces),
    )


def _error(case):
    if case["expected"]["stage"] != "resolve":
        raise NotCovered("the oracle reads no IR")
    try:
        for unit in units_of(case):
            resolve(unit, options_of(case).profile)
    except Refused as refusal:
        message = str(refusal)
        for word in case["expected"]["words"]:
            if word.lower() not in message.lower():
                raise Mismatch("message", f"'{word}'", message) from None
        return
    raise Mismatch("resolve", "a refusal", "none")


RUN = {
    "layout": _layout,
    "chunk_cat": _chunk_cat,
    "concat": _concat,
    "unchunk": _unchunk,
    "reduce": _reduce,
    "step": _step,
    "resolve": _resolve,
    "buckets": _buckets,
    "error": _error,
}


def run(case):
    RUN[case["kind"]](case)
