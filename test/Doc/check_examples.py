#!/usr/bin/python3
# Runs the examples of a generated reference through fsdp-opt.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Every ```mlir block is a complete module and must survive a round trip. Under
# the heading of a pass (### `-fsdp-name`) the first block is an input, which may
# start with the options, `// with NAME=VALUE ...`. After *becomes* comes what the
# pass makes of it: all of it, or with `// ...` for any lines and `...` for any
# text of a line, and then only compared. A pass that changes nothing has instead,
# after *prints*, a ```text block: what it prints about the block before. Every
# pass has one of both.
#
#   check_examples.py FSDP_OPT FILE.md

import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(mlir|text)$")
HEADING = re.compile(r"^#+ `?-?([\w.-]+)`?")


class Printed(str):
    """What a pass prints."""


def sections(text):
    """(heading, [(line number, block)]) for every heading with blocks; a block of
    text is a `Printed`."""
    heading, blocks, open_block = "", [], None
    for number, line in enumerate(text.splitlines(), 1):
        if open_block is not None:
            if line.startswith("```"):
                blocks.append((start, kind("\n".join(open_block) + "\n")))
                open_block = None
            else:
                open_block.append(line)
        elif match := BLOCK.match(line):
            start, open_block = number, []
            kind = Printed if match[1] == "text" else str
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


def is_cut(block):
    return any(line.strip() == "// ..." or "..." in line for line in block.splitlines())


def matches(block, printed):
    """Is `printed` what a block with left-out parts shows?"""
    pattern = ""
    for line in block.splitlines():
        if line.strip() == "// ...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("..."))) + r"[ ]*\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def printed_about(fsdp_opt, flag, module):
    """Standard output without the module, and then the messages."""
    done = subprocess.run(
        [fsdp_opt, flag, "-o", "/dev/null"], input=module, capture_output=True, text=True
    )
    messages = [
        message for message in re.findall(r"^<stdin>:\d+:\d+: (.*)", done.stderr, re.M)
        if not message.startswith("note: see current operation")
    ]
    return "\n".join([*done.stdout.rstrip().splitlines(), *messages]) + "\n"


def wrong_in(fsdp_opt, heading, blocks):
    """One sentence per block that is wrong."""
    is_pass = heading.startswith(("fsdp-", "convert-"))
    for index, (line, block) in enumerate(blocks):
        if isinstance(block, Printed) or (is_pass and index > 0 and is_cut(block)):
            continue
        printed, errors = run(fsdp_opt, ["--verify-roundtrip"], block)
        if printed is None:
            yield f"{line}: {heading}: {errors.strip()}"
    if not is_pass:
        return
    (line, before) = blocks[0]
    options = re.match(r"// with (.*)\n", before)
    flag = f"--{heading}" + (f"={options[1]}" if options else "")
    got, errors = run(fsdp_opt, [flag], before)
    if got is None:
        yield f"{line}: {flag}: {errors.strip()}"
        return
    if len(blocks) < 2:
        yield f"{line}: {heading} does not show what becomes of this, or what it prints"
        return
    if isinstance(blocks[-1][1], Printed):
        line, expected = blocks[-1]
        said = printed_about(fsdp_opt, flag, blocks[-2][1])
        if said != expected:
            yield f"{line}: {flag} does not print this, but\n{said}"
        return
    line, after = blocks[1]
    expected = None if is_cut(after) else run(fsdp_opt, [], after)[0]
    if got != expected and not (is_cut(after) and matches(after, got)):
        yield f"{line}: {flag} does not give this, but\n{got}"
    if got == run(fsdp_opt, [], before)[0]:
        yield f"{line}: {flag} leaves its example as it is"


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
