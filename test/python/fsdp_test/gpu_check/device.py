# What the device is, and how fast its memory is.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import platform
import shutil
import subprocess
from statistics import median

from .timing import Blocker, Random, in_graph, on_stream

SIZES = [300 << 20, 4 << 30]
QUERY = "clocks.sm,clocks.mem,temperature.gpu,power.draw,ecc.mode.current"


def _nvidia_smi():
    tool = shutil.which("nvidia-smi")
    if not tool:
        return "no nvidia-smi"
    done = subprocess.run(
        [tool, f"--query-gpu={QUERY}", "--format=csv,noheader", "--id=0"],
        capture_output=True, text=True, timeout=20,
    )
    return f"{QUERY}: {done.stdout.strip() or done.stderr.strip()}"


def device(stage):
    gpu = stage.gpu
    stage.fact("device", gpu.name)
    capability = (gpu.attribute("capability_major"), gpu.attribute("capability_minor"))
    stage.fact(
        "chip", f"sm_{capability[0]}{capability[1]}, "
        f"{gpu.attribute('multiprocessors')} multiprocessors, "
        f"{gpu.attribute('l2_bytes') / 2**20:.0f} MiB of L2, "
        f"{gpu.free_bytes / 2**30:.1f} GiB free",
    )
    stage.fact("driver", f"CUDA {gpu.driver_version}")
    stage.fact("host", f"{platform.platform()}, Python {platform.python_version()}")
    stage.check(
        "the device is a Hopper", capability == (9, 0),
        f"sm_{capability[0]}{capability[1]}, compiled for sm_90",
    )
    blocker = Blocker(gpu)
    random = Random(gpu)
    for size in SIZES:
        size = min(size, int(gpu.free_bytes * 0.1))
        address = gpu.allocate(2 * size)
        random.fill(address, 2 * size)
        for what, moved, call in (
            ("copy", 2 * size, lambda: gpu.copy(address + size, address, size)),
            ("fill", size, lambda: gpu.set(address, 0x5A, size)),
        ):
            stage.go_on()
            for way, times in (
                ("graph", in_graph(stage, [call], moved)),
                ("stream", on_stream(stage, [call], blocker)),
            ):
                stage.fact(
                    f"{what} of {size / 2**20:.0f} MiB, {way}",
                    f"{moved / median(times) / 1e6:.3f} TB/s",
                )
        gpu.free(address)
    random.free()
    blocker.free()
    stage.fact("nvidia-smi", _nvidia_smi())
