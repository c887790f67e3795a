# Checks and measures the kernels on a device.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   scripts/gpu-check --prepare    after scripts/build, on a machine that needs no
#                                  GPU: writes build/gpu-check, a few MiB
#   python3 gpu-check/gpu-check    there: needs a driver, Python 3 and that folder,
#                                  NumPy for the bits; uses PyTorch, NCCL and
#                                  compute-sanitizer if they are there
#
# The second prints one table and takes less than nine minutes; everything else is
# in a log. docs/results/README.md says what to do with them.

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]  # of the package: also that folder's root
CARRIED = (HERE / "index.json").exists()
FOLDER = HERE if CARRIED else HERE.parents[1] / "build" / "gpu-check"


def options():
    parser = argparse.ArgumentParser(
        prog="gpu-check", description="Checks and measures the kernels on a device."
    )
    add = parser.add_argument
    add("--folder", type=Path, default=FOLDER, help="default: %(default)s")
    add("--output", type=Path, help="default: FOLDER/output")
    add("--limit", type=float, default=510, help="seconds for all (default 510)")
    add("--stages", help="comma-separated, default: all")
    add("--ptx", action="store_true", help="let the driver compile all kernels")
    add("--quick", action="store_true", help="for tests: few repeats")
    prepare = parser.add_argument_group("on the machine that compiles")
    add = prepare.add_argument
    add("--prepare", action="store_true", help="write FOLDER")
    add("--random", type=int, default=144, help="random ops (default 144)")
    add("--divisor", type=int, default=1, help="for tests: smaller workloads")
    add("--no-exhaustive", dest="exhaustive", action="store_false", help="for tests")
    return parser.parse_args()


def main():
    given = options()
    if given.prepare:
        if CARRIED:
            sys.exit("gpu-check: prepare where fsdp-opt is built: scripts/gpu-check")
        from .prepare import prepare

        return prepare(given.folder, given)
    if not (given.folder / "index.json").exists():
        sys.exit(f"gpu-check: no {given.folder}: scripts/gpu-check --prepare makes it")
    from .main import run

    return run(given)


if __name__ == "__main__":
    sys.exit(main())
