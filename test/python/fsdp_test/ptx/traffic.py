# What the kernels of a module move: sectors per request, bytes, instructions.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.ptx.traffic [--unchecked] [--most-over=PERCENT] [--one-launch]
#              [--equal-work=PERCENT] [--ideal] [--together=BLOCKS] FILE...
#
# Prints, per op, the sectors of 32 bytes that every warp-level request touches,
# their sum against the least that the op could move, and warp-level instructions
# per byte. The sum counts a sector for every request that touches it, and the
# table of tiles once: all blocks read it, and it stays in the caches. What is read
# is also counted as if BLOCKS blocks at a time ran together and read each sector
# once. Data is compared with the oracle unless --unchecked.
#
# --most-over: fail if traffic is more than PERCENT over the minimum
# --one-launch: fail if an op has another number of launches than one
# --ideal: fail if a request of a full tile, the class without predicates, touches
#   more sectors than its bytes need, or if no tile is full
# --equal-work: fail if instructions per byte of two files differ by more

import argparse
import sys
from pathlib import Path

from .compiler import compile_module
from .execution import Placement, execute
from .full_tiles import vector_blocks
from .interpreter import Counts, parse
from .interpreter import machine
from .run_kernels import launches_by_op


def least_bytes(op):
    """(read, written) if every byte that matters moved once."""
    members = sum(
        op.member_elements(i) * t.size for i, t in enumerate(op.member_dtypes)
    )
    if op.packs:
        return members, op.rows * op.layout.row_bytes
    segments = sum(
        op.member_elements(i) * t.size for i, t in enumerate(op.layout.dtypes)
    )
    return segments + (members if op.adds else 0), members


def full_tile_lines(kernel):
    """Lines of the memory instructions of the class without predicates: of every
    block that loads and stores several vectors, and nothing else."""
    lines = set()
    for _, memory in vector_blocks(kernel):
        loads = sum(i.opcode.startswith("ld") for i in memory)
        if loads > 1 and len(memory) - loads > 1:
            lines |= {i.line for i in memory}
    return lines


def full_tiles(launches, module, counts):
    """(requests, sectors, least sectors) of full tiles."""
    lines = set()
    for launch in launches:
        lines |= full_tile_lines(module.kernels[launch.kernel])
    found = [r for line, r in counts.requests.items() if line in lines]
    return (
        sum(r.warps for r in found),
        sum(r.sectors for r in found),
        sum(r.bytes for r in found) // 32,
    )


def report(op, launches, module, counts):
    """Prints the report; returns (traffic / minimum, instructions per byte)."""
    read, written = least_bytes(op)
    least = read + written
    tables = sum(module.globals[name].size for name in module.globals)
    print(f"{op}: {len(launches)} launches, {counts.blocks} blocks")
    by_opcode = {}
    for request in counts.requests.values():
        sums = by_opcode.setdefault(request.opcode, [0, 0, 0])
        sums[0] += request.warps
        sums[1] += request.sectors
        sums[2] += request.bytes
    for opcode, (warps, sectors, size) in sorted(by_opcode.items()):
        print(
            f"  {opcode}: {warps} requests, {sectors / warps:.3f} sectors per "
            f"request, {size / warps / 32:.3f} at best"
        )
    requests, sectors, best = full_tiles(launches, module, counts)
    print(f"  full tiles: {requests} requests, {sectors} sectors, {best} at best")
    moved = 32 * (counts.sectors("ld") + counts.sectors("st")) + tables
    print(
        f"  bytes: {moved} of {least} ({read} read, {written} written, {tables} of "
        f"tables), {100 * (moved / least - 1):.3f} % over"
    )
    least_read = -(-read // 32)
    print(
        f"  sectors read: {counts.sectors('ld') / least_read:.3f} times the least by "
        f"requests, {counts.shared_sectors / least_read:.3f} by "
        f"{machine.BLOCKS_AT_A_TIME} blocks together"
    )
    work = counts.instructions / least
    print(f"  instructions: {counts.instructions}, {1024 * work:.3f} per KB")
    return moved / least, work


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--unchecked", action="store_true")
    parser.add_argument("--most-over", type=float)
    parser.add_argument("--one-launch", action="store_true")
    parser.add_argument("--equal-work", type=float)
    parser.add_argument("--ideal", action="store_true")
    parser.add_argument("--together", type=int, default=machine.BLOCKS_AT_A_TIME)
    arguments = parser.parse_args()
    machine.BLOCKS_AT_A_TIME = arguments.together
    complaints, work = [], []
    for path in arguments.files:
        compiled = compile_module(Path(path).read_text())
        module = parse(compiled.ptx)
        for op, launches in launches_by_op(compiled):
            counts = execute(
                module, launches, Placement.aligned(op), 0,
                Counts(shared_sectors=0), check=not arguments.unchecked,
            )
            ratio, per_byte = report(op, launches, module, counts)
            work.append(per_byte)
            if arguments.most_over is not None:
                if ratio > 1 + arguments.most_over / 100:
                    complaints.append(f"{op}: too much traffic")
            requests, sectors, best = full_tiles(launches, module, counts)
            if arguments.ideal and (requests == 0 or sectors != best):
                complaints.append(f"{op}: full tiles touch too many sectors")
            if arguments.one_launch and len(launches) != 1:
                complaints.append(f"{op}: {len(launches)} launches")
    if arguments.equal_work is not None:
        spread = 100 * (max(work) / min(work) - 1)
        print(f"instructions per byte differ by {spread:.2f} %")
        if spread > arguments.equal_work:
            complaints.append("instructions per byte differ")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
