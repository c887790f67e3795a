# The folder that is carried to the device: what is in it, and how it is read.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   index.json           what was compiled, of which commit, with which tools
#   gpu-check, python/   this program, with the oracle
#   modules/NAME.image   machine code as an artefact holds it: a fat binary, or
#                        PTX; NAME.ptx.gz is PTX in any case, for drivers that are
#                        older than the machine code; NAME.mlir is the module, in
#                        buffer form
#   runs/*.so, *.txt     artefacts of whole steps; what they print on the host
#   bin/, lib/           fsdp-run and libfsdprt, which need the C library alone

import gzip
import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Operation:
    """One local op: its launch, and the bytes that it moves."""

    function: str
    kernel: str
    blocks: tuple
    threads: int
    packs: bool  # members into the bucket; else out of it
    adds: bool  # to existing shards, which are operands too
    members: list  # bytes of each
    bucket: int  # bytes
    read: int  # the least
    written: int

    @property
    def moved(self):
        return self.read + self.written


@dataclass
class Module:
    name: str
    kind: str  # "workload", "random" or "exhaustive"
    operations: list


class Folder:
    def __init__(self, path):
        self.path = Path(path)
        self.index = json.loads((self.path / "index.json").read_text())
        self.modules = [
            Module(m["name"], m["kind"], [Operation(**o) for o in m["operations"]])
            for m in self.index["modules"]
        ]

    def module(self, name):
        return next((m for m in self.modules if m.name == name), None)

    def image(self, module):
        """The bytes for cuLibraryLoadData."""
        return (self.path / "modules" / f"{module.name}.image").read_bytes()

    def ptx(self, module):
        path = self.path / "modules" / f"{module.name}.ptx.gz"
        return gzip.decompress(path.read_bytes())

    def text(self, module):
        return (self.path / "modules" / f"{module.name}.mlir").read_text()

    def runs(self):
        return self.index["runs"]


def write_index(path, about, modules, runs):
    index = dict(about)
    index["modules"] = [asdict(m) for m in modules]
    index["runs"] = runs
    Path(path, "index.json").write_text(json.dumps(index, indent=1) + "\n")
