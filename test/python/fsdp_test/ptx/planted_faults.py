# Plants faults in kernels, one at a time, and expects each to be caught.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.planted_faults FILE [KIND...]
#
# A check that nothing can fail shows nothing. The PTX of a module's kernels is
# edited as a wrong kernel would look: a store without its predicate, a limit
# that is off by one, an address that is off by a vector. Prints how many of each
# kind are caught by the comparison with the oracle or by the interpreter's
# memory, and every one that is not.

import re
import sys
from pathlib import Path

import numpy as np

from .compiler import compile_module
from .execution import Placement, WrongResult, execute
from .interpreter import PtxError, parse
from .run_kernels import launches_by_op

DATA = 7
OFF_BY_ONE = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}

# kind -> (what to look for in a line, what to put there)
FAULTS = {
    "no-predicate": (r"@%p\d+ (?=st\.)", lambda m: ""),
    "wrong-predicate": (r"@%p\d+ (?=st\.)", lambda m: "@!" + m[0][1:]),
    "limit": (
        r"(?<=setp\.)(lt|le|gt|ge)(?=\.s32)", lambda m: OFF_BY_ONE[m[1]]
    ),
    "offset": (
        r"(?<=%rd)(\d+)\+(\d+)(?=\])", lambda m: f"{m[1]}+{int(m[2]) + 16}"
    ),
    "conversion": (
        r"(cvt\.rn\.\w+x2\.f32\s+%r\d+), (%r\d+), (%r\d+)",
        lambda m: f"{m[1]}, {m[3]}, {m[2]}",
    ),
}


def is_caught(text, groups):
    """The message of what catches the fault, or None."""
    try:
        module = parse(text)
        for number, (op, launches) in enumerate(groups):
            for attempt in range(DATA):
                rng = np.random.default_rng([number, attempt])
                place = Placement.random(op, rng)
                if attempt in (0, 2):
                    place = Placement.aligned(op)
                    place.bucket = attempt // 2  # first none, then an odd byte
                execute(module, launches, place, [number, attempt])
    except (PtxError, WrongResult) as error:
        return str(error)
    return None


def main():
    compiled = compile_module(Path(sys.argv[1]).read_text())
    kinds = sys.argv[2:] or list(FAULTS)
    groups = launches_by_op(compiled)
    lines = compiled.ptx.splitlines()
    if is_caught(compiled.ptx, groups):
        raise SystemExit("the kernels are wrong without a fault")
    # An edit in one kernel is seen by its own op alone.
    kernel_of, current = [], None
    for line in lines:
        if line.startswith(".visible .entry"):
            current = line.split()[-1].rstrip("(")
        kernel_of.append(current)
    for kind in kinds:
        pattern, replacement = FAULTS[kind]
        caught = sites = 0
        for number, line in enumerate(lines):
            if not re.search(pattern, line) or kernel_of[number] is None:
                continue
            own = [g for g in groups if any(l.kernel == kernel_of[number] for l in g[1])]
            edited = re.sub(pattern, replacement, line, count=1)
            text = "\n".join(lines[:number] + [edited] + lines[number + 1 :])
            sites += 1
            message = is_caught(text, own)
            if message:
                caught += 1
            else:
                print(f"{kind}: line {number + 1} not caught: {line.strip()}")
        print(f"{kind}: {caught} of {sites} caught")


if __name__ == "__main__":
    main()
