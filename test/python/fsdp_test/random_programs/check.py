# A batch through fsdp-compile and fsdp-run, at both levels, against the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A batch is one module, compiled once per level, and one call of fsdp-run per
# level executes all its programs. Most of the time is LLVM's, so that only some
# batches ask for its optimiser.

import subprocess
import tempfile
from math import prod
from pathlib import Path

import numpy as np

from fsdp_test.oracle import dtypes, tensor_file
from fsdp_test.oracle.dtypes import dtype

from .description import operations, precisions_of
from .emit import compile_flags, form_flags, module_text, names_of
from .evaluate import SEED, Arguments, evaluate, layout_of

LEVELS = (0, 2)
TIMEOUT_SECONDS = 300  # of one tool; the machine may be busy


class Failed(Exception):
    """What differs; `program` is where, or None if the batch does not compile."""

    def __init__(self, message, program=None):
        super().__init__(message)
        self.program = program


def sum_order_of(batch):
    return batch.get("sum_order", "rank")


def first_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[0] if lines else "(it printed nothing)"


class Tools:
    """`emulate`: the GPU's kernels on the host, thread by thread. `fault`: what
    spoils the program on the way, see faults.py."""

    def __init__(self, folder, emulate=False, fault=None):
        self.folder = Path(folder).resolve()
        self.target = ["--target=cuda", "--emulate"] if emulate else []
        self.fault = fault
        self.levels = fault.levels if fault else LEVELS

    def call(self, work, tool, *arguments):
        """Standard error if the tool fails, else nothing."""
        command = [str(self.folder / tool), *arguments]
        try:
            done = subprocess.run(
                command, cwd=work, capture_output=True, text=True,
                errors="replace", timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"{tool} takes longer than {TIMEOUT_SECONDS} s"
        if done.returncode == 0:
            return None
        if done.returncode < 0:
            return f"{tool} died of signal {-done.returncode}"
        return f"{tool}: {first_line(done.stderr)}"

    def compile(self, work, level, batch):
        source, options = "batch.mlir", batch["options"]
        if self.fault:
            source = self.fault.before_compile(self, work, options)
        return self.call(
            work, "fsdp-compile", source, *self.target, f"--opt-level={level}",
            *compile_flags(batch), "-o", f"O{level}.so",
        )

    def run(self, work, level, names, sum_order):
        """Runs these entries."""
        return self.call(
            work, "fsdp-run", f"./O{level}.so", *(f"--entry={n}" for n in names),
            f"--sum-order={sum_order}",
            f"--fill={SEED}", "--in={entry}.{rank}.in",
            f"--out={{entry}}.{{rank}}.O{level}",
        )


def _read(path):
    """{name: (dtype, shape, carrier)}, and the bytes."""
    data = Path(path).read_bytes()
    return tensor_file.parse(data), data


class _Program:
    """One program of a batch on one grid."""

    def __init__(self, program, grid, batch, shared_ranks):
        self.program = program
        self.name = program["name"]
        self.ranks = prod(grid["shape"])
        self.line = operations(program, grid)
        self.names = names_of(self.line.results, "result")
        self.arguments = Arguments(program, self.line, grid, shared_ranks)
        self.precisions = precisions_of(program, grid)
        self.values = evaluate(
            self.line, self.arguments, self.precisions, batch["options"],
            sum_order_of(batch),
        )

    def write(self, work):
        for rank in range(self.ranks):
            path = work / f"{self.name}.{rank}.in"
            tensor_file.write(path, self.arguments.file(rank))

    def read(self, work, level):
        """Every rank's tensors and bytes."""
        paths = [work / f"{self.name}.{r}.O{level}" for r in range(self.ranks)]
        return [_read(path) for path in paths]

    def compare(self, per_rank, what):
        """With the oracle."""
        for rank, (tensors, _) in enumerate(per_rank):
            for name, result in zip(self.names, self.line.results):
                want, t = self.values[result][rank], dtype(result.dtype)
                got_type, shape, got = tensors[name]
                if (got_type, shape) != (t, result.shape):
                    raise Failed(
                        f"{what}, rank {rank}, {name}: expected {t} "
                        f"{list(result.shape)}, got {got_type} {list(shape)}",
                        self.name,
                    )
                wrong = dtypes.differences(want, got, t)
                if wrong.size:
                    i = int(wrong[0])
                    raise Failed(
                        f"{what}, rank {rank}, {name}, element {i}: expected "
                        f"{dtypes.show(want[i], t)}, got {dtypes.show(got[i], t)}",
                        self.name,
                    )

    def check(self, levels, work):
        """Every level against the oracle; the results of the last one."""
        seen = None
        for level in levels:
            per_rank = self.read(work, level)
            data = [d for _, d in per_rank]
            if data != seen:  # NaNs may differ, as a class they do not
                self.compare(per_rank, f"level {level} and the oracle")
            seen = data
        return per_rank

    def full_results(self, per_rank):
        """{name: the full tensor}, which depends on no number of ranks."""
        out = {}
        for name, result in zip(self.names, self.line.results):
            carriers = [tensors[name][2] for tensors, _ in per_rank]
            if result.role == "full":
                out[name] = carriers[0]
            elif result.role == "shard_grad":
                out[name] = layout_of(result, self.arguments.models).join(carriers)
        return out


def _form_twice(tools, work, options):
    """fsdp-form-buckets does not change its own result, nor that of fusing."""
    flags, again = form_flags(options)
    steps = [
        ("batch.mlir", "formed.mlir", flags),
        ("formed.mlir", "again.mlir", [again]),
        ("formed.mlir", "fused.mlir", ["--fsdp-fuse-casts"]),
        ("fused.mlir", "fused-again.mlir", [again]),
    ]
    for source, target, passes in steps:
        error = tools.call(work, "fsdp-opt", source, *passes, "-o", target)
        if error:
            raise Failed(f"{' '.join(passes)}: {error}")
    for first, second in ("formed", "again"), ("fused", "fused-again"):
        texts = [(work / f"{n}.mlir").read_text() for n in (first, second)]
        if texts[0] != texts[1]:
            raise Failed(f"{again} changes its own result ({first})")


def _compile(tools, work, batch, grid):
    work.mkdir()
    (work / "batch.mlir").write_text(module_text(grid, batch["programs"]))
    for level in tools.levels:
        error = tools.compile(work, level, batch)
        if error:
            raise Failed(f"level {level}: {error}")
    if not tools.fault:
        _form_twice(tools, work, batch["options"])


def _run(tools, work, names, sum_order):
    """The failures of programs, which are run one by one only if one fails."""
    failures = {}
    for level in tools.levels:
        error = tools.run(work, level, names, sum_order)
        if error is None:
            continue
        alone = {name: tools.run(work, level, [name], sum_order) for name in names}
        if not any(alone.values()):
            raise Failed(f"level {level}, only one after the other: {error}")
        for name, error in alone.items():
            if error:
                failures.setdefault(name, Failed(f"level {level}: {error}", name))
    return failures


def _check_on(tools, work, batch, grid):
    """{program: full results} on one grid, and what failed."""
    _compile(tools, work, batch, grid)
    shared = None
    if "other_grid" in batch:
        shared = min(prod(g["shape"]) for g in (batch["grid"], batch["other_grid"]))
    programs = [
        _Program(described, grid, batch, shared)
        for described in batch["programs"]
    ]
    for program in programs:
        program.write(work)
    names = [program.name for program in programs]
    failed = _run(tools, work, names, sum_order_of(batch))
    results, failures = {}, list(failed.values())
    for program in programs:
        if program.name in failed:
            continue
        try:
            per_rank = program.check(tools.levels, work)
            results[program.name] = program.full_results(per_rank)
        except Failed as failure:
            failures.append(failure)
    return results, failures


def _compare_ranks(batch, first, other):
    ranks = [prod(batch[g]["shape"]) for g in ("grid", "other_grid")]
    failures = []
    for program in sorted(first.keys() & other.keys()):
        for name, value in first[program].items():
            if not np.array_equal(
                dtypes.bits(value), dtypes.bits(other[program][name])
            ):
                what = f"{name} is not the same on {ranks[0]} and {ranks[1]} ranks"
                failures.append(Failed(what, program))
                break
    return failures


def check(batch, tools):
    """The failures of a batch, at most one per program and grid."""
    with tempfile.TemporaryDirectory(prefix="fsdp-random-") as folder:
        try:
            work = Path(folder)
            first, failures = _check_on(tools, work / "one", batch, batch["grid"])
            if "other_grid" in batch:
                grid = batch["other_grid"]
                other, more = _check_on(tools, work / "two", batch, grid)
                failures += more + _compare_ranks(batch, first, other)
            return failures
        except Failed as failure:  # it does not compile
            return [failure]
