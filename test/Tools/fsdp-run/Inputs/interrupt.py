#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Starts a command, interrupts it, and prints its exit code and its errors.

    interrupt.py SIGNAL COMMAND...         once it has slept for a while
    interrupt.py SIGNAL:FILE COMMAND...    once FILE has appeared
"""

import os
import signal
import subprocess
import sys
import time


def main():
    name, _, file = sys.argv[1].partition(":")
    process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() < begin + 60:
        time.sleep(0.05)
        if os.path.exists(file) if file else time.monotonic() > begin + 1:
            break
    process.send_signal(getattr(signal, name))
    errors = process.communicate(timeout=60)[1]
    print(f"exit code {process.returncode}")
    sys.stdout.write(errors.decode())


if __name__ == "__main__":
    main()
