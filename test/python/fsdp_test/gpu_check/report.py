# What the stages found, as one table and as a document.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json
import re

from .workloads import BY_NAME

HEAD = ["workload", "MB", "us", "TB/s", "copy us", "of copy", "target us",
        "PyTorch us", "times", "verdict"]
STAGE_HEAD = ["stage", "verdict", "passed", "failed", "s", "remark"]


def grid(head, rows):
    """A Markdown table in columns."""
    rows = [head] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines) + "\n"


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


class Report:
    def __init__(self, folder, results):
        self.folder, self.file = folder, results
        self.stages = {}  # name: (outcome, seconds)
        self.results = []

    def end_stage(self, name, outcome, seconds):
        self.stages[name] = (outcome, seconds)

    def read(self):
        lines = self.file.read_text().splitlines()
        self.results = [json.loads(line) for line in lines]
        self.times = {
            (r["workload"], r["what"]): r["microseconds"]
            for r in self.of("time")
        }
        self.rows = [
            self.workload_row(module)
            for module in self.folder.modules if module.kind == "workload"
        ]
        self.stage_rows = [self.stage_row(name) for name in self.stages]

    def of(self, kind, stage=None):
        return [
            r for r in self.results
            if r["kind"] == kind and stage in (None, r["stage"])
        ]

    def fact(self, name):
        return next((r["value"] for r in self.of("fact") if r["name"] == name), "")

    @property
    def device(self):
        return self.fact("device") or "unknown device"

    @property
    def chip(self):
        """One word for the name of a file."""
        known = re.search(r"\b(H100|H200|GH200)\b", self.device)
        return known[1] if known else re.sub(r"\W+", "-", self.device)

    # --- rows -----------------------------------------------------------------

    def pytorch(self, name):
        """The fastest of PyTorch's ways, and why there is none."""
        times = [
            t for (workload, what), t in self.times.items()
            if workload == name and what.startswith("PyTorch")
        ]
        if times:
            return min(times), ""
        skipped = self.of("skip", "pytorch")
        return None, skipped[0]["detail"] if skipped else "-"

    def workload_row(self, module):
        name, moved = module.name, module.operations[0].moved
        known = BY_NAME[name]
        ours, copy = (self.times.get((name, f"{w}, graph")) for w in ("ours", "copy"))
        stream = self.times.get((name, "ours, stream"))
        theirs, why = self.pytorch(name)
        factor = theirs / stream if theirs and stream else None
        target = known.target(self.device) if self.is_whole else None
        return [
            name, number(moved / 1e6), number(ours), number(ours and moved / ours / 1e6, 2),
            number(copy), f"{100 * copy / ours:.0f} %" if ours and copy else "-",
            number(target, 0), why or number(theirs), number(factor, 2),
            self.verdict(ours, target, factor, known.torch_factor),
        ]

    @property
    def is_whole(self):
        """Not the small workloads of a test."""
        module = self.folder.module("P1")
        return module is not None and module.operations[0].moved > 3e8

    @staticmethod
    def verdict(ours, target, factor, least_factor):
        if ours is None:
            return "not measured"
        if target is None:
            return "no target"
        if ours > target:
            return "FAIL"
        if factor is not None and factor < least_factor:
            return f"FAIL: below {least_factor} times PyTorch"
        return "pass"

    def stage_row(self, name):
        outcome, seconds = self.stages[name]
        checks = self.of("check", name)
        failed = [c for c in checks if not c["ok"]]
        skipped = self.of("skip", name)
        found = any(r["stage"] == name for r in self.results)
        if failed:
            verdict, remark = "FAIL", f"{failed[0]['name']}: {failed[0]['detail']}"
        elif outcome == "out of time":
            verdict, remark = "out of time", "partly done" if found else "not begun"
        elif outcome != "done":
            verdict, remark = "FAIL", outcome
        elif skipped:
            verdict, remark = "skipped", skipped[0]["detail"]
        else:
            verdict = "pass" if checks else "done"
            remark = self.fact("compared") if name == "correctness" else ""
        remark = " ".join(remark.replace("|", "/").split())[:100]
        return [name, verdict, len(checks) - len(failed), len(failed),
                f"{seconds:.0f}", remark]

    # --- text -----------------------------------------------------------------

    def table(self):
        return grid(HEAD, self.rows) + "\n" + grid(STAGE_HEAD, self.stage_rows)

    @property
    def failures(self):
        return sum(row[-1].startswith("FAIL") for row in self.rows) + sum(
            row[1] in ("FAIL", "out of time") for row in self.stage_rows
        )

    @property
    def passed(self):
        return self.failures == 0

    def summary(self):
        good = sum(row[-1] == "pass" for row in self.rows) + sum(
            row[1] in ("pass", "done") for row in self.stage_rows
        )
        skipped = sum(row[1] == "skipped" for row in self.stage_rows)
        return f"{good} passed, {self.failures} failed, {skipped} skipped"

    def document(self, date):
        index = self.folder.index
        facts = [
            ("date", date), ("commit", index["commit"]),
            ("compiled", f"{index['prepared']}, {index['image']}"),
            ("compiler", index["compiler"].replace("\n", ", ")),
        ] + [(r["name"], r["value"]) for r in self.of("fact")]
        checks = [
            (c["stage"], c["name"], "pass" if c["ok"] else "FAIL", c["detail"])
            for c in self.of("check")
        ]
        times = [(w, what, f"{t:.2f}") for (w, what), t in self.times.items()]
        parts = [
            f"# {self.device}, {date}, commit {index['commit']}\n", self.table(),
            self.summary() + "\n", "## Facts\n", grid(["what", "value"], facts),
            "## Checks\n", grid(["stage", "check", "verdict", "detail"], checks),
            "## Times\n", "Medians in microseconds.\n",
            grid(["workload", "what", "us"], times),
        ]
        return "\n".join(parts)
