# Runs a kernel: one array lane per thread.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The blocks of a grid run some hundreds at a time. A register is an array of
# (blocks, threads) in which a dimension of 1 says that the value is the same
# for all. Threads that diverge wait at the start of a basic block; the waiting
# ones with the smallest place in the text run next, so that they meet again
# where a device would let them, and a warp's instruction counts once for all of
# its threads that are there.

import heapq
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from .compile import compile_kernel
from .errors import PtxError

WARP = 32
SECTOR_LOG = 5  # 32 bytes
PARAM_BASE = 1 << 12
BLOCKS_AT_A_TIME = 512


@dataclass
class Requests:
    """What one memory instruction did, all warps together."""

    opcode: str
    warps: int = 0  # with at least one thread that took part
    full_warps: int = 0  # with all 32
    sectors: int = 0
    bytes: int = 0


@dataclass
class Counts:
    instructions: int = 0  # issued, that is per warp
    blocks: int = 0
    requests: dict = field(default_factory=dict)  # line -> Requests
    table_requests: dict = field(default_factory=dict)
    # Sectors of data, counted once for all reads of BLOCKS_AT_A_TIME blocks, as if
    # they ran together and a cache had room for what they read.
    shared_sectors: Optional[int] = None  # not counted unless it is set
    executed: set = field(default_factory=set)  # indices of basic blocks

    def sectors(self, prefix):
        """Sectors of all requests of the opcodes that begin with `prefix`."""
        return sum(
            r.sectors for r in self.requests.values() if r.opcode.startswith(prefix)
        )


class Active:
    """Threads of a chunk that are at one place: whole blocks, or lanes."""

    def __init__(self, blocks=None, lanes=None):
        self.blocks, self.lanes = blocks, lanes


