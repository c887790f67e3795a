#!/usr/bin/python3
# Finds tests that cannot fail: lines that nothing reads.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A misspelt CHECK line is a comment, an expected-error without
# --verify-diagnostics too, and a test whose output goes nowhere passes as long
# as the tool does. In every lit test
#  - each line that looks like a directive of FileCheck has a prefix that a
#    FileCheck of the RUN lines reads, and a suffix that exists;
#  - each prefix of a FileCheck is in the file;
#  - `expected-...` lines have a RUN line that verifies diagnostics.
# Modules in Python
#  - are found by PYTHONPATH, which scripts and lit set, and change no search path;
#  - of the oracle import nothing of ours but the oracle.
#
#   check_test_files.py [FOLDER]      default: the folder of this script, and for
#                                     Python the repository

import re
import sys
from pathlib import Path

SUFFIX = r"(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?"
DIRECTIVE = re.compile(r"^\s*(?://|#|;|)\s*([A-Z][A-Z0-9_-]*(?:\{LITERAL\})?)(\s*):")
LIT_KEYWORDS = {
    "RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "END",
}
EXPECTED = re.compile(r"//\s*expected-(?:error|warning|note|remark)")
FILECHECK = re.compile(r"\bFileCheck\b([^|&;]*)")
LOOKS_LIKE_CHECK = re.compile(
    r"CHECK|-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)$"
)


def run_lines(text):
    """The RUN lines, with lines that end in a backslash put together."""
    joined = []
    open_line = False
    for line in re.findall(r"RUN:(.*)$", text, re.M):
        line = line.strip()
        if open_line:
            joined[-1] += " " + line
        else:
            joined.append(line)
        open_line = line.endswith("\\")
        joined[-1] = joined[-1].removesuffix("\\")
    return joined


def prefixes_of(runs):
    found = set()
    for run in runs:
        for arguments in FILECHECK.findall(run):
            given = re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", arguments)
            found.update(p for group in given for p in group.split(","))
            if not given:
                found.add("CHECK")
    return found


def complaints(text):
    runs = run_lines(text)
    if not runs:
        yield 1, "no RUN line"
    prefixes = prefixes_of(runs)
    known = "|".join(sorted(map(re.escape, prefixes), key=len, reverse=True))
    directive = re.compile(rf"({known}){SUFFIX}$") if known else None
    seen = set()
    for number, line in enumerate(text.splitlines(), 1):
        match = DIRECTIVE.match(line)
        if match and match[1] not in LIT_KEYWORDS:
            read = directive.match(match[1]) if directive else None
            if read and not match[2]:
                seen.add(read[1])
            elif read or LOOKS_LIKE_CHECK.search(match[1]):
                yield number, f"no FileCheck reads '{match[1]}{match[2]}:'"
        if EXPECTED.search(line) and not any("-verify-diagnostics" in r for r in runs):
            yield number, "no RUN line verifies diagnostics"
    for prefix in sorted(prefixes - seen):
        yield 1, f"FileCheck looks for '{prefix}:' lines, and there are none"


SEARCH_PATH = "sys" + ".path"  # in two, or this file would be a complaint
OURS = re.compile(r"\s*(?:from|import) (?:fsdp_test(?!\.oracle\b)|\.\.)")


def python_complaints(path, text):
    is_oracle = "oracle" in path.parts and not path.name.startswith("test_")
    for number, line in enumerate(text.splitlines(), 1):
        if SEARCH_PATH in line:
            yield number, "PYTHONPATH says where modules are"
        if is_oracle and OURS.match(line):
            yield number, "the oracle shares no code with what it judges"


def python_files(folders):
    return sorted(
        path for folder in folders for path in folder.rglob("*")
        if path.is_file() and (path.suffix == ".py" or folder.name == "scripts")
    )


def main():
    here = Path(__file__).resolve().parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    others = [here.parent / n for n in ("bench", "examples", "scripts")]
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".mlir", ".test")
        and "Inputs" not in path.relative_to(folder).parts
    )
    wrong = 0
    for path in files:
        for number, complaint in complaints(path.read_text()):
            print(f"{path}:{number}: {complaint}")
            wrong += 1
    modules = python_files([folder] + (others if folder == here else []))
    for path in modules:
        for number, complaint in python_complaints(path, path.read_text()):
            print(f"{path}:{number}: {complaint}")
            wrong += 1
    print(f"{len(files)} files, {len(modules)} modules, {wrong} complaints")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
