# Where a kernel's class without predicates is in its PTX.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception


def vector_blocks(kernel):
    """(basic block, its accesses of global memory) wherever those are vectors
    without a predicate. Blocks without any access are among them."""
    for block in kernel.blocks:
        memory = [
            i for i in block.instructions
            if i.opcode.startswith(("ld.global", "st.global"))
        ]
        if all(".v" in i.opcode and not i.predicate for i in memory):
            yield block, memory
