# What scripts/demo shows once the tools are built.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Nothing is claimed that was not looked at: the counts come from the plan, the
# checksums from the two programs, and whatever is not as said ends the demo
# with an error.

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "build" / "bin"
FOLDER = ROOT / "build" / "demo"
EXAMPLE = "examples/llama3_8b_layer.mlir"
RANKS = 4
PARAMETERS = 9
LEVELS = {0: "naive", 2: "optimised"}  # opt-level and what we call it


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
        "fsdp-opt", EXAMPLE, f"--fsdp-optimize=opt-level={level}",
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
    for key in ("all_gather", "reduce_scatter"):
        found = [plans[level]["counts"][key] for level in LEVELS]
        check(
            found == [PARAMETERS, 1], f"{PARAMETERS} {key} become 1, found {found}"
        )
    check(plans[0]["bytes"]["temporaries"] > 0, "the naive form has temporaries")
    check(plans[2]["bytes"]["temporaries"] == 0, "the optimised form has none")


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
    """(seconds, peak bytes, {result: checksum}) of an entry."""
    text = call("fsdp-run", artefact, f"--ranks={RANKS}", f"--entry={entry}", "--fill=1")
    seconds = re.search(r"^time .*\bmedian=([\d.]+)s", text, re.M)
    peak = re.search(r"^peak_bytes=(\d+)", text, re.M)
    checksums = dict(re.findall(r"^(\S+) \S+ checksum=([0-9a-f]+)", text, re.M))
    check(seconds and peak and checksums, f"fsdp-run prints results, not:\n{text}")
    return float(seconds[1]), int(peak[1]), checksums


def run_both(artefacts):
    for entry in ("forward", "backward"):
        checksums = {}
        print(f"--- {entry} on {RANKS} ranks\n")
        for level, name in LEVELS.items():
            seconds, peak, checksums[level] = run(artefacts[level], entry)
            print(
                f"  {name:<10}{seconds:8.3f} s   "
                f"{peak:>14,} bytes at most in buffers of a rank"
            )
        print()
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
    show_plans()
    artefacts = compile_both()
    run_both(artefacts)
    print(
        f"A Llama-3-8B decoder layer, sharded over {RANKS} ranks on this CPU, ran as "
        f"{PARAMETERS} + {PARAMETERS} collectives with separate casts and as 1 + 1 "
        "without any temporary, and both gave the same bits."
    )


if __name__ == "__main__":
    main()
