# What a case is compiled for, and what it then runs on.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A target has two functions: `compile` makes an artefact with the tools of a
# CaseRun, `run_options` and `environment` say how fsdp-run takes it.

import os
from pathlib import Path

PTX = Path(__file__).resolve().parent.parent / "ptx"


class Host:
    """The machine that the tools run on."""

    run_options = []

    def __init__(self, *flags):
        self.flags = flags

    def environment(self, case_run):
        return {}

    def compile(self, case_run, source, output, options):
        case_run.succeed("fsdp-compile", source, *self.flags, *options, "-o", output)


class Interpreter:
    """A GPU that is a fake: it runs the artefact's PTX in test/ptx."""

    run_options = ["--device=cuda"]

    def environment(self, case_run):
        # A toolkit would turn the PTX into a chip's code. One that lacks a tool
        # is none, and the first one that is found decides.
        folder = case_run.folder / "no-toolkit"
        folder.mkdir(exist_ok=True)
        ptxas = folder / "ptxas"
        ptxas.write_text("#!/bin/false\n")
        ptxas.chmod(0o755)
        fake = str(case_run.tools.parent / "lib" / "libfsdp_fake_gpu.so")
        return {
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "FSDPRT_LIBCUDA": fake,
            "FSDP_FAKE_INTERPRETER": f"exec /usr/bin/python3 {PTX / 'server.py'}",
        }

    def compile(self, case_run, source, output, options):
        flags = ["--target=cuda", *options]
        case_run.succeed("fsdp-compile", source, *flags, "-o", output)


TARGETS = {
    "cpu": Host("--target=cpu"),
    "emulate": Host("--target=cuda", "--emulate"),
    "interpret": Interpreter(),
}
