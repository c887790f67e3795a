# What all stages share: what they are given, and how they say what they found.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A stage is a process of its own, so that one that hangs or crashes costs its own
# results and no others:
#
#   python3 -m fsdp_test.gpu_check NAME SETTINGS
#
# It appends its results to a file as it gets them, a line of JSON each:
#
#   {"kind": "check", "name", "ok", "detail"}
#   {"kind": "time", "workload", "what", "microseconds"}
#   {"kind": "fact", "name", "value"}
#   {"kind": "skip", "detail"}              there is nothing to run it with

import ctypes
import json
import time
from dataclasses import asdict, dataclass
from statistics import median

from .driver import DriverError, Gpu, Launch
from .folder import Folder
from .runtime import LIBRARY, Context


class OutOfTime(Exception):
    """The stage's time is up; what it has found is kept."""


class Skip(Exception):
    """The machine lacks what the stage needs."""


@dataclass
class Settings:
    folder: str
    results: str
    deadline: float  # of time.time()
    ptx: bool = False
    small: bool = False  # a few operations
    quick: bool = False  # few repeats, for tests

    @staticmethod
    def read(text):
        return Settings(**json.loads(text))

    def text(self):
        return json.dumps(asdict(self))


class Stage:
    def __init__(self, name, settings):
        self.name, self.settings = name, settings
        self.folder = Folder(settings.folder)
        self._gpu = self._context = None

    # --- results --------------------------------------------------------------

    def _write(self, **result):
        result["stage"] = self.name
        with open(self.settings.results, "a") as file:
            file.write(json.dumps(result) + "\n")

    def check(self, name, ok, detail=""):
        self._write(kind="check", name=name, ok=bool(ok), detail=detail)
        self.log(f"{'ok' if ok else 'FAILED'}: {name}{': ' if detail else ''}{detail}")

    def time(self, workload, what, times):
        """The median counts; the log has the spread."""
        middle = median(times)
        self._write(kind="time", workload=workload, what=what, microseconds=middle)
        self.log(
            f"{workload}, {what}: {middle:.2f} us, {min(times):.2f} to "
            f"{max(times):.2f} of {len(times)}"
        )
        return middle

    def fact(self, name, value):
        self._write(kind="fact", name=name, value=value)
        self.log(f"{name}: {value}")

    def skip(self, detail):
        self._write(kind="skip", detail=detail)
        self.log(f"skipped: {detail}")

    def log(self, text):
        print(f"[{self.name}] {text}", flush=True)

    # --- what stages do -------------------------------------------------------

    def go_on(self):
        """Call between steps of a few seconds at most."""
        if time.time() > self.settings.deadline:
            raise OutOfTime()

    @property
    def gpu(self):
        if not self._gpu:
            self._gpu = Gpu()
        return self._gpu

    def load(self, module):
        """The library of a module's kernels."""
        if self.settings.ptx:
            library = self.gpu.load(self.folder.ptx(module))
        else:
            try:
                library = self.gpu.load(self.folder.image(module))
            except DriverError as error:
                self.log(f"{module.name}: {error}, its PTX instead")
                self.fact("kernels", "the driver refuses the machine code: PTX")
                library = self.gpu.load(self.folder.ptx(module))
        return library

    def launch(self, library, operation, members, old, bucket):
        kernel = self.gpu.kernel(library, operation.kernel)
        return Launch(
            self.gpu, kernel, operation.blocks, operation.threads, members + old, bucket
        )

    def entry(self, module, operation, arguments, results):
        """The launch as an artefact makes it: by its entry and libfsdprt."""
        if not self._context:
            library = self.folder.path / "lib" / LIBRARY
            self._context = Context(library, self.gpu.stream)
        artefact = ctypes.CDLL(str(self.folder.artefact(module)))
        function = operation.function
        return lambda: self._context.run(artefact, function, arguments, results)

    def close(self):
        if self._context:
            self._context.destroy()
        if self._gpu:
            self._gpu.close()
