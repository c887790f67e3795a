# The steps of scripts/test, their order, and what each of them counts.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A step is a function that gets a folder of its own under build/test-logs and
# returns counts. What it runs writes into a log, which is shown if anything
# failed. Steps do not depend on each other, except that all need the build: after
# it, two of them run at a time, each with half of the processors, so that one that
# waits leaves none idle. Those that take longest begin first.

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from fsdp_test.paths import BUILD, ROOT

PYTHON = "/usr/bin/python3"  # the one that has Debian's NumPy
MAX_CASES_NOT_COVERED = 0
TORCH_CASES = "test/torch_fixtures/fsdp2-2.15.json"
CASE_FILES = ["test/cases.json", "test/sum_cases.json", TORCH_CASES]
RANDOM_CASES = 100
RANDOM_EMULATED_CASES = 60
RANDOM_INTERPRETED_CASES = 40
RANDOM_PROGRAMS = 300
RANDOM_EMULATED_PROGRAMS = 60
SHOWN_LINES_OF_A_LOG = 200


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    def __str__(self):
        tail = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{tail}"


class Step:
    """What a step's function works with: its folder, its log, the options."""

    def __init__(self, name, options, jobs):
        self.name, self.options, self.jobs = name, options, jobs
        self.environment = {}  # for what it runs, beside this process's own
        self.cpu_seconds = 0
        self.folder = BUILD / "test-logs" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "log.txt"
        self.log.write_text("")

    def note(self, text):
        with self.log.open("a") as log:
            log.write(text + "\n")

    def run(self, *command, cwd=ROOT):
        """Runs `command` with its output in the log; (success, output)."""
        command = [str(part) for part in command]
        self.note("$ " + shlex.join(command))
        start = self.log.stat().st_size
        with self.log.open("a") as log:
            process = subprocess.Popen(
                command, cwd=cwd, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
            )
            _, status, usage = os.wait4(process.pid, 0)
            code = process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        if code:
            self.note(f"exit code {code}")
        with self.log.open("rb") as log:
            log.seek(start)
            return code == 0, log.read().decode(errors="replace")

    def check(self, *command):
        """One result: does `command` succeed?"""
        return Counts(1, 0) if self.run(*command)[0] else Counts(0, 1)


def sources(*suffixes):
    folders = ["include", "lib", "tools", "unittests", "bench", "test"]
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes
    )


# --- steps -------------------------------------------------------------------


def build(step):
    ok = step.run(
        "cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "--log-level=WARNING"
    )[0]
    return step.check("ninja", "-C", BUILD, "--quiet") if ok else Counts(0, 1)


def formatting(step):
    return step.check(
        "clang-format-22", "--dry-run", "-Werror", *sources(".h", ".cpp", ".c")
    )


def generated_files(step):
    return step.check("scripts/make-examples", "--check") + step.check(
        "scripts/generate-docs", "--check"
    )


def test_files(step):
    return step.check(PYTHON, "test/check_test_files.py")


def link_lines(step):
    """MLIR comes from the one shared library, never from its archives."""
    ok, rules = step.run("ninja", "-C", BUILD, "-t", "commands", "all")
    archives = sorted(set(re.findall(r"\S*libMLIR\w*\.a\b", rules)))
    shared = "libMLIR.so" in rules
    for archive in archives:
        step.note(f"a link line holds {archive}")
    if not shared:
        step.note("no link line holds libMLIR.so")
    return Counts(1, 0) if ok and shared and not archives else Counts(0, 1)


