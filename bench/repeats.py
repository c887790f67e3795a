#!/usr/bin/python3
# What a further run of an entry costs the system: page faults and system time.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The system clears a page when it is touched for the first time. A run that gets
# the buffers of the one before it touches none for the first time, so what counts
# is the difference between N + 1 runs and one.
#
#   repeats.py ARTEFACT ENTRY [--repeat N] [--fsdp-run PATH]

import argparse
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measure(command, repeat):
    """(page faults, seconds in the system, seconds in the program)"""
    process = subprocess.Popen(
        [*command, f"--repeat={repeat}"], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} fails")
    return usage.ru_minflt, usage.ru_stime, usage.ru_utime


def main():
    parser = argparse.ArgumentParser(description="page faults of further runs")
    parser.add_argument("artefact")
    parser.add_argument("entry")
    parser.add_argument("--repeat", type=int, default=5, help="further runs")
    parser.add_argument("--fsdp-run", default=str(ROOT / "build/bin/fsdp-run"))
    args = parser.parse_args()
    command = [args.fsdp_run, args.artefact, f"--entry={args.entry}", "--fill=1"]
    once = measure(command, 1)
    more = measure(command, 1 + args.repeat)
    faults, system, user = ((b - a) / args.repeat for a, b in zip(once, more))
    print(f"of the first run, its arguments and its start: {once[0]:,} page faults")
    print(
        f"of a further run: {faults:,.0f} page faults, {system:.2f} s in the system, "
        f"{user:.2f} s in the program"
    )


if __name__ == "__main__":
    main()
