# What a case is compiled for, and what it then runs on.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A target has two functions: `compile` makes an artefact with the tools of a
# CaseRun, `run_options` and `environment` say how fsdp-run takes it.

from fsdp_test import fake_gpu


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
    """A GPU that is a fake: it runs the artefact's PTX in an interpreter."""

    run_options = ["--device=cuda"]

    def environment(self, case_run):
        return fake_gpu.interpreted(case_run.tools, case_run.folder)

    def compile(self, case_run, source, output, options):
        flags = ["--target=cuda", *options]
        case_run.succeed("fsdp-compile", source, *flags, "-o", output)


TARGETS = {
    "cpu": Host("--target=cpu"),
    "emulate": Host("--target=cuda", "--emulate"),
    "interpret": Interpreter(),
}
