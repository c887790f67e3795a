# What scripts/demo shows once the tools are built.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Nothing is claimed that was not looked at: the counts come from the plan, the
# checksums from the two programs, and whatever is not as said ends the demo
# with an error. Times are shown and not judged, as they are the machine's; the
# two programs take turns, so that what else it does meets both.

import json
import re
import shlex
import statistics
import subprocess
import sys

from fsdp_test.paths import BUILD, ROOT

TOOLS = BUILD / "bin"
FOLDER = BUILD / "demo"
EXAMPLE = "examples/llama3_8b_layer.mlir"
RANKS = 4
PARAMETERS = 9
LEVELS = {0: "naive", 2: "optimised"}  # opt-level and what we call it
MAX_BYTES = 256 << 20  # of a bucket: fsdp-compile's for the CPU
ROUNDS = 2  # in which each program runs once, for TIMES times that count
TIMES = 3


def call(*command):
    """What the tool prints; the demo ends where it fails."""
    tool, *rest = [str(part) for part in command]
    done = subprocess.run(
        [TOOLS / tool, *rest], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"demo: '{shlex.join([tool, *rest])}' fails:\n{done.stderr}")
    return done.stdout


def check(condition, claim):
    if not condition:
        sys.exit(f"demo: this is not so: {claim}")


def plan(level, form):
    return call(
        "fsdp-opt", EXAMPLE,
        f"--fsdp-optimize=opt-level={level} max-bytes={MAX_BYTES}",
        f"--fsdp-print-plan=format={form}", "-o", "/dev/null",
    )


def show_plans():
    plans = {}
    for level, name in LEVELS.items():
        print(f"--- the plan, {name}\n")
        print(plan(level, "text"))
        plans[level] = json.loads(plan(level, "json"))
    print(f"--- side by side{'naive':>21}{'optimised':>20}\n")
    for group, keys in [
        ("counts", ["all_gather", "reduce_scatter", "launches"]),
        ("bytes", ["read", "written", "temporaries"]),
    ]:
        for key in keys:
            name = f"bytes of {key}" if key == "temporaries" else (
                f"bytes {key}" if group == "bytes" else key
            )
            row = [plans[level][group][key] for level in LEVELS]
            print(f"  {name:<20}" + "".join(f"{value:>20,}" for value in row))
    print()
    counts = {}
    for key in ("all_gather", "reduce_scatter"):
        naive, counts[key] = (plans[level]["counts"][key] for level in LEVELS)
        claim = f"{PARAMETERS} {key} become fewer, found {naive} and {counts[key]}"
        check(naive == PARAMETERS and counts[key] < PARAMETERS, claim)
    check(plans[0]["bytes"]["temporaries"] > 0, "the naive form has temporaries")
    check(plans[2]["bytes"]["temporaries"] == 0, "the optimised form has none")
    return counts


def is_fresh(artefact):
    """True if nothing that it is made from is newer."""
    sources = [ROOT / EXAMPLE, TOOLS / "fsdp-compile"]
    return artefact.exists() and all(
        source.stat().st_mtime < artefact.stat().st_mtime for source in sources
    )


def compile_both():
    FOLDER.mkdir(parents=True, exist_ok=True)
    artefacts = {}
    for level, name in LEVELS.items():
        artefacts[level] = FOLDER / f"llama3_8b_layer_{name}.so"
        fresh = is_fresh(artefacts[level])
        if not fresh:
            call(
                "fsdp-compile", EXAMPLE, "--target=cpu", f"--opt-level={level}",
                "-o", artefacts[level],
            )
        size = artefacts[level].stat().st_size
        print(
            f"{'kept' if fresh else 'compiled'} "
            f"{artefacts[level].relative_to(ROOT)}, {size:,} bytes"
        )
    print()
    return artefacts


def run(artefact, entry):
    """(seconds of each time, peak bytes, {result: checksum}) of an entry. The
    first time pays for the system's pages, so it is none of them."""
    text = call(
        "fsdp-run", artefact, f"--ranks={RANKS}", f"--entry={entry}", "--fill=1",
        "--warmup=1", f"--repeat={TIMES}",
    )
    # Of three times these are all.
    time = r"=([\d.]+)s"
    seconds = re.search(rf"^time min{time} median{time} max{time}", text, re.M)
    peak = re.search(r"^peak_bytes=(\d+)", text, re.M)
    checksums = dict(re.findall(r"^(\S+) \S+ checksum=([0-9a-f]+)", text, re.M))
    check(seconds and peak and checksums, f"fsdp-run prints results, not:\n{text}")
    return list(map(float, seconds.groups())), int(peak[1]), checksums


def run_both(artefacts):
    for entry in ("forward", "backward"):
        print(f"--- {entry} on {RANKS} ranks, median of {ROUNDS * TIMES} times\n")
        seconds = {level: [] for level in LEVELS}
        peaks, checksums = {}, {}
        for _ in range(ROUNDS):
            for level in LEVELS:
                times, peaks[level], found = run(artefacts[level], entry)
                seconds[level] += times
                check(
                    checksums.setdefault(level, found) == found,
                    f"{entry} gives the same each time",
                )
        for level, name in LEVELS.items():
            print(
                f"  {name:<10}{statistics.median(seconds[level]):8.3f} s   "
                f"{peaks[level]:>14,} bytes at most in buffers of a rank"
            )
        print()
        if entry == "backward":
            check(peaks[2] < peaks[0], "the optimised form takes less memory")
        for tensor, checksum in checksums[2].items():
            same = checksums[0].get(tensor) == checksum
            print(f"  {checksum} {'both' if same else 'DIFFERS'}  {tensor}")
            check(same, f"the checksums of {tensor} are equal")
        check(
            checksums[0] == checksums[2] and len(checksums[2]) == PARAMETERS,
            f"both give {PARAMETERS} results",
        )
        print()


def main():
    counts = show_plans()
    artefacts = compile_both()
    run_both(artefacts)
    print(
        f"A Llama-3-8B decoder layer, sharded over {RANKS} ranks on this CPU, ran as "
        f"{PARAMETERS} + {PARAMETERS} collectives with separate casts and as "
        f"{counts['all_gather']} + {counts['reduce_scatter']} without any temporary, "
        "and both gave the same bits."
    )


if __name__ == "__main__":
    main()
