#!/usr/bin/python3
# Runs a document: writes its files, runs its commands, compares what it shows.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Blocks of a document, by the line that opens them:
#
#   ```LANGUAGE FILE      a file, written as it is
#   ```console            commands after `$ `, a backslash goes on in the next
#                         line; then what they print, output and errors
#   ```LANGUAGE output    what the last command printed
#
# In what is printed, a line `...` stands for any lines, and `...` inside a line
# for any text. A command must succeed, unless the word `fails` follows
# `console`. Any other block is an error: nothing in the document goes untested.
#
#   run_tutorial.py FILE.md FOLDER

import re
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^```(\w*) ?(.*)$")


class Wrong(Exception):
    pass


def blocks(text):
    """(line number, language, the rest of the opening line, content)."""
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if opened is None and match:
            opened = (number, match[1], match[2].strip(), [])
        elif opened is not None and line == "```":
            yield (*opened[:3], "\n".join(opened[3]) + "\n")
            opened = None
        elif opened is not None:
            opened[3].append(line)
    if opened:
        raise Wrong(f"{opened[0]}: this block has no end")


def matches(shown, printed):
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            text = ".*".join(map(re.escape, line.rstrip().split("...")))
            pattern += rf"{text}[ \t]*\n"
    return re.fullmatch(pattern, printed) is not None


def commands(content):
    """[(command, what it shows)] of a console block."""
    found = []
    continued = False
    for line in content.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif continued:
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1] += line + "\n"
        else:
            raise Wrong("text before the first command")
        continued = line.endswith("\\") and (line.startswith("$ ") or continued)
    return found


def compare(shown, printed):
    if not matches(shown, printed):
        raise Wrong(f"shows\n{shown}but the command prints\n{printed}")


def run_document(path, folder):
    """The number of commands that ran."""
    count, printed = 0, ""
    for number, language, rest, content in blocks(path.read_text()):
        try:
            if language == "console" and rest in ("", "fails"):
                for command, shown in commands(content):
                    done = subprocess.run(
                        ["bash", "-o", "pipefail", "-c", command], cwd=folder,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    )
                    printed = done.stdout
                    count += 1
                    if (done.returncode != 0) != (rest == "fails"):
                        raise Wrong(
                            f"'{command}' ends with {done.returncode}:\n{printed}"
                        )
                    if shown:
                        compare(shown, printed)
            elif rest == "output":
                compare(content, printed)
            elif rest and "/" not in rest:
                (folder / rest).write_text(content)
            else:
                raise Wrong("neither a file, nor commands, nor their output")
        except Wrong as wrong:
            raise Wrong(f"{number}: {wrong}") from None
    return count


def main():
    path, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        count = run_document(path, folder)
    except Wrong as wrong:
        print(f"{path}:{wrong}", file=sys.stderr)
        return 1
    print(f"{path.name}: {count} commands")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