def run_gtests(step, build_folder):
    """Every GoogleTest program that the build folder knows."""
    _, text = step.run("ctest", "--test-dir", build_folder, "--show-only=json-v1")
    programs = [test["command"][0] for test in json.loads(text)["tests"]]
    counts = Counts(0, 0 if programs else 1)
    for program in programs:
        report = step.folder / f"{Path(program).name}.json"
        report.unlink(missing_ok=True)
        ok, _ = step.run(program, f"--gtest_output=json:{report}", "--gtest_brief=1")
        if not report.exists():  # it crashed
            counts += Counts(0, 1)
            continue
        result = json.loads(report.read_text())
        failed = result["failures"] + result["errors"]
        skipped = sum(
            test.get("result") == "SKIPPED"
            for suite in result["testsuites"]
            for test in suite["testsuite"]
        )
        run = result["tests"] - result["disabled"]
        counts += Counts(run - failed - skipped, failed, skipped)
        if not ok and not failed:  # a sanitizer found something at the end
            counts += Counts(0, 1)
    return counts


def unit_tests(step):
    return run_gtests(step, BUILD)


# Faster to compile than -O2 -g, and what a report shows is the same.
SANITIZED = ["-DCMAKE_BUILD_TYPE=Sanitized"] + [
    f"-DCMAKE_{language}_FLAGS_SANITIZED=-O1 -g1" for language in ("C", "CXX")
]


def sanitizers(step):
    counts = Counts()
    # Tests ask for more memory than there is, and are told so.
    options = "allocator_may_return_null=1"
    step.environment = {"ASAN_OPTIONS": options, "TSAN_OPTIONS": options}
    for name, sanitizers in [("asan", "address,undefined"), ("tsan", "thread")]:
        folder = BUILD / name
        ok = step.run(
            "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "--log-level=WARNING",
            f"-DFSDP_SANITIZE={sanitizers}", *SANITIZED,
        )[0]
        ok = ok and step.run("ninja", "-C", folder, "--quiet", f"-j{step.jobs}")[0]
        counts += run_gtests(step, folder) if ok else Counts(0, 1)
    return counts


def run_lit(step, *arguments):
    report = step.folder / "results.json"
    report.unlink(missing_ok=True)
    llvm_bin = re.search(
        r"^LLVM_EXTERNAL_LIT:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M
    )[1]
    step.run(
        PYTHON, llvm_bin, "-v", f"-j{step.jobs}", "-o", report, BUILD / "test", *arguments
    )
    counts = Counts()
    for test in json.loads(report.read_text())["tests"]:
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
            counts += Counts(passed=1)
        elif test["code"] in ("UNSUPPORTED", "SKIPPED"):
            counts += Counts(skipped=1)
        elif test["code"] != "EXCLUDED":
            counts += Counts(failed=1)
    return counts if counts.passed else counts + Counts(failed=1)


def lit(step):
    return run_lit(step)


def sanitized_tools(step):
    """The tools themselves under ASan and UBSan, in the tests of IR and of command
    lines; then whole runs under TSan. Both in build folders of their own."""
    if not step.run("scripts/packages", "fuzz")[0]:
        return Counts(0, 1)
    # libMLIR is not instrumented: what one side poisons in arenas of the other
    # is no fault. Python and Open MPI leak what they like.
    step.environment["ASAN_OPTIONS"] = (
        "allow_user_poisoning=0:detect_container_overflow=0:detect_leaks=0"
    )
    step.environment["TSAN_OPTIONS"] = (
        f"suppressions={ROOT / 'test/tsan-suppressions.txt'}"
    )
    # fsdp-run loads it by name, so nothing that is built asks for it.
    mpi = ["fsdprt_mpi"] if (BUILD / "lib/libfsdprt_mpi.so").exists() else []
    counts = Counts()
    for name, sanitizer, targets, filter, options in [
        (
            "fuzz", "address", ["fsdp-opt", "fsdp-compile", "fsdp-run", *mpi],
            "(Dialect|Transforms|Conversion|Pipelines|Tools|Execution)/",
            ["-DFSDP_FUZZ=ON", "-DCMAKE_C_COMPILER=clang-22",
             "-DCMAKE_CXX_COMPILER=clang++-22"],
        ),
        (
            "tsan-tools", "thread", ["fsdprt", "fsdp-run", *mpi],
            "(Tools/fsdp-run|Execution)/",
            ["-DCMAKE_CXX_FLAGS=-fsanitize=thread"],
        ),
    ]:
        folder = BUILD / name
        ok = step.run(
            "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "--log-level=WARNING",
            *options,
        )[0]
        ok = ok and step.run(
            "ninja", "-C", folder, "--quiet", f"-j{step.jobs}", *targets
        )[0]
        counts += (
            run_lit(
                step, f"--param=tools={folder / 'bin'}", f"--param=sanitized={sanitizer}",
                f"--filter={filter}",
            )
            if ok else Counts(0, 1)
        )
    return counts


