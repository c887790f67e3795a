# Compiles a program, runs it on all ranks and compares every element.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import subprocess
import sys
from pathlib import Path

import numpy as np

from fsdp_test.oracle import dtypes, tensor_file
from fsdp_test.oracle.dtypes import dtype


def tensor(t, values):
    """Numbers, each of which the dtype holds exactly, as a tensor of a file."""
    t = dtype(t)
    array = np.array(values, np.int64 if not t.floating else np.float64)
    carrier = array.reshape(-1).astype(array.dtype if t.floating else t.carrier)
    if t.floating:
        narrowed = dtypes.narrow(carrier, t)
        assert np.array_equal(dtypes.widen(narrowed, t), carrier), (t, values)
        carrier = narrowed
    return t, array.shape, carrier


class Suite:
    """The programs of one test; they are run at both levels of optimisation.

    NAME FOLDER-OF-THE-TOOLS FOLDER-TO-WORK-IN [OPTION-OF-FSDP-COMPILE...]
    """

    def __init__(self):
        self.tools, self.folder = map(Path, sys.argv[1:3])
        self.options = sys.argv[3:]
        self.on_gpu = "--target=cuda" in self.options and "--emulate" not in self.options
        self.wrong = self.checked = 0

    def call(self, tool, *arguments):
        command = [str(self.tools / tool), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")

    def run(self, name, ranks, text, inputs, expected, entry=None, optimize=""):
        """`inputs(rank)` and `expected(rank)` are {tensor: (dtype, values)}.
        Returns what came out: per rank {tensor: (dtype, values)}."""
        source = self.folder / f"{name}.mlir"
        source.write_text(text)
        for rank in range(ranks):
            tensor_file.write(
                self.folder / f"{name}.in.{rank}.safetensors",
                {n: tensor(*value) for n, value in inputs(rank).items()},
            )
        results = []
        for level in (0, 2):
            artefact = f"{name}.{level}.so"
            self.call(
                "fsdp-compile", source.name, f"--opt-level={level}",
                *([f"--optimize={optimize}"] if optimize else []),
                *self.options, "-o", artefact,
            )
            self.call(
                "fsdp-run", f"./{artefact}", f"--ranks={ranks}",
                *([f"--entry={entry}"] if entry else []),
                *(["--device=cuda"] if self.on_gpu else []),
                f"--in={name}.in.{{rank}}.safetensors",
                f"--out={name}.out.{{rank}}.safetensors",
            )
            results = [
                tensor_file.read(self.folder / f"{name}.out.{rank}.safetensors")
                for rank in range(ranks)
            ]
            for rank, result in enumerate(results):
                self.compare(f"{name} {optimize} level {level}, rank {rank}",
                             result, expected(rank))
        return [
            {
                n: (t.name, dtypes.widen(array, t).reshape(shape))
                for n, (t, shape, array) in result.items() if t.floating
            }
            for result in results
        ]

    def compare(self, where, result, expected):
        if set(result) != set(expected):
            self.complain(f"{where}: results {sorted(result)}, expected {sorted(expected)}")
            return
        for name, value in expected.items():
            t, shape, want = tensor(*value)
            got_t, got_shape, got = result[name]
            self.checked += 1
            if (got_t, got_shape) != (t, shape):
                self.complain(f"{where}: {name} is {got_shape} of {got_t}, "
                              f"expected {shape} of {t}")
                continue
            differences = dtypes.differences(want, got, t)
            if differences.size:
                i = differences[0]
                self.complain(f"{where}: element {i} of {name} is "
                              f"{dtypes.show(got[i], t)}, expected "
                              f"{dtypes.show(want[i], t)}")

    def complain(self, text):
        print(text)
        self.wrong += 1

    def finish(self):
        print(f"{self.checked} tensors, {self.wrong} wrong")
        sys.exit(self.wrong != 0)
