# The interpreter's server, with kernels that go wrong.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   bit        one bit of what was written first is another one
#   unwritten  what was written last is as it was
#   guard      a byte beyond what was written last is written
#   input      a byte of an input is written
#   hang       a launch never ends

import sys
import time

import numpy as np
from fsdp_test.ptx import server

FAULT = sys.argv[1]
BEYOND = 64
correct = server.run


def run(module, kernel, blocks, threads, parameters, places):
    if FAULT == "hang":
        time.sleep(3600)
    results = correct(module, kernel, blocks, threads, parameters, places)
    contents = []
    for (base, (_, before)), after in zip(places.items(), results):
        before, after = np.frombuffer(before, np.uint8), np.frombuffer(after, np.uint8)
        after = after.copy()
        written = np.flatnonzero(before != after)
        if not written.size:
            pass
        elif FAULT == "bit":
            after[written[0]] ^= 0x40
        elif FAULT == "unwritten":
            after[written[-1]] = before[written[-1]]
        elif FAULT == "guard":
            after[written[-1] + BEYOND] ^= 0xFF
        elif FAULT == "input":
            first, last = (parameters[i] - base for i in (0, -1))
            after[last if first in written else first] ^= 0xFF
        contents.append(after.tobytes())
    return contents


server.run = run
server.main()
