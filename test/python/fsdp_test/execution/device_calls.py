# What a program asks of a GPU and of NCCL, on fakes of both that record it.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.execution.device_calls BUILD FOLDER MODULE RANKS ENTRY...
#
# Compiles MODULE for a GPU and runs each ENTRY with one process per rank. All
# ranks must have made equal calls, in number, order, counts and dtypes; prints
# the launches and collectives of one of them.

import os
import subprocess
import sys
from pathlib import Path

from fsdp_test.fake_gpu import without_toolkit
from fsdp_test.paths import ROOT


def records_of(build, folder, artefact, ranks, entry):
    """One record per rank. Nothing computes and nothing moves."""
    fake = str(build / "lib" / "libfsdp_fake_gpu.so")
    environment = {
        **os.environ, "FSDPRT_LIBCUDA": fake, "FSDPRT_LIBNCCL": fake,
        "FSDP_FAKE_NO_DATA": "1", "FSDP_FAKE_RECORD": f"{folder}/{entry}.record.",
    }
    for old in folder.glob(f"{entry}.record.*"):
        old.unlink()
    subprocess.run(
        [
            sys.executable, ROOT / "test/Tools/fsdp-run/Inputs/launch_ranks.py",
            str(ranks), "file", build / "bin" / "fsdp-run", artefact,
            "--device=cuda", "--comm=nccl", f"--entry={entry}", "--fill=1",
        ],
        check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
    )
    return [path.read_text() for path in folder.glob(f"{entry}.record.*")]


def main():
    build, folder, module = (Path(argument) for argument in sys.argv[1:4])
    ranks, entries = int(sys.argv[4]), sys.argv[5:]
    folder.mkdir(parents=True, exist_ok=True)
    artefact = folder / "gpu.so"
    subprocess.run(
        [build / "bin" / "fsdp-compile", module, "--target=cuda", "-o", artefact],
        check=True, env={**os.environ, **without_toolkit(folder)}, stderr=subprocess.DEVNULL,
    )
    for entry in entries:
        records = records_of(build, folder, artefact, ranks, entry)
        if len(records) != ranks:
            sys.exit(f"{entry}: {len(records)} records, expected {ranks}")
        if len(set(records)) != 1:
            sys.exit(f"{entry}: ranks made different calls")
        print(f"{entry}: {ranks} equal records")
        for line in records[0].splitlines():
            if line.startswith(("launch", "nccl")):
                print(f"  {line}")


if __name__ == "__main__":
    main()
