# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Compares random programs at opt levels 0 and 2, and with the NumPy oracle.

Programs are declared units with gathers and reductions, and partial sums in
explicit IR, in modules of ten. Their results must be equal bit by bit (NaNs as
a class), padding included; where no sum rounds, also on another number of ranks.
Forming the buckets of a formed program changes nothing.
A run prints how many programs have each feature, and fails if one is rare. Of a
failure it prints the smallest program that still fails. The last line is
`N passed, N failed`.
"""

import argparse
import json
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from fsdp_test.paths import BUILD

from . import faults
from .check import Failed, Tools, check, sum_order_of
from .coverage import Coverage
from .emit import compile_flags, module_text
from .generate import BATCH, batch
from .shrink import shrink


LONG = 10_000
MAX_SHRUNK = 3  # one fault often shows in many programs
SECONDS_OF_SILENCE = 60


def judge(tools, described):
    """[(message, program)] of a batch. Runs in a process of its own."""
    try:
        return [(str(f), f.program) for f in check(described, tools)]
    except Exception as error:  # a broken batch must not hide the others
        return [(f"{type(error).__name__}: {error}", None)]


def report(described, failure, tools, folder):
    small, failure = shrink(described, tools, failure)
    path = folder / f"{described['name']}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(small, indent=1) + "\n")
    text = module_text(small["grid"], small["programs"])
    path.with_suffix(".mlir").write_text(text)
    print(f"smallest failing program: {failure}")
    print(f"options: {' '.join(compile_flags(small))}, sums: {sum_order_of(small)}")
    print(text)
    flag = "--emulate " if tools.target else ""
    print(f"again: scripts/random-programs {flag}--replay={path}", flush=True)


class Run:
    """Batches on all processors, until too many programs have failed."""

    def __init__(self, args):
        self.args = args
        self.tools = Tools(args.tools, args.emulate)
        self.passed, self.failed, self.shrunk = 0, 0, 0
        self.coverage = Coverage()
        self.began = self.shown = time.monotonic()

    def all(self, batches):
        total = sum(len(described["programs"]) for described in batches)
        with ProcessPoolExecutor(self.args.jobs) as pool:
            found = pool.map(partial(judge, self.tools), batches)
            for described, failures in zip(batches, found):
                self.take(described, failures)
                self.show_progress(total)
                if self.failed >= self.args.max_failures:
                    print(f"{self.failed} programs failed: the others do not run")
                    pool.shutdown(cancel_futures=True)
                    break

    def take(self, described, failures):
        self.coverage.add(described)
        names = {name for _, name in failures}
        bad = len(described["programs"]) if None in names else len(names)
        self.passed += len(described["programs"]) - bad
        self.failed += bad
        for message, name in failures:
            print(f"{described['name']}, {name or 'all'}: {message}", flush=True)
        if failures and self.shrunk < MAX_SHRUNK and not self.args.no_shrink:
            self.shrunk += 1
            report(described, Failed(*failures[0]), self.tools, self.args.keep)

    def show_progress(self, total):
        now = time.monotonic()
        if now - self.shown < SECONDS_OF_SILENCE:
            return
        self.shown = now
        print(
            f"{self.passed + self.failed} of {total} programs, {self.failed} failed, "
            f"{now - self.began:.0f} s",
            flush=True,
        )


def cpu_seconds():
    """Of this process and of all that it has waited for."""
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(u.ru_utime + u.ru_stime for u in used)


def chosen(args):
    if args.replay:
        return [json.loads(Path(args.replay).read_text())]
    if args.batch is not None:
        return [batch(args.seed, args.batch)]
    whole, rest = divmod(args.count, BATCH)
    sizes = [BATCH] * whole + [rest] * (rest > 0)
    return [batch(args.seed, i, size) for i, size in enumerate(sizes)]


def main():
    parser = argparse.ArgumentParser(
        prog="random-programs", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help=f"{LONG} programs")
    parser.add_argument("--batch", type=int, metavar="N", help="one batch only")
    parser.add_argument("--replay", metavar="FILE", help="a batch from a file")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument(
        "--max-failures", type=int, default=30, metavar="N",
        help="stop when so many programs have failed",
    )
    parser.add_argument(
        "--emulate", action="store_true", help="run the GPU's kernels on the host"
    )
    parser.add_argument(
        "--faults", action="store_true", help="plant faults: each must be found"
    )
    parser.add_argument(
        "--tools", type=Path, default=BUILD / "bin", help="folder"
    )
    parser.add_argument(
        "--keep", type=Path, default=BUILD / "random-programs",
        help="folder for failing programs",
    )
    parser.add_argument("-j", "--jobs", type=int, default=2)
    args = parser.parse_args()
    if args.long:
        args.count = LONG
    for tool in ("fsdp-opt", "fsdp-compile", "fsdp-run"):
        if not (args.tools / tool).exists():
            sys.exit(f"random-programs: no {tool} in {args.tools}")

    began = time.monotonic()
    if args.faults:
        passed, failed = faults.run(args.tools, args.seed)
    else:
        run = Run(args)
        run.all(chosen(args))
        passed, failed, coverage = run.passed, run.failed, run.coverage
        print(f"seed {args.seed}, {coverage.programs} programs with {coverage}")
        for feature in coverage.missing():
            print(f"too few programs have '{feature}'")
            failed += 1
        print(f"{cpu_seconds() / coverage.programs:.2f} s of CPU time a program")
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