class Chunk:
    """Blocks [first, first + count) of the grid."""

    def __init__(self, kernel, program, grid, first, count, threads, memory,
                 symbols, params, counts):
        self.kernel, self.program = kernel, program
        self.count, self.threads = count, threads
        self.memory, self.symbols, self.params = memory, symbols, params
        self.counts = counts
        self.waited = False
        self.read_sectors = []  # distinct ones of every load
        number = np.arange(first, first + count)[:, None]
        self.registers = {
            "%ctaid.x": (number % grid[0]).astype(np.uint32),
            "%ctaid.y": (number // grid[0]).astype(np.uint32),
            "%tid.x": np.arange(threads, dtype=np.uint32)[None, :],
        }
        self.owned = set()  # registers whose arrays nothing else refers to

    def run(self):
        pending = {0: [Active(blocks=np.arange(self.count))]}
        order = [0]
        while order:
            place = heapq.heappop(order)
            self.counts.executed.add(place)
            for active in self._merge(pending.pop(place)):
                for target, part in self._step(place, active):
                    if target not in pending:
                        pending[target] = []
                        heapq.heappush(order, target)
                    pending[target].append(part)
        if self.counts.shared_sectors is not None and self.read_sectors:
            together = np.unique(np.concatenate(self.read_sectors))
            self.counts.shared_sectors += together.size

    def _merge(self, parts):
        """Disjoint sets of threads such that no block is in two of them."""
        if len(parts) == 1:
            return parts
        if all(part.lanes is None for part in parts):
            return [Active(blocks=np.sort(np.concatenate([p.blocks for p in parts])))]
        mask = np.zeros((self.count, self.threads), bool)
        for part in parts:
            if part.lanes is None:
                mask[part.blocks] = True
            else:
                mask.reshape(-1)[part.lanes] = True
        whole = mask.all(axis=1)
        result = [Active(blocks=np.flatnonzero(whole))] if whole.any() else []
        mask[whole] = False
        lanes = np.flatnonzero(mask)
        return result + ([Active(lanes=lanes)] if lanes.size else [])

    # --- registers ------------------------------------------------------------

    def _read(self, name, active):
        array = self.registers.get(name)
        if array is None:
            raise PtxError(f"{self.kernel.name}: {name} is read before it is written")
        if active.lanes is not None:
            block, thread = np.divmod(active.lanes, self.threads)
            return array[
                block if array.shape[0] > 1 else 0, thread if array.shape[1] > 1 else 0
            ]
        if active.blocks.size == self.count or array.shape[0] == 1:
            return array
        return array[active.blocks]

    def _write(self, name, value, active):
        whole = active.lanes is None
        if whole and active.blocks.size == self.count:
            self.registers[name] = np.atleast_2d(value)
            self.owned.discard(name)
            return
        old = self.registers.get(name)
        value = np.atleast_2d(value) if whole else value
        width = value.shape[1] if whole else self.threads
        shape = (self.count, max(width, old.shape[1] if old is not None else 1))
        if old is None:
            old = np.zeros(shape, value.dtype)
        elif old.shape != shape or name not in self.owned:
            old = np.broadcast_to(old, shape).copy()
        if whole:
            old[active.blocks] = value
        else:
            old.reshape(-1)[active.lanes] = value
        self.registers[name] = old
        self.owned.add(name)

    # --- execution ------------------------------------------------------------

    def _step(self, place, active):
        """Runs one basic block; yields (next block, threads)."""
        code = self.program[place]
        values = {name: self._read(name, active) for name in code.reads}
        view = View(self, active)
        self.counts.instructions += view.warps * code.length
        for operation in code.operations:
            operation(values, view)
        for name in code.writes:
            self._write(name, values[name], active)
        return code.exits(values, view)


class View:
    """The threads that run a basic block, as its operations see them."""

    def __init__(self, chunk, active):
        self.chunk, self.active = chunk, active
        self.memory, self.symbols = chunk.memory, chunk.symbols
        if active.lanes is None:
            self.shape = (active.blocks.size, chunk.threads)
            self.warps = active.blocks.size * chunk.threads // WARP
        else:
            self.shape = active.lanes.shape
            self.warps = _distinct(active.lanes // WARP)

    def lanes(self):
        """Numbers of the threads in the chunk."""
        if self.active.lanes is not None:
            return self.active.lanes
        threads = np.arange(self.chunk.threads)
        return self.active.blocks[:, None] * self.chunk.threads + threads

    def split(self, condition):
        """(threads for which the condition holds, the others), either possibly
        several sets or none."""
        active = self.active
        if active.lanes is not None:
            condition = np.broadcast_to(condition, self.shape)
            return self._lanes(active.lanes[condition]), self._lanes(
                active.lanes[~condition]
            )
        condition = np.atleast_2d(condition)
        if condition.shape[1] > 1:
            condition = np.broadcast_to(condition, self.shape)
            every, some = condition.all(axis=1), condition.any(axis=1)
        else:
            every = some = np.broadcast_to(condition[:, 0], self.shape[:1])
        taken = self._blocks(active.blocks[every])
        passed = self._blocks(active.blocks[~some])
        mixed = some & ~every
        if mixed.any():
            lanes, condition = self.lanes()[mixed], condition[mixed]
            taken = taken + self._lanes(lanes[condition])
            passed = passed + self._lanes(lanes[~condition])
        return taken, passed

    @staticmethod
    def _blocks(blocks):
        return [Active(blocks=blocks)] if blocks.size else []

    @staticmethod
    def _lanes(lanes):
        return [Active(lanes=lanes)] if lanes.size else []

    def wait(self):
        self.chunk.waited = True

    # --- memory ---------------------------------------------------------------

    def param(self, addresses, size, where):
        """`size` bytes of the parameters."""
        params = self.chunk.params
        offset = addresses.astype(np.int64) - PARAM_BASE
        outside = (offset < 0) | (offset + size > params.nbytes)
        if (outside | (offset % size != 0)).any():
            raise PtxError(f"{where}: read outside of the parameters")
        return params.view(f"u{size}")[offset // size]

    def load(self, addresses, element_bytes, count, instruction):
        where = f"{self.chunk.kernel.name}, {instruction}"
        table = self.symbols.is_table(addresses)
        if not table and not self.chunk.waited:
            raise PtxError(f"{where}: data is read before griddepcontrol.wait")
        if not table and ".nc" in instruction.opcode:
            raise PtxError(f"{where}: data is read as if nothing wrote it")
        self._count(addresses, None, element_bytes * count, instruction, table)
        return self.memory.load(addresses, element_bytes, count, where)

    def store(self, addresses, element_bytes, values, predicate, instruction):
        where = f"{self.chunk.kernel.name}, {instruction}"
        addresses = np.broadcast_to(addresses, self.shape)
        values = [np.broadcast_to(value, self.shape) for value in values]
        lanes = None
        if predicate is not None:
            predicate = np.broadcast_to(predicate, self.shape)
            if not predicate.any():
                return
            if not predicate.all():
                lanes = self.lanes()[predicate]
                addresses = addresses[predicate]
                values = [value[predicate] for value in values]
        self._count(addresses, lanes, element_bytes * len(values), instruction, False)
        self.memory.store(addresses, element_bytes, values, where)

    def _count(self, addresses, lanes, size, instruction, table):
        counts = self.chunk.counts
        kind = counts.table_requests if table else counts.requests
        found = kind.setdefault(instruction.line, Requests(instruction.opcode))
        if lanes is None and self.active.lanes is not None:
            lanes = self.active.lanes
            addresses = np.broadcast_to(addresses, self.shape)
        sectors = addresses >> np.uint64(SECTOR_LOG)
        is_read = instruction.opcode.startswith("ld") and not table
        if is_read and counts.shared_sectors is not None:
            self.chunk.read_sectors.append(np.unique(sectors))
        if lanes is None:
            found.warps += self.warps
            found.full_warps += self.warps
            found.sectors += self._sectors_of_whole_warps(sectors)
            found.bytes += size * self.shape[0] * self.shape[1]
            return
        warps = lanes // WARP
        _, members = np.unique(warps, return_counts=True)
        found.warps += members.size
        found.full_warps += int((members == WARP).sum())
        order = np.lexsort((sectors, warps))
        warps, sectors = warps[order], sectors[order]
        new = (warps[1:] != warps[:-1]) | (sectors[1:] != sectors[:-1])
        found.sectors += 1 + int(new.sum())
        found.bytes += size * lanes.size

    def _sectors_of_whole_warps(self, sectors):
        sectors = np.atleast_2d(sectors)
        if sectors.shape[1] == 1:  # one address per block
            return self.warps
        rows = sectors.reshape(-1, WARP)
        step = np.diff(rows.view(np.int64), axis=1)
        if (step < 0).any():
            step = np.diff(np.sort(rows, axis=1).view(np.int64), axis=1)
        repeats = self.warps // rows.shape[0]  # blocks with equal addresses
        return repeats * (rows.shape[0] + int((step != 0).sum()))


def _distinct(sorted_values):
    return 1 + int((sorted_values[1:] != sorted_values[:-1]).sum())


class Symbols:
    """Addresses of tables and parameters by name."""

    def __init__(self, tables, params):
        self.tables = list(tables.values())
        self.addresses = {name: b.address for name, b in tables.items()}
        for name, (offset, _) in params.items():
            self.addresses[name] = PARAM_BASE + offset

    def is_table(self, addresses):
        at = int(addresses.flat[0])
        return any(0 <= at - b.address < b.size for b in self.tables)


def launch(module, name, grid, threads, params, memory, tables, counts=None):
    """Runs kernel `name` on `grid` = (x, y) blocks. `params`: the parameter
    space as uint64; `tables`: {global: its Buffer}. Returns the counts."""
    kernel = module.kernels.get(name)
    if kernel is None:
        raise PtxError(f"no kernel {name}")
    if kernel.max_threads != threads:
        raise PtxError(f"{name}: .maxntid {kernel.max_threads}, launched with {threads}")
    if kernel.param_bytes != params.nbytes:
        raise PtxError(
            f"{name}: {params.nbytes} bytes of parameters, expected {kernel.param_bytes}"
        )
    program = compile_kernel(kernel)
    symbols = Symbols(tables, kernel.params)
    counts = counts or Counts()
    total = grid[0] * grid[1]
    counts.blocks += total
    with np.errstate(all="ignore"):
        for first in range(0, total, BLOCKS_AT_A_TIME):
            count = min(BLOCKS_AT_A_TIME, total - first)
            Chunk(
                kernel, program, grid, first, count, threads, memory, symbols,
                params, counts,
            ).run()
    return counts
