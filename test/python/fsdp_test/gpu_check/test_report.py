# What a report says, without a device.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from fsdp_test.gpu_check import runs
from fsdp_test.gpu_check.driver import FUNCTIONS
from fsdp_test.gpu_check.folder import Folder, Module, Operation, write_index
from fsdp_test.gpu_check.report import Report
from fsdp_test.gpu_check.runtime import LIBRARY, Options
from fsdp_test.gpu_check.timing import sets_for
from fsdp_test.gpu_check.tools import metrics_of
from fsdp_test.paths import ROOT

P1 = Operation(
    "f", "k", (1542, 8), 256, True, False, [100794496], 201458688, 100794496, 201458688
)
STUB = Path("/usr/local/cuda/lib64/stubs/libcuda.so")
ABOUT = {"commit": "abc", "prepared": "today", "image": "none", "compiler": "none"}


class Results:
    """A folder with P1, and the results of some stages."""

    def __init__(self, device, ours, copy=100.0, torch=None):
        self.lines = [
            {"kind": "fact", "stage": "device", "name": "device", "value": device}
        ]
        for what, time in (
            ("ours, graph", ours), ("ours, stream", ours), ("copy, graph", copy),
            ("PyTorch, chunk_cat", torch), ("PyTorch, cast", torch and 2 * torch),
        ):
            if time:
                self.lines.append({
                    "kind": "time", "stage": "timing", "workload": "P1", "what": what,
                    "microseconds": time,
                })

    def report(self, stages=(("device", "done"), ("timing", "done"))):
        with tempfile.TemporaryDirectory() as folder:
            write_index(folder, ABOUT, [Module("P1", "workload", [P1])], [])
            results = Path(folder, "results.jsonl")
            results.write_text("".join(json.dumps(l) + "\n" for l in self.lines))
            report = Report(Folder(folder), results)
            for name, outcome in stages:
                report.end_stage(name, outcome, 1)
            report.read()
        return report


class Verdicts(unittest.TestCase):
    def verdict(self, *arguments, **named):
        return Results(*arguments, **named).report().rows[0][-1]

    def test_target_of_the_chip(self):
        self.assertEqual(self.verdict("NVIDIA H200", 77.0), "pass")
        self.assertEqual(self.verdict("NVIDIA H200", 79.0), "FAIL")
        self.assertEqual(self.verdict("NVIDIA H100 80GB HBM3", 79.0), "pass")
        self.assertEqual(self.verdict("NVIDIA A100", 79.0), "no target")
        self.assertEqual(self.verdict("NVIDIA H200", None), "not measured")

    def test_target_against_pytorch(self):
        self.assertEqual(self.verdict("NVIDIA H200", 75.0, torch=150.0), "pass")
        self.assertEqual(
            self.verdict("NVIDIA H200", 75.0, torch=120.0), "FAIL: below 1.7 times PyTorch"
        )

    def test_row(self):
        row = Results("NVIDIA H200", 75.0, 70.0, 150.0).report().rows[0]
        self.assertEqual(
            row, ["P1", "302.3", "75.0", "4.03", "70.0", "93 %", "78", "150.0", "2.00",
                  "pass"],
        )


class Stages(unittest.TestCase):
    def row(self, outcome, *results):
        made = Results("NVIDIA H200", 75.0)
        made.lines += [{"stage": "nccl", **result} for result in results]
        report = made.report([("nccl", outcome)])
        return report.stage_rows[0][1], report.passed

    CHECK = {"kind": "check", "name": "it", "ok": True, "detail": ""}

    def test_verdicts(self):
        failed = dict(self.CHECK, ok=False)
        skip = {"kind": "skip", "detail": "no libnccl.so.2"}
        self.assertEqual(self.row("done", self.CHECK), ("pass", True))
        self.assertEqual(self.row("done", self.CHECK, failed), ("FAIL", False))
        self.assertEqual(self.row("done", skip), ("skipped", True))
        self.assertEqual(self.row("out of time", self.CHECK), ("out of time", False))
        self.assertEqual(self.row("exit code -11"), ("FAIL", False))

    def test_document_names_all(self):
        text = Results("NVIDIA H200", 75.0).report().document("2000-01-01")
        for part in ("NVIDIA H200", "commit abc", "| ours, graph", "2000-01-01"):
            self.assertIn(part, text)


class FakeStage:
    def check(self, name, ok, detail=""):
        self.result = (bool(ok), detail)


class Comparison(unittest.TestCase):
    LINES = "ranks=1 device=host\nw tensor<2xf32> checksum=1 min=0 max=1\n"

    def compare(self, printed):
        stage = FakeStage()
        runs.compare(stage, "run", self.LINES, printed)
        return stage.result

    def test_times_and_devices_do_not_count(self):
        self.assertEqual(
            self.compare(self.LINES.replace("host", "cuda")), (True, "1 tensors")
        )

    def test_differences_do(self):
        self.assertFalse(self.compare(self.LINES.replace("checksum=1", "checksum=2"))[0])
        self.assertFalse(self.compare("ranks=1\n")[0])
        self.assertFalse(self.compare(self.LINES + self.LINES)[0])


class FakeGpu:
    free_bytes = 80 << 30

    def attribute(self, name):
        return 50 << 20


class Interface(unittest.TestCase):
    HEADER = (ROOT / "include/fsdp/Runtime/Runtime.h").read_text()

    def test_the_library_has_the_version_of_the_header(self):
        version = re.search(r"#define FSDPRT_ABI_VERSION (\d+)", self.HEADER)[1]
        self.assertEqual(LIBRARY, f"libfsdprt.so.{version}")

    def test_options_are_those_of_the_header(self):
        text = re.search(
            r"typedef struct fsdprtOptions \{(.*)\} fsdprtOptions;", self.HEADER, re.S
        )[1]
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        names = re.findall(r"(\w+);", text)
        self.assertEqual(names, [name for name, _ in Options._fields_])


    @unittest.skipUnless(STUB.exists(), "no CUDA toolkit")
    def test_the_driver_has_all_functions(self):
        listed = subprocess.run(["nm", "-D", STUB], capture_output=True, text=True)
        exported = {line.split()[-1] for line in listed.stdout.splitlines()}
        self.assertEqual([f for f in FUNCTIONS if f not in exported], [])


class Timing(unittest.TestCase):
    def test_sets_are_more_than_the_l2(self):
        self.assertEqual(sets_for(FakeGpu(), 302 << 20), 4)
        self.assertEqual(sets_for(FakeGpu(), 38 << 20), 6)
        self.assertEqual(sets_for(FakeGpu(), 12 << 30), 2)
        self.assertEqual(sets_for(FakeGpu(), 1), 16)

    def test_profiler_output(self):
        text = 'x\n"ID","dram__bytes_read.sum"\n"","byte"\n"0","1,000"\n'
        self.assertEqual(metrics_of(text), {"dram__bytes_read.sum": 1000.0})
        self.assertEqual(metrics_of("==ERROR== no permission\n"), {})


if __name__ == "__main__":
    unittest.main()