def fuzz(step):
    """A minute of each fuzzer."""
    return whole(step, "scripts/fuzz", "--seconds=60")


def counted(text):
    """Counts of a last line `N passed, N failed`."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) \w.*)?$", text, re.M)
    return Counts(*(int(n or 0) for n in found[-1])) if found else Counts(0, 1)


def whole(step, *command):
    """Counts of a command that counts itself; failing is one failure more where
    it counts none."""
    ok, text = step.run(*command)
    counts = counted(text)
    return counts if ok or counts.failed else counts + Counts(0, 1)


def oracle(step):
    """The NumPy model alone: its unit tests, and it on every case. Cases that
    are about IR are not for it, and do not count as skipped."""
    counts = whole(step, PYTHON, "-m", "fsdp_test.oracle.test_oracle")
    for file in CASE_FILES:
        counts += whole(step, "scripts/run-cases", "--oracle", f"-j{step.jobs}", file)
    return Counts(counts.passed, counts.failed)


def recorded_again(step):
    """What PyTorch computes, where the long run finds one: is the file that?"""
    python = os.environ.get("FSDP_TORCH_PYTHON", PYTHON)
    if not step.run(python, "-c", "import torch.distributed.fsdp")[0]:
        step.note("no torch, so nothing is recorded again: see FSDP_TORCH_PYTHON")
        return Counts(skipped=1)
    return step.check(
        python, "test/torch_fixtures/record.py", TORCH_CASES, "--check"
    )


def cases(step):
    """One result per case; what no pass covers yet is skipped, but not too
    much of it. Then some random ones, always the same."""
    counts = Counts()
    for file in CASE_FILES:
        counts += whole(
            step, "scripts/run-cases", f"-j{step.jobs}",
            f"--max-not-covered={MAX_CASES_NOT_COVERED}", file,
        )
    counts += whole(
        step, "scripts/run-cases", f"-j{step.jobs}", f"--random={RANDOM_CASES}",
        "--seed=1",
    )
    return counts + recorded_again(step) if step.options.long else counts


def emulated(step):
    """The same cases on the GPU's kernels, thread by thread on the host, and
    other random ones."""
    command = ["scripts/run-cases", "--emulate", f"-j{step.jobs}"]
    counts = whole(step, *command, "test/cases.json")
    return counts + whole(
        step, *command, f"--random={RANDOM_EMULATED_CASES}", "--seed=2"
    )


def interpreted(step):
    """The same cases, and small examples, as a GPU's artefacts on a fake GPU that
    interprets PTX."""
    command = ["scripts/run-cases", "--interpret", f"-j{step.jobs}"]
    counts = whole(step, *command, "test/cases.json")
    return counts + whole(
        step, *command, f"--random={RANDOM_INTERPRETED_CASES}", "--seed=4"
    ) + whole(step, "scripts/run-examples", "--interpret")


def random_programs(step):
    """Always the same ones, some of them with the GPU's kernels on the host; then
    planted faults, each of which must be found."""
    command = ["scripts/random-programs", "--seed=1", f"-j{step.jobs}"]
    counts = whole(step, *command, f"--count={RANDOM_PROGRAMS}")
    counts += whole(
        step, *command, f"--count={RANDOM_EMULATED_PROGRAMS}", "--emulate"
    )
    return counts + whole(step, *command, "--faults")


def examples(step):
    options = ["--emulate"]
    if (BUILD / "lib" / "libfsdprt_mpi.so").exists() and shutil.which("mpirun"):
        options.append("--comm=mpi")
    options.append("--long" if step.options.long else "--quick")
    return whole(step, "scripts/run-examples", *options)


# In the order in which they begin, after the build.
STEPS = {
    "build": (build, "everything builds without a warning"),
    "format": (formatting, "clang-format has nothing to change"),
    "generated": (generated_files, "examples and references are what scripts write"),
    "test-files": (test_files, "every CHECK line reaches FileCheck"),
    "link-lines": (link_lines, "no static archive of MLIR is linked"),
    "lit": (lit, "IR, tools, documentation, installation"),
    "examples": (examples, "real models on 1 to 8 ranks, bit by bit"),
    "sanitizers": (sanitizers, "layout and runtime under ASan, UBSan and TSan"),
    "random": (random_programs, "random programs, two levels and the oracle"),
    "interpreted": (interpreted, "those and small examples on the GPU's PTX, interpreted"),
    "cases": (cases, "cases with known answers through the tools"),
    "emulated": (emulated, "the cases that run, on the GPU's kernels, emulated"),
    "units": (unit_tests, "layout and runtime, GoogleTest"),
    "oracle": (oracle, "the NumPy model against worked values"),
}

# With --long, or by name.
LONG_STEPS = {
    "tools": (sanitized_tools, "the tools under ASan and UBSan, runs under TSan"),
    "fuzz": (fuzz, "a minute of each fuzzer of test/fuzz"),
}

# --- driver ------------------------------------------------------------------


def show(log):
    lines = log.read_text(errors="replace").splitlines()
    if len(lines) > SHOWN_LINES_OF_A_LOG:
        print(f"    ... {len(lines) - SHOWN_LINES_OF_A_LOG} lines, see {log}")
    for line in lines[-SHOWN_LINES_OF_A_LOG:]:
        print(f"    {line}")


def run(name, function, options, jobs):
    """(step, counts, seconds)"""
    step = Step(name, options, jobs)
    start = time.monotonic()
    try:
        counts = function(step)
    except Exception as error:  # the other steps still have something to say
        step.note(f"{type(error).__name__}: {error}")
        counts = Counts(0, 1)
    step.note(f"{step.cpu_seconds:.0f} s of processor time")
    return step, counts, time.monotonic() - start


def run_all(names, steps, options):
    """Yields what `run` returns as steps end."""
    cores = os.cpu_count()
    if "build" in names:
        ended = run("build", steps["build"][0], options, cores)
        yield ended
        if ended[1].failed:
            return  # nothing else can say anything
    names = [name for name in names if name != "build"]
    at_a_time = min(2, len(names))
    if not names:
        return
    jobs = max(1, cores // at_a_time)
    with ThreadPoolExecutor(at_a_time) as pool:
        futures = [
            pool.submit(run, name, steps[name][0], options, jobs) for name in names
        ]
        for future in as_completed(futures):
            yield future.result()


def main():
    steps = {**STEPS, **LONG_STEPS}
    listed = "\n".join(f"  {name:<12}{text}" for name, (_, text) in steps.items())
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Builds and tests everything.",
        epilog=f"steps:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help="default: all")
    parser.add_argument(
        "--long", action="store_true",
        help="the examples run whole on all numbers of ranks, PyTorch where it is "
        f"installed, and {' and '.join(LONG_STEPS)}",
    )
    options = parser.parse_args()
    for name in options.steps:
        if name not in steps:
            parser.error(f"no step '{name}'")

    os.chdir(ROOT)
    began = time.monotonic()
    total = Counts()
    names = options.steps or list(steps if options.long else STEPS)
    if "build" not in names and not (BUILD / "CMakeCache.txt").exists():
        names = ["build", *names]  # a fresh clone: the others need what it makes
    for step, counts, seconds in run_all(names, steps, options):
        print(f"{step.name:<12}{counts} ({seconds:.0f} s)", flush=True)
        if counts.failed:
            show(step.log)
        total += counts
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
