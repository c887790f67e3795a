#!/usr/bin/python3
# Seeds of the pipelines' fuzzer: every module of the suite, through two pipelines.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   seeds.py FOLDER
#
# The first byte of an input chooses the pipeline (PipelinesFuzzer.cpp has the
# list): `A` is the first one, `M` the thirteenth.

import re
import sys
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent
PIPELINES = "ABCDEFGHIJKLM"
MOST_BYTES = 6000


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    modules = []
    for path in sorted(TEST.rglob("*.mlir")):
        for module in re.split(r"^// -----$", path.read_text(), flags=re.M):
            # What tests expect of it only makes it longer.
            lines = [line for line in module.splitlines() if "//" not in line]
            text = "\n".join(line for line in lines if line.strip()) + "\n"
            if "fsdp." in text and len(text) < MOST_BYTES:
                modules.append(text)
    for number, text in enumerate(modules):
        for shift in (0, 7):
            letter = PIPELINES[(number + shift) % len(PIPELINES)]
            (folder / f"{number}{letter}").write_text(letter + text)
    print(f"{len(modules)} modules")


if __name__ == "__main__":
    main()
