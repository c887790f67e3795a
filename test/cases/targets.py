# What a case is compiled for, and what it then runs on.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A target has two functions: `compile` makes an artefact with the tools of a
# CaseRun, `run_options` and `environment` say how fsdp-run takes it.

import os
import re
from pathlib import Path

PTX = Path(__file__).resolve().parent.parent / "ptx"
REFUSAL = "has no lowering to cuda: it runs on the host"


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
        done = case_run.call("fsdp-compile", source, *flags, "-o", output)
        if done.returncode and REFUSAL in done.stderr:
            self.compile_with_host_ops(case_run, source, output, options)
        elif done.returncode:
            case_run.fail("fsdp-compile", done)

    def compile_with_host_ops(self, case_run, source, output, options):
        """Casts and sums around our ops run on the host, so a GPU's artefact
        cannot have them. The fake's memory is the host's: the same pipeline
        without that check, so that the kernels beside them run here too."""
        words = {"opt-level": "2"}
        for option in options:
            key, _, value = option.removeprefix("--").partition("=")
            pairs = value.split() if key == "optimize" else [f"{key}={value}"]
            words.update(pair.split("=") for pair in pairs)
        optimize = " ".join(f"{k}={v}" for k, v in words.items())
        case_run.succeed(
            "fsdp-opt", source, f"--fsdp-optimize={optimize}", "-o", "optimised.mlir"
        )
        dumped = case_run.call(
            "fsdp-opt", "optimised.mlir", "--fsdp-to-cuda", "--dump-pass-pipeline"
        ).stderr
        pipeline = re.search(r"^builtin\.module\(.*?^\)$", dumped, re.M | re.S)[0]
        shortened = re.sub(r"fsdp-verify-device-memory(\{.*?\})?,", "", pipeline)
        if shortened == pipeline:
            raise ValueError("fsdp-to-cuda has no fsdp-verify-device-memory")
        cache = (case_run.tools.parent / "CMakeCache.txt").read_text()
        lit = re.search(r"^LLVM_EXTERNAL_LIT:\w+=(.*)$", cache, re.M)[1]
        llvm = {"tools": Path(lit).parent}
        case_run.succeed(
            "fsdp-opt", "optimised.mlir", f"--pass-pipeline={shortened}",
            "-o", "llvm.mlir",
        )
        case_run.succeed(
            "mlir-translate", "--mlir-to-llvmir", "llvm.mlir", "-o", "case.ll", **llvm
        )
        case_run.succeed(
            "llc", "-filetype=obj", "-relocation-model=pic", "-mcpu=x86-64-v3",
            "-fp-contract=off", "case.ll", "-o", "case.o", **llvm,
        )
        runtime = case_run.tools.parent / "lib" / "libfsdprt.so"
        case_run.succeed(
            "cc", "-shared", "-o", output, "case.o", runtime, "-lm", tools="/usr/bin"
        )


TARGETS = {
    "cpu": Host("--target=cpu"),
    "emulate": Host("--target=cuda", "--emulate"),
    "interpret": Interpreter(),
}
