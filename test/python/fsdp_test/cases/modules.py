# Cases as IR: hand-written buckets, declared steps, declared modules.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from fsdp_test.ir import (
    Value, bucket_text, function, grid_text, module, number, op, param_ref, several,
    shard_shape, step, tensor_type, unit_text,
)


def declarations(case):
    """The grid and the units as the case gives them."""
    return [grid_text(case["grid"])] + [
        unit_text(case["grid"], u) for u in case["units"]
    ]


class HandWrittenModule:
    """One bucket, its ops written out at stage packed."""

    def __init__(self, case, hand):
        self.case = case
        self.hand = hand
        self.unit = dict(case["units"][0])
        self.unit["params"] = [
            dict(p, precision=self._precision(p)) for p in self.unit["params"]
        ]
        self.unit.pop("precision", None)
        self.members = [
            next(p for p in self.unit["params"] if p["name"] == name)
            for name in case["inputs"]["bucket"]["members"]
        ]

    def _precision(self, param):
        """From stage explicit on, parameters carry their full precision. Members
        of a reduction reduce in its wire dtype, whatever the unit says."""
        full = self.hand.precisions[param["name"]]
        entries = {"param": full.param, "reduce": full.reduce, "grad": full.grad}
        bucket = self.case["inputs"]["bucket"]
        if bucket["kind"] == "reduce" and param["name"] in bucket["members"]:
            entries["reduce"] = self.hand.wire
        return {k: t.name for k, t in entries.items() if t}

    def text(self, args, results, body):
        bucket = self.case["inputs"]["bucket"]
        declared = bucket_text(
            "bucket", bucket["kind"], self.unit["name"], bucket["members"],
            bucket["wire"], self.hand.options.align,
        )
        grid = self.case["grid"]
        return module([
            grid_text(grid), unit_text(grid, self.unit), declared,
            function("main", args, results, body),
        ])

    def shard_type(self, param, dtype):
        return tensor_type(shard_shape(self.case["grid"], self.unit, param), dtype)

    def _param_values(self, prefix, role, types):
        return [
            Value(f"%{prefix}{i}", t, role, param_ref(self.unit, p), p["name"])
            for i, (p, t) in enumerate(zip(self.members, types))
        ]

    def gather(self, flat_type, packed_type):
        """concat, all_gather and unchunk: shards in; flat shard and full
        tensors out."""
        params = self.members
        args = self._param_values(
            "s", "fsdp.shard", [self.shard_type(p, p["storage"]) for p in params]
        )
        full = [tensor_type(p["shape"], p["precision"]["param"]) for p in params]
        left, parts = several("full", len(params))
        types = [a.type for a in args]
        body = [
            op(
                "%flat", "concat", [a.ssa for a in args], "into @bucket", types,
                [flat_type],
            ),
            op(
                "%rows", "all_gather", ["%flat"], "of @bucket", [flat_type],
                [packed_type],
            ),
            op(left, "unchunk", ["%rows"], "of @bucket", [packed_type], full),
        ]
        results = [Value("%flat", flat_type)]
        results += [
            Value(ssa, t, "fsdp.full", param_ref(self.unit, p), p["name"])
            for ssa, t, p in zip(parts, full, params)
        ]
        return self.text(args, results, body), args, results

    def pack(self, packed_type, operand_dtypes, divide=None, flat_type=None):
        """chunk_cat: full gradients in, packed rows out; with `flat_type`, the
        rows are reduced and split too."""
        params = self.members
        args = [
            Value(f"%g{i}", tensor_type(p["shape"], t))
            for i, (p, t) in enumerate(zip(params, operand_dtypes))
        ]
        into = "into @bucket" + (f" divide {number(divide)}" if divide else "")
        body = [
            op(
                "%rows", "chunk_cat", [a.ssa for a in args], into,
                [a.type for a in args], [packed_type],
            )
        ]
        results = [Value("%rows", packed_type)]
        if flat_type:
            left, parts = several("shard", len(params))
            shards = [self.shard_type(p, p["precision"]["grad"]) for p in params]
            body += [
                op(
                    "%sum", "reduce_scatter sum", ["%rows"], "of @bucket",
                    [packed_type], [flat_type],
                ),
                op(left, "split", ["%sum"], "of @bucket", [flat_type], shards),
            ]
            results += [Value(ssa, t) for ssa, t in zip(parts, shards)]
        return self.text(args, results, body), args, results

    def unpack(self, flat_type, packed_type, result_dtypes):
        """unchunk, once of rows that come from outside and once of gathered
        flat shards."""
        params = self.members
        args = [Value("%rows", packed_type), Value("%flat", flat_type)]
        full = [tensor_type(p["shape"], t) for p, t in zip(params, result_dtypes)]
        left, parts = several("full", len(params))
        left2, parts2 = several("gathered", len(params))
        of = "of @bucket"
        body = [
            op(left, "unchunk", ["%rows"], of, [packed_type], full),
            op("%all", "all_gather", ["%flat"], of, [flat_type], [packed_type]),
            op(left2, "unchunk", ["%all"], of, [packed_type], full),
        ]
        results = [Value(s, t) for s, t in zip(parts + parts2, full + full)]
        return self.text(args, results, body), args, results


def _reduce_grads(name, unit, params, operands, grid, precisions):
    """(line, [result value]) of one reduce_grads."""
    results = step.shards(
        "", grid, unit, params, lambda p: precisions[p["name"]].grad, "shard_grad"
    )
    return step.reduce_grads(name, unit, params, operands, results), results


