#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Runs a command on two "hosts" that only a network connects.

    two_hosts.py --check            whether this machine allows it: exit code
    two_hosts.py COMMAND ARG...     on host fsdp-a

The hosts are network namespaces with a cable between them, and names of their
own, so that programs do not take them for one. The command's environment has
FSDP_HOST_A and FSDP_HOST_B, their addresses, and FSDP_AGENT, which takes a
host's address and a command line as ssh does.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

A, B = "10.77.0.1", "10.77.0.2"
NAMESPACES = ["unshare", "--net", "--uts"]


def run(*command):
    subprocess.run(command, check=True)


def inside(command):
    """In the namespaces of host A: lays the cable to a second host."""
    host_b = subprocess.Popen(
        [*NAMESPACES, "--fork", "--kill-child", "sh", "-c", "echo ready; exec sleep 300"],
        stdout=subprocess.PIPE,
    )
    host_b.stdout.readline()
    # The child of unshare is the one in the new namespaces.
    children = Path(f"/proc/{host_b.pid}/task/{host_b.pid}/children").read_text()
    pid = children.split()[0]
    enter = ["nsenter", "--target", pid, "--net", "--uts"]
    try:
        run("hostname", "fsdp-a")
        run(*enter, "hostname", "fsdp-b")
        run("ip", "link", "add", "to_b", "type", "veth", "peer", "name", "to_a")
        run("ip", "link", "set", "to_a", "netns", pid)
        for prefix, device, address in ([], "to_b", A), (enter, "to_a", B):
            run(*prefix, "ip", "address", "add", f"{address}/24", "dev", device)
            run(*prefix, "ip", "link", "set", device, "up")
            run(*prefix, "ip", "link", "set", "lo", "up")
        with TemporaryDirectory() as folder:
            agent = Path(folder) / "agent"
            agent.write_text(
                "#!/bin/sh\nhost=$1; shift\n"
                f'case $host in {A}|fsdp-a) exec sh -c "$*";; esac\n'
                f'exec {" ".join(enter)} sh -c "$*"\n'
            )
            agent.chmod(0o755)
            return subprocess.run(
                command,
                env={**os.environ, "FSDP_HOST_A": A, "FSDP_HOST_B": B, "FSDP_AGENT": str(agent)},
            ).returncode
    finally:
        host_b.kill()
        host_b.wait()


def main():
    if sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2:]))
    command = ["true"] if sys.argv[1] == "--check" else sys.argv[1:]
    # Root needs no namespace of users, others do.
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    sys.exit(
        subprocess.run(
            [*NAMESPACES, *user, sys.executable, __file__, "--inside", *command]
        ).returncode
    )


if __name__ == "__main__":
    main()
