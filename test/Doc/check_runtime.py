#!/usr/bin/python3
# Everything that a user of the runtime can call or set is named in its document.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   check_runtime.py ROOT
#
# Functions and statuses come from the headers, variables of the environment from
# the library, options from fsdp-run.

import re
import sys
from pathlib import Path


def names(root):
    """[(what it is, name)]"""
    include = root / "include/fsdp/Runtime"
    header = (include / "Runtime.h").read_text()
    calls = (include / "RuntimeFunctions.def").read_text()
    for name in re.findall(r"FSDPRT_EXPORT \w[\w *]*?\b(fsdprt\w+)\(", header):
        yield "function", name
    for name in re.findall(r"^FSDPRT_CALL\((\w+),", calls, re.M):
        yield "function", name
    statuses = re.search(r"enum fsdprtStatusCode \{(.*?)\}", header, re.S)[1]
    for name in re.findall(r"(FSDPRT_\w+) =", statuses):
        yield "status", name
    for file in (root / "lib/Runtime").rglob("*.cpp"):
        for name in re.findall(r'getenv\("(\w+)"\)', file.read_text()):
            yield "variable", name
    discovery = (root / "lib/Runtime/World/RankDiscovery.cpp").read_text()
    for name in re.findall(r'"([A-Z][A-Z0-9_]{3,})"', discovery):
        yield "variable", name
    tool = (root / "tools/fsdp-run/fsdp-run.cpp").read_text()
    for name in re.findall(r'cl::(?:opt|list)<[^>]*>\s+\w+\(\s*"([\w-]+)"', tool):
        yield "option", f"--{name}"


def main():
    root = Path(sys.argv[1])
    text = (root / "docs/Runtime.md").read_text()
    found = list(dict.fromkeys(names(root)))
    missing = [(what, name) for what, name in found if name not in text]
    for what, name in missing:
        print(f"docs/Runtime.md does not name the {what} {name}", file=sys.stderr)
    kinds = sorted({what for what, _ in found})
    counts = ", ".join(f"{sum(w == k for w, _ in found)} {k}s" for k in kinds)
    print(f"Runtime.md: {counts.replace('statuss', 'statuses')}")
    return 1 if missing or len(kinds) < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
