#!/usr/bin/python3
# Time and memory of the whole fsdp-optimize pipeline on DeepSeek-V3.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the first 4 layers (821 parameters) and all 61 (45,395), with scope=unit
# and scope=global, and prints per run the time, the time per parameter and the
# peak memory. Time is that of the processor, which a busy machine changes least;
# start-up, measured on an empty module, is not counted as time of a parameter.
# Fails where a bound that is given is passed.
#
#   bench/form_buckets.py [--tools DIR] [--repeat N] [--max-seconds S]
#                         [--max-gib G] [--max-ratio R]

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMALL, LARGE = 4, 61  # layers


def measure(command, repeat):
    """(seconds of the fastest run, peak bytes of the largest)."""
    seconds, peak = [], 0
    for _ in range(repeat):
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        seconds.append(usage.ru_utime + usage.ru_stime)
        if status:
            sys.exit(f"form_buckets: {' '.join(map(str, command))} failed")
        peak = max(peak, usage.ru_maxrss * 1024)
    return min(seconds), peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=Path, default=ROOT / "build" / "bin")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--max-seconds", type=float)
    parser.add_argument("--max-gib", type=float)
    parser.add_argument("--max-ratio", type=float, help="large to small, per parameter")
    args = parser.parse_args()
    tool = args.tools / "fsdp-opt"
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.mlir"
        empty.write_text("")
        startup, _ = measure([tool, empty, "-o", os.devnull], max(3, args.repeat))
        print(f"start-up {startup:.2f} s")
        files = {}
        for layers in (SMALL, LARGE):
            path = Path(folder) / f"deepseek-{layers}.mlir"
            subprocess.run(
                [
                    ROOT / "scripts/make-examples", "deepseek_v3_671b",
                    "--ranks", "8", "--layers", str(layers), "-o", path,
                ],
                check=True,
            )
            files[path] = path.read_text().count("fsdp.param ")
        for scope in ("unit", "global"):
            per_parameter = []
            for path, count in files.items():
                command = [tool, path, f"--fsdp-optimize=scope={scope}", "-o", os.devnull]
                # What takes little time is measured more often.
                repeat = args.repeat * (5 if len(per_parameter) == 0 else 1)
                seconds, peak = measure(command, repeat)
                per_parameter.append((seconds - startup) / count)
                print(
                    f"scope={scope}: {count:6,} parameters, {seconds:6.2f} s, "
                    f"{per_parameter[-1] * 1e6:5.0f} us each, {peak / 2**30:.2f} GiB"
                )
                if args.max_seconds and seconds > args.max_seconds:
                    failures.append(f"{seconds:.1f} s, at most {args.max_seconds}")
                if args.max_gib and peak > args.max_gib * 2**30:
                    failures.append(f"{peak / 2**30:.1f} GiB, at most {args.max_gib}")
            ratio = per_parameter[1] / per_parameter[0]
            print(f"scope={scope}: {ratio:.2f} times as long per parameter")
            if args.max_ratio and ratio > args.max_ratio:
                failures.append(f"ratio {ratio:.2f}, at most {args.max_ratio}")
    for failure in failures:
        print(f"too much: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
