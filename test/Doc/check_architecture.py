#!/usr/bin/python3
# Does the code keep to docs/Architecture.md?
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   check_architecture.py ROOT [--write]
#
# The page has a table of rooms and of what each may include, and a picture.
# Complains about
#  - an include of one of our files that the table does not allow;
#  - a circle of rooms, in the table or in the code;
#  - a public header that only its own room includes, and a private one that
#    another room includes;
#  - an include guard that is not the header's path;
#  - a list of ops of ours outside of lib/Dialect, such as isa<ConcatOp,
#    SplitOp>: it would not know a new op, so an interface has to say what the
#    ops of the list have in common;
#  - a library that registers all of upstream, which is for tools;
#  - a picture that is not what the code gives. --write draws it anew.

import argparse
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- picture -->\n", "<!-- end of the picture -->\n"
# Public headers for embedders: no room of ours has to include them.
FOR_EMBEDDERS = {
    "fsdp/Runtime/Runtime.h",
    "fsdp/Runtime/RuntimeFunctions.def",
    "fsdp/Conversion/ElementwiseToKernels.h",
    "fsdp/Conversion/FsdpToTiles.h",
}


def read_table(page):
    """{room: the rooms that it may include directly}, in the page's order."""
    rooms = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 3:
            rooms[cells[0].strip("| `")] = re.findall(r"`([^`]+)`", cells[2])
    return rooms


def reach(graph):
    """{node: all that can be reached from it}; a circle is an error."""
    reached, open_ = {}, []

    def visit(node):
        if node in reached:
            return reached[node]
        if node in open_:
            circle = open_[open_.index(node):] + [node]
            raise SystemExit("error: a circle of rooms: " + " -> ".join(circle))
        open_.append(node)
        found = set(graph.get(node, ()))
        for other in graph.get(node, ()):
            found |= visit(other)
        open_.pop()
        reached[node] = found
        return found

    for node in graph:
        visit(node)
    return reached


class Code:
    def __init__(self, root, rooms):
        self.root, self.rooms = root, rooms
        suffixes = {".h", ".cpp", ".def", ".c"}
        self.files = sorted(
            path.relative_to(root)
            for folder in ("include", "lib", "tools")
            for path in (root / folder).rglob("*")
            if path.suffix in suffixes
        )
        self.includes = []  # (file, included file)
        known = set(self.files)
        for file in self.files:
            text = (root / file).read_text()
            for name in re.findall(r'#include "([^"]+)"', text):
                places = [
                    file.parent / name, Path("include") / name,
                    Path("lib/Runtime") / name, Path("lib") / "Codegen" / name,
                ]
                found = [place for place in places if place in known]
                if found:
                    self.includes.append((file, found[0]))

    def room(self, file):
        name = str(file)
        if name.startswith("include/fsdp/") and "include/fsdp/Runtime" not in name:
            name = "lib/" + name.removeprefix("include/fsdp/")
        fitting = [room for room in self.rooms if name.startswith(room + "/")]
        return max(fitting, key=len) if fitting else None

    def arrows(self):
        """{room: {other room: (file, included file)}}"""
        found = {room: {} for room in self.rooms}
        for file, other in self.includes:
            source, target = self.room(file), self.room(other)
            if source and target and source != target:
                found[source].setdefault(target, (file, other))
        return found


def picture(arrows):
    reached = reach({room: list(targets) for room, targets in arrows.items()})
    lines = ["```mermaid", "flowchart TD"]
    names = {room: f"r{index}" for index, room in enumerate(arrows)}
    for room, name in names.items():
        lines.append(f'  {name}["{room}"]')
    for room, targets in arrows.items():
        for target in sorted(targets, key=list(arrows).index):
            if any(target in reached[other] for other in targets if other != target):
                continue
            lines.append(f"  {names[room]} --> {names[target]}")
    return "\n".join(lines + ["```", ""])


def list_complaints(root, files):
    """Tests for two or more ops on buckets or units in one list."""
    ops = {
        f"{name}Op"
        for name in re.findall(
            r"^def Fsdp_(\w+)Op : Fsdp_(?:Local|Collective|Reducing|UnitUser)Op<",
            (root / "include/fsdp/Dialect/FsdpOps.td").read_text(), re.M,
        )
    }
    if len(ops) < 9:
        yield "include/fsdp/Dialect/FsdpOps.td: the ops on buckets and units are not found"
    for file in files:
        if "Dialect" in file.parts:
            continue
        text = (root / file).read_text()
        for match in re.finditer(r"(\w+)<([\w\s:,]*)>", text):
            names = {name.strip().split("::")[-1] for name in match[2].split(",")}
            listed = sorted(names & ops)
            is_test = re.match(r"(isa|dyn_cast|cast|IsaPred|Case)", match[1])
            if is_test and len(listed) > 1:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{file}:{line}: {match[1]} lists {', '.join(listed)}: ask an interface"


def complaints(code, rooms):
    allowed = reach(rooms)
    for file in code.files:
        if code.room(file) is None:
            yield f"{file}: is in no room of docs/Architecture.md"
    for room, targets in code.arrows().items():
        for target, (file, other) in targets.items():
            if target not in allowed[room]:
                yield f"{file}: includes {other}, but {room} may not include {target}"
    yield from list_complaints(code.root, code.files)
    for file in code.files:
        text = (code.root / file).read_text() if file.parts[0] != "tools" else ""
        for match in re.finditer(r"\bregisterAll(Dialects|Passes|Extensions)\b", text):
            yield f"{file}: calls {match[0]}, but what a library needs it names"
    # Public means that somebody else includes it, directly or by such a header.
    from_outside = {
        other for file, other in code.includes if code.room(file) != code.room(other)
    }
    grown = True
    while grown:
        more = {other for file, other in code.includes if file in from_outside}
        grown = not more <= from_outside
        from_outside |= more
    for file in code.files:
        if file.suffix != ".h":
            continue
        is_public = file.parts[0] == "include"
        if is_public and file not in from_outside:
            if str(file.relative_to("include")) not in FOR_EMBEDDERS:
                yield f"{file}: only its own room includes it, so it belongs beside the sources"
        if not is_public and file in from_outside and "Runtime" not in file.parts:
            yield f"{file}: another room includes it, so it belongs in include/fsdp"
        path = file.relative_to("include") if is_public else Path("fsdp") / file
        guard = re.sub(r"\W", "_", str(path)).upper()
        text = (code.root / file).read_text()
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield f"{file}: the include guard is not {guard}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    path = options.root / "docs" / "Architecture.md"
    page = path.read_text()
    rooms = read_table(page)
    if len(rooms) < 10:
        sys.exit(f"error: {path} has no table of rooms")
    for room in {room for others in rooms.values() for room in others} - set(rooms):
        sys.exit(f"error: {path}: {room} may be included, but is no row of the table")
    code = Code(options.root, rooms)
    found = list(complaints(code, rooms))
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    drawn = before + BEGIN + picture(code.arrows()) + END + after
    if options.write:
        path.write_text(drawn)
    elif drawn != page:
        found.append(f"{path}: the picture is stale, --write draws it anew")
    for complaint in found:
        print(f"error: {complaint}")
    print(f"{len(code.files)} files, {len(rooms)} rooms, {len(found)} complaints")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
