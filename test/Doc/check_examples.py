#!/usr/bin/python3
# Runs the examples of a generated reference through fsdp-opt.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Every ```mlir block is a complete module and must survive a round trip. Under
# the heading of a pass (### `-fsdp-name`) the first block is an input, the
# second one what the pass makes of it.
#
#   check_examples.py FSDP_OPT FILE.md

import re
import subprocess
import sys
from pathlib import Path

HEADING = re.compile(r"^#+ `?-?([\w.-]+)`?")


def sections(text):
    """(heading, [(line number, block)]) for every heading with blocks."""
    heading, blocks, open_block = "", [], None
    for number, line in enumerate(text.splitlines(), 1):
        if open_block is not None:
            if line.startswith("```"):
                blocks.append((start, "\n".join(open_block) + "\n"))
                open_block = None
            else:
                open_block.append(line)
        elif line == "```mlir":
            start, open_block = number, []
        elif match := HEADING.match(line):
            if blocks:
                yield heading, blocks
            heading, blocks = match[1], []
    if blocks:
        yield heading, blocks


def run(fsdp_opt, flags, module):
    done = subprocess.run(
        [fsdp_opt, *flags], input=module, capture_output=True, text=True
    )
    return done.stdout if done.returncode == 0 else None, done.stderr


def wrong_in(fsdp_opt, heading, blocks):
    """One sentence per block that is wrong."""
    for line, block in blocks:
        printed, errors = run(fsdp_opt, ["--verify-roundtrip"], block)
        if printed is None:
            yield f"{line}: {heading}: {errors.strip()}"
    if not heading.startswith(("fsdp-", "convert-fsdp-")):
        return
    (line, before) = blocks[0]
    got, errors = run(fsdp_opt, [f"--{heading}"], before)
    if got is None:
        yield f"{line}: --{heading}: {errors.strip()}"
    elif len(blocks) > 1:
        line, after = blocks[1]
        expected, _ = run(fsdp_opt, [], after)
        if got != expected:
            yield f"{line}: --{heading} does not give this, but\n{got}"


def main():
    fsdp_opt, path = sys.argv[1], Path(sys.argv[2])
    text = path.read_text()
    count = wrong = 0
    for heading, blocks in sections(text):
        count += len(blocks)
        for sentence in wrong_in(fsdp_opt, heading, blocks):
            print(f"{path}:{sentence}", file=sys.stderr)
            wrong += 1
    headings = re.findall(r"^### `(?:-|fsdp\.)([\w-]+)`", text, re.M)
    with_blocks = {h.removeprefix("fsdp.") for h, _ in sections(text)}
    for name in headings:
        if name not in with_blocks:
            print(f"{path}: {name} has no example", file=sys.stderr)
            wrong += 1
    print(f"{path.name}: {count} examples, {wrong} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
