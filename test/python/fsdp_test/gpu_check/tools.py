# Checks by NVIDIA's tools, where they are installed.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import csv
import glob
import io
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

from .stage import OutOfTime, Skip
from .timing import Operands, Random

FOLDERS = ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer",
           "/opt/nvidia/nsight-compute/*"]
METRICS = {
    "dram__bytes_read.sum": "DRAM bytes read",
    "dram__bytes_write.sum": "DRAM bytes written",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "% of DRAM's peak",
    "lts__t_sector_hit_rate.pct": "% of L2 sectors hit",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "% of warps active",
    "gpu__time_duration.sum": "ns",
}
MOST_EXTRA_BYTES = 0.03
SUMMARY_SECONDS = 10  # for the tool to say what it has found so far


def find(tool):
    folders = [f for pattern in FOLDERS for f in sorted(glob.glob(pattern))]
    path = shutil.which(tool) or shutil.which(tool, path=os.pathsep.join(folders))
    if not path:
        raise Skip(f"no {tool}")
    return path


def run(stage, command):
    left = stage.settings.deadline - time.time()
    if left < 1:
        raise OutOfTime()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=left,
        )
    except subprocess.TimeoutExpired:
        raise OutOfTime() from None
    stage.log(f"$ {' '.join(command)}\n{done.stdout}")
    return done


def as_stage(name, settings):
    return [sys.executable, "-m", __package__, name, settings.text()]


def memcheck(stage):
    """A few operations of every module, each operand an exact allocation."""
    try:
        tool = find("compute-sanitizer")
    except Skip:
        raise Skip("no compute-sanitizer: guard bytes alone") from None
    scratch = stage.settings.results + ".memcheck"
    settings = replace(
        stage.settings, small=True, results=scratch,
        deadline=stage.settings.deadline - SUMMARY_SECONDS,
    )
    done = run(stage, [
        tool, "--tool=memcheck", "--error-exitcode=9", *as_stage("correctness", settings),
    ])
    found = re.findall(r"ERROR SUMMARY: (\d+) error", done.stdout)
    if not found or done.returncode not in (0, 3, 9):
        stage.check("memcheck", False, f"exit code {done.returncode}, see the log")
        return
    launches = re.findall(r"compared: (\d+) launches", done.stdout)
    errors = sum(map(int, found))
    detail = f"{errors} errors" + (f" in {launches[0]} launches" if launches else "")
    stage.check("memcheck", errors == 0 and done.returncode != 9, detail)


def one_launch(stage):
    """What the profiler looks at: P1, on data that is not in the L2."""
    module = stage.folder.module("P1")
    library, random = stage.load(module), Random(stage.gpu)
    operation = module.operations[0]
    sets = [Operands(stage.gpu, operation, random) for _ in range(2)]
    for place in sets:
        stage.launch(library, operation, place.members, place.old, place.bucket)()
    stage.gpu.finish()


def metrics_of(text):
    """{metric: value} of ncu's raw page in CSV."""
    lines = text.splitlines()
    begin = next((i for i, l in enumerate(lines) if l.startswith('"ID"')), None)
    if begin is None:
        return {}
    rows = list(csv.reader(io.StringIO("\n".join(lines[begin:]))))
    head, last = rows[0], rows[-1]
    return {
        name: float(value.replace(",", ""))
        for name, value in zip(head, last) if name in METRICS and value
    }


def profile(stage):
    tool = find("ncu")
    operation = stage.folder.module("P1").operations[0]
    done = run(stage, [
        tool, "--csv", "--page=raw", "--print-units=base", "--clock-control=none",
        f"--kernel-name={operation.kernel}", "--launch-skip=1", "--launch-count=1",
        f"--metrics={','.join(METRICS)}", *as_stage("one_launch", stage.settings),
    ])
    metrics = metrics_of(done.stdout)
    for name, value in metrics.items():
        stage.fact(f"P1, {METRICS[name]}", f"{value:.4g}")
    moved = sum(metrics.get(f"dram__bytes_{way}.sum", 0) for way in ("read", "write"))
    if not moved:
        raise Skip(f"ncu says nothing (exit code {done.returncode}), see the log")
    extra = moved / operation.moved - 1
    stage.check(
        "P1 moves no more than it must", extra <= MOST_EXTRA_BYTES,
        f"{moved / 1e6:.1f} MB of {operation.moved / 1e6:.1f}, {100 * extra:+.1f} %",
    )
