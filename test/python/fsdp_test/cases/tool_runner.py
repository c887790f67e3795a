# Runs a case through fsdp-opt, fsdp-compile and fsdp-run.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import os
import re
import subprocess
import tempfile
from math import prod
from pathlib import Path

import numpy as np

from fsdp_test.ir import module, tensor_names, tensor_type
from fsdp_test.oracle import dtypes, reduction, tensor_file
from fsdp_test.oracle.description import units_of
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.layout import ShardLayout

from . import modules
from .bucket_case import HandWritten, options_of, precisions_of
from .oracle_runner import expect_shards, packed_rows
from .targets import TARGETS
from .values import (
    Mismatch, expect, expect_rows, expect_values, numbers, tensor,
)


def partial_sums(case):
    steps = case.get("inputs", {}).get("steps", [])
    return any(not s.get("all_reduce", True) for s in steps)


MAX_RANKS = 64  # of fsdp-run
MAX_ELEMENTS = 1 << 20  # of a layout that is run


def is_small(case):
    """Is a layout also run? Numbers alone say the rest of a large one."""
    shapes = [p["shape"] for unit in case["units"] for p in unit["params"]]
    ranks = prod(case["grid"]["shape"])
    return ranks <= MAX_RANKS and sum(map(prod, shapes)) <= MAX_ELEMENTS


def runs_program(case):
    """Whether the target matters: does the case run local ops?"""
    if case["kind"] == "layout":
        return is_small(case)
    return case["kind"] in ("chunk_cat", "concat", "unchunk", "reduce", "step")


class ToolFailed(Exception):
    """A tool failed where it must not; the message says how."""


class ToolRunner:
    def __init__(self, tools, target="cpu", keep=None):
        self.tools = Path(tools)
        self.target = TARGETS[target]
        self.keep = keep

    def run(self, case):
        if self.keep:
            folder = Path(self.keep) / case["id"]
            folder.mkdir(parents=True, exist_ok=True)
            CaseRun(case, self.tools, self.target, folder).run()
            return
        with tempfile.TemporaryDirectory(prefix="fsdp-case-") as folder:
            CaseRun(case, self.tools, self.target, Path(folder)).run()


