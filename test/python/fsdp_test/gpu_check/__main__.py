# One stage: python3 -m gpu_check NAME SETTINGS
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import importlib
import sys
import traceback

from .stage import OutOfTime, Settings, Skip, Stage

STAGES = {  # name: its module
    "device": "device", "correctness": "correctness", "graph": "correctness",
    "timing": "timing", "pytorch": "pytorch", "runtime": "runs", "nccl": "runs",
    "memcheck": "tools", "profile": "tools", "one_launch": "tools",
}
OUT_OF_TIME = 3


def main():
    name, settings = sys.argv[1], Settings.read(sys.argv[2])
    stage = Stage(name, settings)
    try:
        module = importlib.import_module(f".{STAGES[name]}", __package__)
        getattr(module, name)(stage)
        stage.close()
    except Skip as skip:
        stage.skip(str(skip))
    except OutOfTime:
        return OUT_OF_TIME
    except Exception as error:  # whatever it is, it belongs into the report
        traceback.print_exc()
        stage.check(f"{name} ends", False, f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