def _accumulated(total, shard, body):
    """`shard` added to the parameter's earlier one by the program."""
    if shard.name in total:
        ssa = f"%sum{len(body)}"
        old = total[shard.name].ssa
        body.append(f"{ssa} = arith.addf {old}, {shard.ssa} : {shard.type}")
        shard.ssa = ssa
    total[shard.name] = shard


def steps(case, precisions):
    """A reduce case: every step one reduce_grads per unit, shards added up in
    the grad dtype. Returns (text, args, [(step, parameter)] of args, results)."""
    grid, args, origin, body, total = case["grid"], [], [], [], {}
    single = len(case["inputs"]["steps"]) == 1
    for s, given in enumerate(case["inputs"]["steps"]):
        for u, unit in enumerate(case["units"]):
            params = [p for p in unit["params"] if p["name"] in given["grads"]]
            if not params:
                continue
            operands = []
            for p in params:
                t = given["grads"][p["name"]]["dtype"]
                value = Value(f"%g{len(args)}", tensor_type(p["shape"], t))
                # A role names a tensor, so it fits one step only; and it
                # promises the param dtype.
                if single and t == precisions[p["name"]].param.name:
                    value.role = "fsdp.full_grad"
                    value.ref, value.name = param_ref(unit, p), p["name"]
                args.append(value)
                origin.append((given, p))
                operands.append(value)
            line, shards = _reduce_grads(
                f"s{s}_{u}", unit, params, operands, grid, precisions
            )
            body.append(line)
            for shard in shards:
                _accumulated(total, shard, body)
    results = list(total.values())
    profile = case.get("options", {}).get("profile")
    text = module(
        declarations(case) + [function("main", args, results, body)], profile
    )
    return text, args, origin, results


def partial_steps(case, hand, how):
    """The same where a step without an all-reduce leaves a partial sum. There
    is no declared form of that: one bucket, its ops written out, the partial
    added before the next all-reduce. `how`: the bucket's division."""
    written = HandWrittenModule(case, hand)
    unit, params = written.unit, written.members
    packed, flat = hand.packed_type, hand.flat_type
    divide = f" divide {number(how.divide)}" if how.divide else ""
    last_divide = f" divide {number(how.split_divide)}" if how.split_divide else ""
    scatter = how.reduce_scatter
    scatter += f" {number(how.premul)}" if how.premul is not None else ""
    args, origin, body, total, partial = [], [], [], {}, None
    for s, given in enumerate(case["inputs"]["steps"]):
        operands = []
        for p in params:
            t = given["grads"][p["name"]]["dtype"]
            operands.append(Value(f"%g{len(args)}", tensor_type(p["shape"], t)))
            args.append(operands[-1])
            origin.append((given, p))
        names, types = [o.ssa for o in operands], [o.type for o in operands]
        into = "into @bucket" + divide
        body.append(op(f"%rows{s}", "chunk_cat", names, into, types, [packed]))
        of = "of @bucket"
        share = f"%share{s}"
        name = f"reduce_scatter {scatter}"
        body.append(op(share, name, [f"%rows{s}"], of, [packed], [flat]))
        if partial:
            body.append(f"%partial{s} = arith.addf {partial}, {share} : {flat}")
            share, partial = f"%partial{s}", None
        if how.all_reduce and not given.get("all_reduce", True):
            partial = share
            continue
        if how.all_reduce:
            name = f"all_reduce {how.all_reduce}"
            body.append(op(f"%all{s}", name, [share], of, [flat], [flat]))
            share = f"%all{s}"
        left, parts = several(f"s{s}", len(params))
        shards = [written.shard_type(p, p["precision"]["grad"]) for p in params]
        body.append(op(left, "split", [share], of + last_divide, [flat], shards))
        for ssa, t, p in zip(parts, shards, params):
            ref = param_ref(unit, p)
            shard = Value(ssa, t, "fsdp.shard_grad", ref, p["name"])
            _accumulated(total, shard, body)
    results = list(total.values())
    return written.text(args, results, body), args, origin, results


def declared(case, precisions, has_grad=None, grad_types=None, with_unshard=True):
    """One unshard and one reduce_grads of every unit, as a program would have
    them. `has_grad`: the parameters with a gradient, default all trainable; one that
    is named twice has two."""
    grid, args, results, body = case["grid"], [], [], []
    for u, unit in enumerate(case["units"]):
        if not with_unshard:
            break
        params = unit["params"]
        shards = step.shards(f"p{u}_", grid, unit, params, lambda p: p["storage"])
        full = step.full("", unit, params, lambda p: precisions[p["name"]].param)
        body.append(step.unshard(f"w{u}", unit, shards, full))
        args += shards
        results += full
    given = {g["name"]: tensor_type(g["shape"], g["dtype"]) for g in grad_types or []}
    for u, unit in enumerate(case["units"]):
        params = [
            p for p in unit["params"]
            for _ in range(
                not p.get("frozen") if has_grad is None
                else list(has_grad).count(p["name"])
            )
        ]
        if not params:
            continue
        operands = step.full(
            f"g{u}_", unit, params, lambda p: precisions[p["name"]].param, "full_grad"
        )
        for value in operands:
            value.type = given.get(value.name, value.type)
        line, shards = _reduce_grads(f"s{u}", unit, params, operands, grid, precisions)
        body.append(line)
        args += operands
        results += shards
    profile = case.get("options", {}).get("profile")
    return module(
        declarations(case) + [function("main", args, results, body)], profile
    )
