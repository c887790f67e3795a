# Runs the stages, each in its time, and reports.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import datetime
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .__main__ import OUT_OF_TIME
from .folder import Folder
from .report import Report
from .stage import Settings

# What must be known first comes first: the rest may find no time.
BUDGETS = {
    "device": 30, "correctness": 110, "graph": 15, "timing": 90, "runtime": 40,
    "nccl": 40, "pytorch": 100, "profile": 45, "memcheck": 60,
}
GRACE = 5  # seconds for a stage to notice that its time is up
LEAST = 2  # seconds; with less it is not begun


class Runner:
    def __init__(self, given):
        self.given = given
        self.folder = Folder(given.folder)
        self.end = time.time() + given.limit
        output = given.output or given.folder / "output"
        output.mkdir(parents=True, exist_ok=True)
        self.log = output / "gpu-check.log"
        self.results = output / "results.jsonl"
        self.output = output
        for file in (self.log, self.results):
            file.write_text("")

    def run(self, name):
        """(what became of the stage, seconds)"""
        start = time.time()
        deadline = min(start + BUDGETS[name], self.end)
        if deadline - start < LEAST:
            return "out of time", 0
        settings = Settings(
            str(self.folder.path.resolve()), str(self.results.resolve()), deadline,
            self.given.ptx, quick=self.given.quick,
        )
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).resolve().parents[2])]
                + [p for p in [os.environ.get("PYTHONPATH")] if p]
            ),
            "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1",
        }
        with self.log.open("a") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", __package__, name, settings.text()],
                stdout=log, stderr=subprocess.STDOUT, env=environment,
                start_new_session=True,
            )
            try:
                code = child.wait(deadline + GRACE - time.time())
            except subprocess.TimeoutExpired:
                code = OUT_OF_TIME
            finally:
                end_group(child)
        outcome = {0: "done", OUT_OF_TIME: "out of time"}.get(code, f"exit code {code}")
        return outcome, time.time() - start


def end_group(child):
    """The stage and what it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run(given):
    names = given.stages.split(",") if given.stages else list(BUDGETS)
    unknown = [n for n in names if n not in BUDGETS]
    if unknown:
        sys.exit(f"gpu-check: no stage '{unknown[0]}', expected {', '.join(BUDGETS)}")
    runner = Runner(given)
    report = Report(runner.folder, runner.results)
    for name in names:
        outcome, seconds = runner.run(name)
        report.end_stage(name, outcome, seconds)
        print(f"gpu-check: {name}: {outcome}, {seconds:.0f} s", flush=True)
    report.read()
    date = datetime.date.today().isoformat()
    commit = runner.folder.index["commit"].split()[0]
    file = runner.output / f"{date}-{report.chip}-{commit}.md"
    file.write_text(report.document(date))
    print("\n" + report.table())
    print(f"log: {runner.log}\nresults: {file}")
    print(report.summary())
    return 0 if report.passed else 1
