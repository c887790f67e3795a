# A GPU that is a fake: it takes an artefact's PTX, and interprets it if asked to.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import os
import sys

INTERPRETER = f"exec {sys.executable} -m fsdp_test.ptx.server"


def without_toolkit(folder):
    """An environment in which fsdp-compile finds no toolkit, which would turn PTX
    into a chip's code: the first ptxas decides, and this one has no neighbours."""
    ptxas = folder / "no-toolkit" / "ptxas"
    ptxas.parent.mkdir(exist_ok=True)
    ptxas.write_text("#!/bin/false\n")
    ptxas.chmod(0o755)
    return {"PATH": f"{ptxas.parent}{os.pathsep}{os.environ['PATH']}"}


def interpreted(tools, folder):
    """An environment in which kernels are interpreted."""
    return {
        **without_toolkit(folder),
        "FSDPRT_LIBCUDA": str(tools.parent / "lib" / "libfsdp_fake_gpu.so"),
        "FSDP_FAKE_INTERPRETER": INTERPRETER,
    }
