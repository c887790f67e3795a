# Fill values and checksums of fsdp-run.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import numpy as np

from . import dtypes
from .dtypes import F32, F64

FNV_START = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


def fnv1a64(data, start=FNV_START):
    """The standard hash, byte by byte. For short inputs."""
    h = start
    for byte in data:
        h = ((h ^ byte) * FNV_PRIME) & _MASK
    return h


def checksum(data, start=FNV_START):
    """fnv1a64 of a large uint8 array.

    A byte changes only the lowest byte l of the hash, so with
    d = (l ^ byte) - l a step is h' = (h + d) * prime, which is linear and can
    be summed in any order, once every l is known. Bit k of the next l is
    bit k of l ^ byte, exclusive-or a function of the bits below k: eight prefix
    sums modulo 2, one per bit. Both run down the columns of a matrix whose
    columns are consecutive pieces of the input.
    """
    data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
    whole = data.size // _BLOCK * _BLOCK
    for at in range(0, whole, _BLOCK):
        start = _checksum_block(data[at : at + _BLOCK], start)
    return fnv1a64(data[whole:].tolist(), start)


# A block stays inside the cache; its pieces are the columns, a power of two.
_COLUMNS, _LENGTH = 4096, 64
_BLOCK = _COLUMNS * _LENGTH


def _checksum_block(data, start):
    b = np.ascontiguousarray(data.reshape(_COLUMNS, _LENGTH).T)
    low = np.zeros_like(b)  # l before each byte, bits below k known
    prime = np.uint8(FNV_PRIME & 0xFF)
    for k in range(8):
        bit = np.uint8(1 << k)
        # What the product adds to bit k, from the bits below it.
        after = (low ^ b) & np.uint8((1 << k) - 1)
        after *= prime
        after ^= b
        after &= bit
        for i in range(1, _LENGTH):
            after[i] ^= after[i - 1]
        first = np.empty(_COLUMNS, np.uint8)
        first[0] = start & int(bit)
        first[1:] = first[0] ^ np.bitwise_xor.accumulate(after[-1])[:-1]
        after ^= first
        low[0] |= first
        low[1:] |= after[:-1]
    delta = (low ^ b).astype(np.int16) - low
    sums = np.zeros(_COLUMNS, np.uint64)
    for row in delta:
        sums += row.astype(np.int64).view(np.uint64)
        sums *= np.uint64(FNV_PRIME)
    power = pow(FNV_PRIME, _LENGTH, 1 << 64)
    while sums.size > 1:
        sums = sums[0::2] * np.uint64(power) + sums[1::2]
        power = power * power & _MASK
    return (start * power + int(sums[0])) & _MASK


def splitmix64(x, scratch=None):
    """The finaliser of Steele et al., in place on a uint64 array."""
    t = np.empty_like(x) if scratch is None else scratch
    x += np.uint64(0x9E3779B97F4A7C15)
    np.right_shift(x, np.uint64(30), out=t)
    x ^= t
    x *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(x, np.uint64(27), out=t)
    x ^= t
    x *= np.uint64(0x94D049BB133111EB)
    np.right_shift(x, np.uint64(31), out=t)
    x ^= t
    return x


def fill(name, t, start, stop, seed, rank=0):
    """Elements [start, stop) of the full tensor `name` in carrier form. `rank`
    is the grid rank for full gradients and ordinary arguments, else 0."""
    base = (seed ^ fnv1a64(name.encode()) ^ (rank << 40)) & _MASK
    h = np.arange(start, stop, dtype=np.uint64)
    h ^= np.uint64(base)
    splitmix64(h)
    float8 = t.name in dtypes.FLOAT8
    if not t.floating and not float8:
        return (h % np.uint64(100)).astype(t.carrier)
    h >>= np.uint64(40)
    # 24 bits with a sign: exact in float32, so every narrower type is one
    # rounding away.
    x = (h.astype(np.int32) - np.int32(1 << 23)).astype(np.float32)
    x *= np.float32(2.0**-23)
    if t is F32:
        return x
    if float8:
        return dtypes.float8_bits(x, t)
    return x.astype(np.float64) if t is F64 else dtypes.narrow(x, t)
