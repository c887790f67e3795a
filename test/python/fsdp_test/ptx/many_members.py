# Ops whose addresses do not fit the parameters of a kernel in the oldest PTX.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.many_members
#
# A gather and a sum into existing shards, of as many members as PTX 8.0 has room
# for, and of one more: then the PTX is 8.1, or, if 8.0 was asked for, there is a
# second launch. The interpreter refuses more parameters than the version allows.

import re

from .compiler import compile_module
from .execution import Placement, execute
from .interpreter import PtxError, parse
from .run_kernels import launches_by_op
from .workloads import Workload


def version(ptx):
    return re.search(r"\.version (\S+)", ptx)[1]


def run(op, count, adds=False, features=None):
    members = [((5, 3), "f32")] * count
    text = Workload(op, members, "f32", adds=adds).text()
    compiled = compile_module(text, features=features)
    module = parse(compiled.ptx)
    for number, (local, launches) in enumerate(launches_by_op(compiled)):
        execute(module, launches, Placement.aligned(local), number)
    print(
        f"{op} of {count}: PTX {version(compiled.ptx)}, {len(launches)} launches, "
        "all right"
    )
    return compiled.ptx


def main():
    for op, most, adds in (("concat", 543, False), ("split", 271, True)):
        run(op, most, adds)
        ptx = run(op, most + 1, adds)
        run(op, most + 1, adds, features="+ptx80")
        try:
            parse(ptx.replace(".version 8.1", ".version 8.0"))
        except PtxError as error:
            print(error)


if __name__ == "__main__":
    main()