class CaseRun:
    """One case in one folder."""

    def __init__(self, case, tools, target, folder):
        self.case = case
        self.tools = tools
        self.target = target
        self.folder = folder
        self.environment = {**os.environ, **target.environment(self)}
        self.options = options_of(case)
        self.ranks = prod(case["grid"]["shape"])

    def run(self):
        getattr(self, f"run_{self.case['kind']}")()

    # --- the tools ---------------------------------------------------------

    def call(self, tool, *arguments, tools=None):
        command = [str(Path(tools or self.tools) / tool), *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=self.folder,
            env=self.environment,
        )
        if done.returncode < 0 or done.returncode >= 128 or "PLEASE" in done.stderr:
            raise ToolFailed(f"{tool} crashed ({done.returncode}): {done.stderr[:400]}")
        return done

    def succeed(self, tool, *arguments, tools=None):
        done = self.call(tool, *arguments, tools=tools)
        if done.returncode:
            self.fail(tool, done)
        return done

    @staticmethod
    def fail(tool, done):
        raise ToolFailed(f"{tool}: {(done.stderr or done.stdout).strip()[:600]}")

    def write(self, text, name="case.mlir"):
        (self.folder / name).write_text(text)
        return name

    def optimize_options(self, opt_level):
        given = self.case.get("options", {})
        flags = {
            "align": "align", "max_bytes": "max-bytes", "gather": "gather",
            "accumulate": "accumulate", "average": "average", "unused": "unused",
            "scope": "scope", "policy": "policy",
        }
        words = [f"opt-level={opt_level}"]
        words += [f"{flags[k]}={v}" for k, v in given.items() if k in flags]
        return " ".join(words)

    def plan(self, source, *passes):
        """The plan as JSON and the IR that it belongs to."""
        done = self.succeed(
            "fsdp-opt", source, *passes, "--fsdp-print-plan=format=json",
            "-o", "plan.mlir",
        )
        try:
            return json.loads(done.stdout), (self.folder / "plan.mlir").read_text()
        except json.JSONDecodeError as error:
            raise ToolFailed(f"the plan is not JSON: {error}") from None

    def compile(self, source, output, *options):
        self.target.compile(self, source, output, options)
        return output

    def execute(self, artefact, inputs, *, per_rank=True):
        """Runs the entry; per rank {name: (dtype, shape, carrier)}. `inputs`:
        one dictionary per rank, or one of full tensors."""
        name = "in.{rank}.safetensors" if per_rank else "in.safetensors"
        for rank in range(self.ranks if per_rank else 1):
            path = self.folder / name.replace("{rank}", str(rank))
            tensor_file.write(path, inputs[rank] if per_rank else inputs)
        self.succeed(
            "fsdp-run", f"./{artefact}", f"--ranks={self.ranks}",
            f"--in={name}", f"--out={artefact}.{{rank}}.safetensors",
            f"--sum-order={self.options.sum_order}", *self.target.run_options,
        )
        return [
            tensor_file.read(self.folder / f"{artefact}.{rank}.safetensors")
            for rank in range(self.ranks)
        ]

    # --- layout -------------------------------------------------------------

    def run_layout(self):
        """Types in the IR are made of the expected numbers, so they verify only
        if the compiler agrees; the plan is compared; and where that takes little
        memory ones are packed, so that each rank's true extents show."""
        hand = HandWritten(self.case)
        expected = self.case["expected"]
        expect("W", self.case["W"], hand.unit.grid.w)
        row = expected["bucket"]["row_elements"]
        element = hand.layout.element_type
        flat_type = f"tensor<{row}x{element}>"
        packed_type = f"tensor<{self.case['W']}x{row}x{element}>"
        written = modules.HandWrittenModule(self.case, hand)
        written.shard_type = lambda p, t: tensor_type(
            expected["params"][p["name"]]["shard_shape"], t
        )
        if hand.kind == "gather":
            text, args, results = written.gather(flat_type, packed_type)
        else:
            operands = [p.storage for p in hand.params]
            text, args, results = written.pack(packed_type, operands, None, flat_type)
        source = self.write(text)
        plan, _ = self.plan(source)
        (bucket,) = [b for unit in plan["units"] for b in unit["buckets"]]
        self.expect_plan_layout("bucket", bucket, expected["bucket"])
        for member in bucket["members"]:
            name = member["param"]
            elements = expected["params"][name]["elements"]
            expect(f"{name}, elements", elements, member["elements"])
        if is_small(self.case):
            self.expect_extents(hand, source, args)

    def expect_extents(self, hand, source, args):
        ones = {}
        for name, p in zip(tensor_names(args, "arg"), hand.params):
            full = numbers([1] * prod(p.shape), p.storage)
            ones[name] = (p.storage, p.shape, full)
        artefact = self.compile(source, "case.so")
        out = self.execute(artefact, ones, per_rank=False)
        params = self.case["expected"]["params"]
        for r in range(self.ranks):
            place = hand.unit.grid.shard_place(r)
            row = out[r]["result0"][2].view(np.uint8)
            if hand.kind != "gather":
                row = row.reshape(self.case["W"], -1)[place]
            for p, t, share in zip(
                hand.params, hand.member_dtypes, hand.layout.unpack(row)
            ):
                want = params[p.name]
                rest = prod(want["shard_shape"][p.shard_dim + 1 :])
                lines = np.zeros((want["outer"], want["chunk"], rest), int)
                lines[:, : want["rows"][place]] = 1
                expect_values(
                    f"true extent of {p.name} on rank {r}", lines.ravel().tolist(),
                    share, t,
                )

    def expect_plan_layout(self, what, bucket, want):
        if "offset_bytes" in want:
            offsets = {m["param"]: m["offset_bytes"] for m in bucket["members"]}
            expect(f"{what}, offset_bytes", want["offset_bytes"], offsets)
        if "members" in want:
            names = [m["param"] for m in bucket["members"]]
            expect(f"{what}, members", want["members"], names)
        for field in ("wire", "row_bytes", "row_elements", "packed_bytes"):
            if field in want:
                expect(f"{what}, {field}", want[field], bucket[field])
        for field in ("reduce_scatter", "all_reduce"):
            if field in want:
                expect(f"{what}, {field}", want[field], bucket.get(field))
        for field in ("premul", "divide", "split_divide"):
            if field in want:
                got = bucket.get(field)
                if got is not None and field == "premul":
                    got = dtypes.round_scalar(got, dtype(bucket["wire"]))
                expect(f"{what}, {field}", want[field], got)

    # --- the local ops --------------------------------------------------------

    def run_chunk_cat(self):
        hand = HandWritten(self.case)
        tensors = self.case["inputs"]["tensors"]
        operands = [tensors[p.name]["dtype"] for p in hand.params]
        text, args, _ = modules.HandWrittenModule(self.case, hand).pack(
            self.case["expected"]["type"], operands, self.case["inputs"].get("divide")
        )
        inputs = {}
        for name, p in zip(tensor_names(args, "arg"), hand.params):
            t, full = tensor(tensors[p.name], p.shape, 0)
            inputs[name] = (t, p.shape, full)
        artefact = self.compile(self.write(text), "case.so")
        for out in self.execute(artefact, [inputs] * self.ranks):
            packed = out["result0"][2].view(np.uint8)
            rows = list(packed.reshape(self.case["W"], -1))
            expect_rows(self.case, hand.layout, hand.member_dtypes, rows)

    def run_concat(self):
        hand = HandWritten(self.case)
        flat_type = self.case["expected"]["type"]
        packed_type = flat_type.replace("<", f"<{self.case['W']}x")
        written = modules.HandWrittenModule(self.case, hand)
        text, args, _ = written.gather(flat_type, packed_type)
        inputs = {}
        for name, p in zip(tensor_names(args, "arg"), hand.params):
            spec = self.case["inputs"]["tensors"][p.name]
            t, full = tensor(spec, p.shape, 0, p.storage)
            inputs[name] = (t, p.shape, full)
        artefact = self.compile(self.write(text), "case.so")
        out = self.execute(artefact, inputs, per_rank=False)
        rows = [o["result0"][2].view(np.uint8) for o in out]
        grid = hand.unit.grid
        for replica in grid.group(0, grid.replicate_axes):
            own = [rows[r] for r in grid.group(replica, grid.shard_axes)]
            expect_rows(self.case, hand.layout, hand.member_dtypes, own)
        for rank, tensors in enumerate(out):
            for name, want in self.case["expected"]["full"].items():
                self.expect_full(f"{name}, rank {rank}", want, tensors[name])

    def expect_full(self, what, want, got):
        t, _, values = got
        expect(f"{what}, dtype", want["dtype"], t.name)
        expect_values(what, want["values"], values, t)

    def run_unchunk(self):
        hand = HandWritten(self.case)
        packed_type = self.case["expected"]["type"]
        to = self.case["inputs"].get("result_dtypes", {})
        results = [
            to.get(p.name, t.name) for p, t in zip(hand.params, hand.member_dtypes)
        ]
        written = modules.HandWrittenModule(self.case, hand)
        text, _, _ = written.unpack(hand.flat_type, packed_type, results)
        rows = packed_rows(self.case, hand)
        t = hand.layout.element_type
        flat = [dtypes.from_bytes(row, t) for row in rows]
        shape = (self.case["W"], hand.layout.row_elements)
        inputs = [
            {
                "arg0": (t, shape, np.concatenate(flat)),
                "arg1": (t, shape[1:], flat[rank]),
            }
            for rank in range(self.ranks)
        ]
        artefact = self.compile(self.write(text), "case.so")
        for rank, out in enumerate(self.execute(artefact, inputs)):
            for i in range(2 * len(hand.params)):
                name = hand.params[i % len(hand.params)].name
                want = self.case["expected"]["full"][name]
                self.expect_full(f"{name}, rank {rank}", want, out[f"result{i}"])

    # --- reductions -----------------------------------------------------------

    def run_reduce(self):
        if partial_sums(self.case):
            text, args, origin, results = self.partial_steps()
        else:
            precisions = precisions_of(self.case, units_of(self.case))
            text, args, origin, results = modules.steps(self.case, precisions)
        source = self.write(text)
        if "buckets" in self.case["expected"]:
            self.expect_reduce_plan(source)
        inputs = []
        for rank in range(self.ranks):
            tensors = {}
            for name, (step, p) in zip(tensor_names(args, "arg"), origin):
                t, full = tensor(step["grads"][p["name"]], p["shape"], rank)
                tensors[name] = (t, p["shape"], full)
            inputs.append(tensors)
        names = tensor_names(results, "result")
        for level in (0, 2):
            out = self.execute(self.compile_at(level, source), inputs)
            shards = {
                r.name: (out[0][name][0], [o[name][2] for o in out])
                for r, name in zip(results, names)
            }
            expect_shards(self.case, shards)

    def compile_at(self, level, source):
        words = self.optimize_options(level).split()[1:]
        extra = [f"--optimize={' '.join(words)}"] if words else []
        return self.compile(
            source, f"case-O{level}.so", f"--opt-level={level}", *extra
        )

    def run_step(self):
        """Full weights are cut into shards here: a file per rank has those."""
        units = units_of(self.case)
        precisions = precisions_of(self.case, units)
        given = self.case["inputs"]
        source = self.write(modules.declared(self.case, precisions, given["grads"]))
        inputs = [{} for _ in range(self.ranks)]
        for unit in units:
            for p in unit.params:
                t, full = tensor(given["tensors"][p.name], p.shape, 0, p.storage)
                layout = ShardLayout(p.shape, p.shard_dim, unit.grid.w)
                shares = layout.cut(full)
                for rank in range(self.ranks):
                    share = shares[unit.grid.shard_place(rank)]
                    inputs[rank][p.name] = (t, layout.shard_shape, share)
                for rank in range(self.ranks if p.name in given["grads"] else 0):
                    t, full = tensor(given["grads"][p.name], p.shape, rank)
                    inputs[rank][f"{p.name}.grad"] = (t, p.shape, full)
        expected = self.case["expected"]
        for level in self.case.get("levels", (0, 2)):
            out = self.execute(self.compile_at(level, source), inputs)
            for name, want in expected["full"].items():
                for rank in range(self.ranks):
                    self.expect_full(f"{name}, rank {rank}", want, out[rank][name])
            shards = {
                name: (out[0][f"{name}.grad"][0], [o[f"{name}.grad"][2] for o in out])
                for name in expected["shards"]
            }
            expect_shards(self.case, shards)

    def partial_steps(self):
        """One bucket over the parameters that all steps reduce."""
        members = list(self.case["inputs"]["steps"][0]["grads"])
        wire = self.case["expected"]["buckets"][0]["wire"]
        bucket = {"kind": "reduce", "wire": wire, "members": members}
        case = dict(self.case, inputs=dict(self.case["inputs"], bucket=bucket))
        hand = HandWritten(case)
        how = reduction.plan(
            hand.unit, hand.wire, self.options.accumulate, self.options.average
        )
        return modules.partial_steps(case, hand, how)

    def expect_reduce_plan(self, source):
        """Buckets of the last step: the last ones of every unit."""
        plan, _ = self.plan(source, f"--fsdp-optimize={self.optimize_options(2)}")
        expected = self.case["expected"]["buckets"]
        for unit in self.case["units"]:
            own = {p["name"] for p in unit["params"]}
            want = [b for b in expected if set(b["members"]) <= own]
            (entry,) = [u for u in plan["units"] if u["name"] == unit["name"]] or [None]
            got = [b for b in entry["buckets"] if b["kind"] == "reduce"] if entry else []
            if len(self.case["inputs"]["steps"]) == 1 or partial_sums(self.case):
                expect(f"reduce buckets of {unit['name']}", len(want), len(got))
            for w, g in zip(want, got[len(got) - len(want) :]):
                self.expect_plan_layout(f"bucket {g['name']}", g, w)

    # --- declarations ---------------------------------------------------------

    def run_resolve(self):
        source = self.write(
            module(modules.declarations(self.case), self.options.profile)
        )
        printed = self.succeed("fsdp-opt", source, "--fsdp-resolve-precision").stdout
        pattern = re.compile(r'fsdp\.param @"?([^"\s]+)"? : \S+(.*)$', re.M)
        found = {}
        for name, clauses in pattern.findall(printed):
            entries = re.search(r"precision\s*<([^>]*)>", clauses)
            pairs = entries[1].split(",") if entries else []
            found[name] = dict(re.split(r"\s*=\s*", pair.strip()) for pair in pairs)
        for name, want in self.case["expected"]["params"].items():
            for field, value in want.items():
                expect(f"{name}, {field}", value, found.get(name, {}).get(field))

    def run_buckets(self):
        precisions = precisions_of(self.case, units_of(self.case))
        has_grad = self.case.get("inputs", {}).get("has_grad")
        source = self.write(modules.declared(self.case, precisions, has_grad))
        expected = self.case["expected"]
        plan, text = self.plan(source, f"--fsdp-optimize={self.optimize_options(2)}")
        self.expect_counts("counts", expected["counts"], plan, text)
        for kind in ("gather", "reduce"):
            got = [
                b for u in plan["units"] for b in u["buckets"] if b["kind"] == kind
            ]
            expect(f"{kind} buckets", len(expected[kind]), len(got))
            for i, (w, g) in enumerate(zip(expected[kind], got)):
                self.expect_plan_layout(f"{kind} bucket {i}", g, w)
        plan, text = self.plan(source, f"--fsdp-optimize={self.optimize_options(0)}")
        self.expect_counts("explicit_counts", expected["explicit_counts"], plan, text)

    def expect_counts(self, what, want, plan, text):
        printed = {op: len(re.findall(rf"\bfsdp\.{op}\b", text)) for op in want}
        expect(f"{what} in the IR", want, printed)
        expect(f"{what} in the plan", want, {op: plan["counts"][op] for op in want})

    # --- refusals -------------------------------------------------------------

    def run_error(self):
        inputs = self.case.get("inputs", {})
        stage = self.case["expected"]["stage"]
        if "ir" in inputs:
            source = self.write(inputs["ir"])
        elif inputs:
            precisions = precisions_of(self.case, units_of(self.case))
            source = self.write(
                modules.declared(
                    self.case, precisions, inputs.get("has_grad"),
                    inputs.get("grad_types"), with_unshard="run_ranks" in inputs,
                )
            )
        else:
            profile = self.case.get("options", {}).get("profile")
            source = self.write(module(modules.declarations(self.case), profile))
        if stage == "run":
            artefact = self.compile(source, "case.so")
            done = self.call(
                "fsdp-run", f"./{artefact}", f"--ranks={inputs['run_ranks']}",
                "--fill=1",
            )
        else:
            passes = {
                "verify": [],
                "resolve": ["--fsdp-resolve-precision"],
                "expand": ["--fsdp-expand-units"],
                "verify-stage": ["--fsdp-verify-stage=stage=declared"],
                "verify-collectives": ["--fsdp-verify-collectives"],
            }
            done = self.call("fsdp-opt", source, *passes[stage], "-o", os.devnull)
        if done.returncode == 0:
            raise Mismatch(stage, "a refusal", "success")
        for word in self.case["expected"]["words"]:
            if word.lower() not in done.stderr.lower():
                raise Mismatch("message", f"'{word}'", done.stderr.strip())
