# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Runs the real models' units on 1 to 8 ranks and compares with the oracle.

For each model and number of ranks, the naive and the optimised program run the
forward and the backward entry. Their files must be the same byte by byte, and
equal to what the NumPy oracle computes, as must the printed checksums. With
--emulate so must be those of the GPU's kernels, run thread by thread, and with
--comm=mpi those of 2 and 4 ranks that are processes. With --interpret the models
are smaller ones, and the GPU's artefact runs too, as it ships, on a fake GPU that
interprets its PTX. One line per comparison;
the last one is `N passed, N failed`. What takes longest runs with --long only:
the largest model on 8 ranks, emulated, and as processes; emulated kernels on other
numbers of ranks than 3. With --quick the models are whole on 4 ranks only.
"""

import argparse
import dataclasses
import filecmp
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fsdp_test import fake_gpu
from fsdp_test.paths import BUILD

MAX_RESIDENT_BYTES = 16 << 30
SEED = 1
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
MPI_RANKS = (2, 4)
EMULATED_RANKS = (3,)  # where shards are uneven
LARGEST = "llama3_8b_layer"


@dataclasses.dataclass
class Run:
    """One model on one grid. `large` ones run only when asked for."""

    model: str
    ranks: int
    grid: str = ""
    experts: int = 0
    large: bool = False
    entries: tuple = ("forward", "backward")
    divisor: int = 1

    def name(self):
        grid = f" as {self.grid}" if self.grid else ""
        experts = f", {self.experts} experts" if self.experts else ""
        small = f", extents / {self.divisor}" if self.divisor > 1 else ""
        return f"{self.model} on {self.ranks} ranks{grid}{experts}{small}"

    def describe(self):
        """The options that describe the program to our scripts."""
        options = [f"--ranks={self.ranks}"]
        options += [f"--grid={self.grid}"] if self.grid else []
        options += [f"--experts={self.experts}"] if self.experts else []
        options += [f"--divisor={self.divisor}"] if self.divisor > 1 else []
        return options


RUNS = [
    run
    for ranks in (1, 2, 3, 4, 8)
    for run in (
        Run("gpt2_124m", ranks),
        # 8 of 256 experts: the others would add nothing but memory.
        Run("kimi_linear_kda_layer", ranks, experts=8),
        Run(LARGEST, ranks, large=ranks == 8),
    )
] + [
    Run("gpt2_124m", 4, grid="2x2"),
    Run("gpt2_124m", 8, grid="4x2"),
    Run("kimi_linear_kda_layer", 8, grid="2x4", experts=8),
    Run("kimi_linear_kda_layer", 4, entries=()),  # all 790 tensors
]

# Small enough for an interpreter, with the structure of the real ones.
INTERPRETED_DIVISOR = 16
WHOLE_RANKS, QUICK_DIVISOR = 4, 4


class Wrong(Exception):
    pass


def call(*command, output=None, environment=None):
    """Runs `command`; (what it printed, peak resident bytes). With `output`
    what it prints goes to that file."""
    with tempfile.TemporaryFile() as errors, open(output or os.devnull, "wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=out if output else errors, stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    if process.returncode:
        raise Wrong(
            f"'{' '.join(map(str, command))}' fails with {process.returncode}: {text}"
        )
    return text, usage.ru_maxrss * 1024


def ways(run, programs, options):
    """{name: command} of all the ways to run a program that must agree."""
    tool = options.tools / "fsdp-run"
    commands = {name: [tool, program] for name, program in programs.items()}
    if "interpreted" in commands:
        commands["interpreted"].append("--device=cuda")
    as_processes = options.comm == "mpi" and run.ranks in MPI_RANKS
    if as_processes and (options.long or run.model != LARGEST):
        commands["mpi"] = [
            *MPIRUN, run.ranks, tool, programs["optimised"], "--comm=mpi",
        ]
    return commands


def compare(run, entry, commands, environment, folder):
    """Runs one entry in every way; the peak resident bytes of a process."""
    first, out = folder / "first.safetensors", folder / "out.safetensors"
    printed, peak = [], 0
    try:
        for name, command in commands.items():
            log = folder / f"{name}.txt"
            file = out if printed else first
            printed.append(log)
            _, resident = call(
                *command, f"--ranks={run.ranks}", f"--entry={entry}",
                f"--fill={SEED}", f"--out={file}", output=log,
                environment=environment,
            )
            peak = max(peak, resident)
            if file is out and not filecmp.cmp(first, out, shallow=False):
                raise Wrong(f"the file of '{name}' differs from the first one")
        call(
            sys.executable, "-m", "fsdp_test.examples.check", run.model, entry,
            *run.describe(), f"--seed={SEED}", first,
            *itertools.chain.from_iterable(("--stdout", log) for log in printed),
        )
    finally:
        first.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
    if peak > MAX_RESIDENT_BYTES:
        raise Wrong(f"{peak / 2**30:.1f} GiB resident, more than allowed")
    return peak


def compile_all(run, options, environment, folder):
    """{name: program}"""
    source = folder / "model.mlir"
    call(
        sys.executable, "-m", "fsdp_test.examples.make", run.model, *run.describe(),
        "-o", source,
    )
    flags = {"naive": ["--opt-level=0"], "optimised": []}
    emulated = run.ranks in EMULATED_RANKS and run.model != LARGEST
    if options.emulate and (options.long or emulated):
        flags["emulated"] = ["--target=cuda", "--emulate"]
    if options.interpret:
        flags["interpreted"] = ["--target=cuda"]
    for name, own in flags.items():
        call(
            options.tools / "fsdp-compile", source, *own, "-o", folder / f"{name}.so",
            environment=environment,
        )
    return {name: folder / f"{name}.so" for name in flags}


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def line(self, name, function):
        """Runs `function` and prints one line; what it returned, or None."""
        start = time.monotonic()
        try:
            value = function()
        except (Wrong, OSError) as wrong:
            self.failed += 1
            print(f"{name}: failed: {wrong}", flush=True)
            return None
        self.passed += 1
        memory = f", {value / 2**30:.1f} GiB" if isinstance(value, int) else ""
        seconds = time.monotonic() - start
        print(f"{name}: passed ({seconds:.1f} s{memory})", flush=True)
        return value


def main():
    parser = argparse.ArgumentParser(
        prog="run-examples", description=__doc__.splitlines()[0]
    )
    parser.add_argument("models", nargs="*", help="default: all")
    parser.add_argument("--ranks", type=int, nargs="*", help="only these numbers")
    parser.add_argument("--long", action="store_true", help="the largest runs too")
    parser.add_argument(
        "--quick", action="store_true",
        help=f"extents / {QUICK_DIVISOR} on other numbers of ranks than {WHOLE_RANKS}",
    )
    parser.add_argument(
        "--emulate", action="store_true",
        help="the GPU's kernels on the host too, on 3 ranks",
    )
    parser.add_argument(
        "--interpret", action="store_true",
        help=f"extents / {INTERPRETED_DIVISOR}, and the GPU's artefact on a fake GPU",
    )
    parser.add_argument(
        "--comm", choices=["local", "mpi"], default="local",
        help="mpi: 2 and 4 ranks as processes too",
    )
    parser.add_argument(
        "--tools", type=Path, default=BUILD / "bin", help="folder of the tools"
    )
    args = parser.parse_args()

    report = Report()
    for run in RUNS:
        if args.interpret:
            run = dataclasses.replace(run, divisor=INTERPRETED_DIVISOR, large=False)
        elif args.quick and run.ranks != WHOLE_RANKS:
            run = dataclasses.replace(run, divisor=QUICK_DIVISOR, large=False)
        if args.models and run.model not in args.models:
            continue
        if args.ranks and run.ranks not in args.ranks:
            continue
        if run.large and not args.long:
            continue
        with tempfile.TemporaryDirectory(prefix="fsdp-example-") as folder:
            folder = Path(folder)
            environment = (
                fake_gpu.interpreted(args.tools, folder) if args.interpret else {}
            )
            programs = report.line(
                f"{run.name()}, compile",
                lambda: compile_all(run, args, environment, folder),
            )
            for entry in run.entries if programs else ():
                report.line(
                    f"{run.name()}, {entry}",
                    lambda: compare(
                        run, entry, ways(run, programs, args), environment, folder
                    ),
                )
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
