#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Starts one process per rank without MPI, as a person or torchrun would.

    launch_ranks.py RANKS HOW COMMAND...

HOW is `port` (--rank and --rendezvous=HOST:PORT), `file` (--rank and a file in
this folder), `torchrun` or `slurm` (their variables). The output of all ranks
follows each other, rank by rank; the exit code is the largest one.
"""

import os
import socket
import subprocess
import sys
import tempfile


def free_port():
    """A port that is free and has a free one behind it."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


def main():
    ranks, how, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    port = free_port()
    path = tempfile.mktemp(prefix="rendezvous-", dir=os.getcwd())
    processes = []
    for rank in range(ranks):
        flags, variables = [f"--rank={rank}", f"--local-rank={rank}"], {}
        master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        if how == "port":
            flags.append(f"--rendezvous=127.0.0.1:{port}")
        elif how == "file":
            flags.append(f"--rendezvous=file:{path}")
        elif how == "torchrun":
            flags = []
            variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), **master}
        elif how == "slurm":
            flags = []
            variables = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks), "SLURM_LOCALID": str(rank), **master}
        processes.append(
            subprocess.Popen(
                [*command, *flags], env={**os.environ, **variables},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
        )
    for process in processes:
        print(process.communicate()[0], end="")
    sys.exit(max(process.returncode for process in processes))


if __name__ == "__main__":
    main()
