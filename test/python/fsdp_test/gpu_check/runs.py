# Whole steps on the device: fsdp-run, and the host's results to compare with.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import importlib.util
import os
import subprocess
import time
from pathlib import Path

from .stage import OutOfTime, Skip


def nccl_library():
    """Where libnccl is: "" for where the loader looks, a path, or None."""
    given = os.environ.get("FSDPRT_LIBNCCL")
    if given:
        return given
    cache = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    if "libnccl.so.2" in cache:
        return ""
    wheels = importlib.util.find_spec("nvidia")  # PyTorch's bring one
    for folder in wheels.submodule_search_locations if wheels else []:
        found = Path(folder, "nccl", "lib", "libnccl.so.2")
        if found.exists():
            return str(found)
    return None


def results_of(text):
    """The lines that every device must agree on, without times and devices."""
    return [line for line in text.splitlines() if " checksum=" in line]


def compare(stage, name, expected, printed):
    want, have = results_of(expected), results_of(printed)
    for line, other in zip(want, have):
        if line != other:
            stage.check(name, False, f"expected '{line}', got '{other}'")
            return
    stage.check(name, want and len(want) == len(have), f"{len(want)} tensors")


def execute(stage, run, comm, environment):
    folder = stage.folder.path
    name = f"{run['entry']} of {run['ranks']} ranks, --comm={comm}"
    command = [
        folder / "bin" / "fsdp-run", folder / "runs" / run["artefact"],
        "--device=cuda", f"--comm={comm}", f"--entry={run['entry']}", "--fill=1",
        "--timeout=20",
    ]
    left = stage.settings.deadline - time.time()
    if left < 1:
        raise OutOfTime()
    try:
        done = subprocess.run(
            [str(c) for c in command], capture_output=True, text=True, timeout=left,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired:
        stage.check(name, False, f"no end after {left:.0f} s")
        raise OutOfTime() from None
    except OSError as error:
        stage.check(name, False, str(error))
        return
    stage.log(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        stage.check(name, False, f"exit code {done.returncode}: {last}")
        return
    expected = Path(folder, "runs", run["expected"]).read_text()
    compare(stage, name, expected, done.stdout)


def runtime(stage):
    """Ranks that are threads and share the device."""
    for run in stage.folder.runs():
        execute(stage, run, "local", {})


def nccl(stage):
    """A world of one: the whole host path, and NCCL's kernels."""
    library = nccl_library()
    if library is None:
        raise Skip("no libnccl.so.2")
    stage.fact("NCCL", library or "of the system")
    environment = {"FSDPRT_LIBNCCL": library} if library else {}
    for run in stage.folder.runs():
        if run["ranks"] == 1:
            execute(stage, run, "nccl", environment)
