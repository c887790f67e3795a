#!/usr/bin/python3
# Looks for each message of docs/Errors.md in the test that the document names.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A lit test must expect the message, in an `expected-...` line or in a line that
# FileCheck reads; a C++ test has it in its strings, which may be cut.
#
#   check_errors.py Errors.md ROOT

import re
import sys
from pathlib import Path


def expected_text(path):
    """What the test expects, without what cuts it into lines."""
    text = path.read_text()
    if path.suffix == ".cpp":
        return re.sub(r'"\s*"', "", text)
    return "\n".join(
        line for line in text.splitlines()
        if "expected-" in line or re.match(r"\s*(//|#)?\s*[A-Z][A-Z0-9_-]*:", line)
    )


def main():
    document, root = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in document.splitlines()
        if line.startswith("| ") and not line.startswith(("| refused", "| ---"))
    ]
    wrong = messages = 0
    for row in rows:
        if len(row) != 3:
            print(f"not three columns: {row}")
            wrong += 1
            continue
        refused, shown, test = row
        path = root / test
        text = expected_text(path) if path.is_file() else ""
        for message in re.findall(r"`([^`]+)`", shown):
            messages += 1
            if message not in text:
                print(f"{refused}: {test} does not expect `{message}`")
                wrong += 1
    print(f"{len(rows)} errors, {messages} messages, {wrong} wrong")
    return 1 if wrong or not messages else 0


if __name__ == "__main__":
    sys.exit(main())
