# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Runs every case of a file in the format of test/cases.json.

Each case becomes IR and goes through fsdp-opt, fsdp-compile and fsdp-run, or,
with --oracle, through the NumPy oracle. The cases that run something do so on
the CPU; with --emulate on the GPU's kernel bodies, thread by thread; with
--interpret on a fake GPU that interprets the artefact's PTX. One line per case:
passed, failed with expected and actual, or not covered with the reason. The
exit status is 1 if a case failed or if more cases than allowed are not covered.
"""

import argparse
import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from fsdp_test.paths import BUILD

from . import oracle_runner, random_cases
from .tool_runner import ToolRunner, runs_program
from .values import Mismatch, NotCovered, shared_tensors


def judge(run, case):
    """(verdict, reason) of one case."""
    try:
        run(case)
    except NotCovered as reason:
        return "not covered", str(reason)
    except Mismatch as mismatch:
        return "failed", str(mismatch)
    except Exception as error:  # a broken case must not hide the others
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def main():
    parser = argparse.ArgumentParser(
        prog="run-cases", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "file", nargs="?", help="a file in the format of test/cases.json"
    )
    parser.add_argument(
        "--random", type=int, metavar="N", help="N random cases instead of a file"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random cases")
    parser.add_argument(
        "--tools", default=str(BUILD / "bin"), help="folder of the tools"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--oracle", action="store_true", help="check the oracle")
    what.add_argument(
        "--emulate", action="store_true", help="run the GPU's kernels on the host"
    )
    what.add_argument(
        "--interpret", action="store_true", help="run the GPU's kernels as PTX"
    )
    parser.add_argument("--filter", default="", help="regular expression over ids")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--max-not-covered", type=int, default=18)
    parser.add_argument("--keep", metavar="DIR", help="keep the files of each case")
    args = parser.parse_args()

    if (args.file is None) == (args.random is None):
        parser.error("expected either a file or --random")
    if args.random is not None:
        cases = random_cases.cases(args.random, args.seed)
    else:
        with open(args.file) as file:
            cases = shared_tensors(json.load(file))
    target = "emulate" if args.emulate else "interpret" if args.interpret else "cpu"
    cases = [
        c
        for c in cases
        if re.search(args.filter, c["id"]) and (target == "cpu" or runs_program(c))
    ]
    if not cases:
        sys.exit(f"run-cases: no case matches '{args.filter}'")
    if args.oracle:
        run = oracle_runner.run
    else:
        for tool in ("fsdp-opt", "fsdp-compile", "fsdp-run"):
            if not (Path(args.tools) / tool).exists():
                sys.exit(f"run-cases: no {tool} in {args.tools}")
        run = ToolRunner(Path(args.tools).resolve(), target, args.keep).run

    counts = {"passed": 0, "failed": 0, "not covered": 0}
    with ProcessPoolExecutor(args.jobs) as pool:
        verdicts = pool.map(partial(judge, run), cases)
        for case, (verdict, reason) in zip(cases, verdicts):
            counts[verdict] += 1
            tail = ": " + " | ".join(reason.split("\n")) if reason else ""
            print(f"{case['id']}: {verdict}{tail}", flush=True)
    print(
        f"{counts['passed']} passed, {counts['failed']} failed, "
        f"{counts['not covered']} not covered"
    )
    if counts["not covered"] > args.max_not_covered:
        print(f"more than {args.max_not_covered} cases are not covered")
        return 1
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
