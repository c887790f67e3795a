# Global memory: buffers at 64-bit addresses, every access checked.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Buffers lie 2^34 bytes apart, so what runs out of one hits none, and addresses
# need more than 32 bits. Each byte has a state:
#
#   POISON    never written: an output before the launch, padding and gaps of an
#             input that must not be read
#   READABLE  an input
#   WRITTEN   by this launch, which may not write it a second time
#
# The bytes of all buffers lie in one array, at places that are congruent to
# their addresses modulo 16, so that an aligned access is an index into a view
# of wider elements.

import numpy as np

from .errors import PtxError

SPACING_LOG = 34
POISON, READABLE, WRITTEN = 0, 1, 2
POISON_BYTE = 0xA5


class Buffer:
    def __init__(self, name, address, size, writable):
        self.name, self.address, self.size = name, address, size
        self.writable = writable
        self.readable = False
        self.has_holes = False  # some bytes must not be read
        self.start = 0  # in the arena


class Memory:
    def __init__(self):
        self.buffers = []
        self._content = []
        self._sealed = False

    # --- set-up ---------------------------------------------------------------

    def add(self, name, size, misalignment=0, content=None, readable=None,
            writable=False):
        """A buffer of `size` bytes, `misalignment` bytes after a multiple of
        4096. `content`: its bytes, else poison; `readable`: a mask of the bytes
        that may be read (default: all of an input, none of an output)."""
        address = (len(self.buffers) + 1 << SPACING_LOG) + misalignment
        buffer = Buffer(name, address, size, writable)
        buffer.readable = content is not None
        buffer.has_holes = readable is not None
        self.buffers.append(buffer)
        self._content.append((content, readable))
        return buffer

    def seal(self):
        """Puts all buffers into one array; no more can be added."""
        end = 0
        for buffer in self.buffers:
            end = -(-end // 16) * 16 + buffer.address % 16
            buffer.start = end
            end += buffer.size
        total = -(-end // 16) * 16
        self.arena = np.full(total, POISON_BYTE, np.uint8)
        self.state = np.zeros(total, np.uint8)
        for buffer, (content, readable) in zip(self.buffers, self._content):
            where = slice(buffer.start, buffer.start + buffer.size)
            if content is not None:
                self.arena[where] = content
                self.state[where] = READABLE if readable is None else readable
        self._content = []
        column = lambda values, t: np.array(values, t)
        self._starts = column([b.start for b in self.buffers], np.int64)
        self._bases = column([b.address for b in self.buffers], np.int64)
        self._sizes = column([b.size for b in self.buffers], np.int64)
        self._sealed = True

    def bytes_of(self, buffer):
        return self.arena[buffer.start : buffer.start + buffer.size]

    def states_of(self, buffer):
        return self.state[buffer.start : buffer.start + buffer.size]

    # --- access ---------------------------------------------------------------

    def _describe(self, address, size, what):
        number = (int(address) >> SPACING_LOG) - 1
        if not 0 <= number < len(self.buffers):
            return f"{what} of {size} bytes at {int(address):#x}, in no buffer"
        buffer = self.buffers[number]
        return (
            f"{what} of {size} bytes at byte {int(address) - buffer.address} of "
            f"{buffer.name} ({buffer.size} bytes)"
        )

    def _find(self, addresses, size, what, where):
        """Places in the arena, and the buffers that are touched."""
        at = addresses.astype(np.int64)
        number = (at >> SPACING_LOG) - 1
        low, high = int(number.min()), int(number.max())
        misaligned = (at & (size - 1)) != 0
        if misaligned.any():
            text = self._describe(at[misaligned][0], size, "misaligned " + what)
            raise PtxError(f"{where}: {text}")
        if low == high and 0 <= low < len(self.buffers):
            number = low  # one buffer: scalars are enough
            numbers = [low]
        else:
            wrong = (number < 0) | (number >= len(self.buffers))
            if wrong.any():
                text = self._describe(at[wrong][0], size, what)
                raise PtxError(f"{where}: {text}")
            numbers = np.unique(number)
        inside = at - self._bases[number]
        wrong = (inside < 0) | (inside + size > self._sizes[number])
        if wrong.any():
            text = self._describe(at[wrong][0], size, what)
            raise PtxError(f"{where}: {text}")
        return inside + self._starts[number], [self.buffers[n] for n in numbers]

    def load(self, addresses, element_bytes, count, where):
        """`count` arrays, each of elements of `element_bytes` bytes."""
        size = element_bytes * count
        place, buffers = self._find(addresses, size, "read", where)
        for buffer in buffers:
            if not buffer.readable:
                raise PtxError(f"{where}: read of the output {buffer.name}")
        if any(buffer.has_holes or buffer.writable for buffer in buffers):
            state = self._view(self.state, element_bytes, count)[place // size]
            bad = state != _in_every_byte(READABLE, element_bytes)
            bad = bad.any(-1) if count > 1 else bad
            if bad.any():
                address = addresses[bad][0]
                text = self._describe(address, size, "read of poisoned or written bytes,")
                raise PtxError(f"{where}: {text}")
        data = self._view(self.arena, element_bytes, count)[place // size]
        return [data] if count == 1 else [data[..., i] for i in range(count)]

    def store(self, addresses, element_bytes, values, where):
        """Stores `values`, arrays of the addresses' shape; every address is
        that of another thread."""
        count = len(values)
        size = element_bytes * count
        place, buffers = self._find(addresses, size, "write", where)
        for buffer in buffers:
            if not buffer.writable:
                raise PtxError(f"{where}: write to the input {buffer.name}")
        index = place // size
        states = self._view(self.state, element_bytes, count)
        written = _in_every_byte(WRITTEN, element_bytes)
        again = states[index] & written
        again = again.any(-1) if count > 1 else again
        if again.any():
            address = addresses[again != 0][0]
            text = self._describe(address, size, "second write")
            raise PtxError(f"{where}: {text}")
        flat = np.sort(index, axis=None)
        twice = flat[1:] == flat[:-1]
        if twice.any():
            raise PtxError(f"{where}: two threads write the same {size} bytes")
        states[index] = written
        data = self._view(self.arena, element_bytes, count)
        if count == 1:
            data[index] = values[0]
        else:
            for i, value in enumerate(values):
                data[index, i] = value

    @staticmethod
    def _view(array, element_bytes, count):
        view = array.view(f"u{element_bytes}")
        if count == 1:
            return view
        whole = view.size // count * count
        return view[:whole].reshape(-1, count)


def _in_every_byte(state, element_bytes):
    return np.array(
        int.from_bytes(bytes([state]) * element_bytes, "little"), f"u{element_bytes}"
    )
