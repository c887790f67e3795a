#!/usr/bin/python3
# Looks for a test of each bucketing rule, for and against it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The document says which rules there are: its headings have their labels (R1, R2,
# ...), its table of policies the names of those, its section of R10 the reasons.
# A test has the labels of what it shows in its name, and `negative_` in front of
# them where it shows what does not happen:
#
#   func.func @R6_frozen_is_gathered(
#   // VECTOR negative_R3_chain: 1 1<a 1<b -> {a} {b} {c}
#   // VECTOR negative_xla_chain: 1 1<a 1<b -> {a} {b} {c}
#
# For each label there must be one of either kind, for each reason an
# `expected-remark` or a CHECK line with it.
#
#   check_bucket_rules.py BucketingRules.md FILE...

import re
import sys
from pathlib import Path

NAME = re.compile(r"func\.func @(\w+)\(|^(?://|#) VECTOR (\w+)", re.M)


def labels_of(document):
    """{label: what it is called in the name of a test}."""
    rules = re.findall(r"\bR\d+\b", "\n".join(re.findall(r"^## .*$", document, re.M)))
    table = re.findall(r"^\| `([\w-]+)` \|", document, re.M)
    # A policy's tests have the first word of its name.
    return {rule: rule for rule in rules} | {p: p.split("-")[0] for p in table}


def reasons_of(document):
    section = re.search(r"^## R10\b.*?(?=^## )", document, re.M | re.S)
    listed = re.search(r"`(other-kind[^`]*)`", section[0]) if section else None
    return listed[1].split() if listed else []


def shown(name):
    """(label, is negative) of all labels in the name of a test."""
    negative = False
    for word in name.split("_"):
        negative |= word == "negative"
        yield word, negative


def main():
    document, files = Path(sys.argv[1]).read_text(), sys.argv[2:]
    labels, reasons = labels_of(document), reasons_of(document)
    if not labels or not reasons:
        sys.exit(f"{sys.argv[1]}: no rules, or no reasons")
    text = "\n".join(Path(file).read_text() for file in files)
    tests = set()
    for in_ir, vector in NAME.findall(text):
        tests.update(shown(in_ir or vector))
    missing = [
        f"{label}: no {kind} test"
        for label, word in labels.items()
        for kind, negative in (("positive", False), ("negative", True))
        if (word, negative) not in tests
    ]
    missing += [
        f"reason {reason}: no test"
        for reason in reasons
        if not re.search(rf"Reason=\"?{reason}\b", text)
    ]
    for line in missing:
        print(line)
    print(f"{len(labels)} rules and policies, {len(reasons)} reasons, {len(missing)} without a test")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
