# Floating-point instructions on bit patterns.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Registers hold bits (uint16, uint32, uint64). Shares no code with the oracle:
# what both compute is computed in two ways.

import numpy as np

# Formats of 16 bits: (bits of the mantissa, exponent bias).
HALF = {"f16": (10, 15), "bf16": (7, 127)}


def as_f32(bits):
    return bits.view(np.float32)


def as_f64(bits):
    return bits.view(np.float64)


def widen_half(bits, name):
    """f16 or bf16 bits as float64. Exact."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(
            np.float64
        )
    return bits.view(np.float16).astype(np.float64)


def round_half(values, name):
    """float64 values to f16 or bf16 bits: one rounding, to nearest even."""
    mantissa, bias = HALF[name]
    infinity = np.int64((2 * bias + 1) << mantissa)
    magnitude = np.abs(values)
    finite = np.isfinite(values)
    magnitude = np.where(finite, magnitude, 0.0)
    _, exponent = np.frexp(magnitude)
    exponent = np.maximum(exponent.astype(np.int64) - 1, 1 - bias)
    exponent = np.where(magnitude == 0, 1 - bias, exponent)
    # A count of units in the last place, which np.rint rounds to nearest even.
    # The largest magnitudes carry into the exponent, up to infinity.
    units = np.rint(np.ldexp(magnitude, (mantissa - exponent).astype(np.int32)))
    bits = units.astype(np.int64) + ((exponent + bias - 1) << mantissa)
    bits = np.where(finite, np.minimum(bits, infinity), infinity)
    bits |= np.signbit(values).astype(np.int64) << 15
    return np.where(np.isnan(values), 0x7FFF, bits).astype(np.uint16)


def fma_f32(a, b, c):
    """a * b + c of f32 bits, rounded once."""
    product = as_f32(a).astype(np.float64) * as_f32(b).astype(np.float64)  # exact
    addend = as_f32(c).astype(np.float64)
    # Rounded to odd, and then a second time.
    odd = _to_odd(*_two_sum(product, addend))
    return odd.astype(np.float32).view(np.uint32)


def _two_sum(a, b):
    """(a + b rounded, what that lost)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _to_odd(total, lost):
    """The sum of both, rounded to odd: the even neighbour of an inexact sum would
    not show on which side of a tie the exact value is."""
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (lost != 0) & ((bits & 1) == 0)
    towards_zero = (lost < 0) == (total > 0)
    step = np.where(towards_zero, -1, 1)
    return np.where(inexact, bits + step, bits).view(np.float64)


def _halves(a):
    """Two parts of 26 bits, whose products are exact."""
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def fma_f64(a, b, c):
    """a * b + c of f64 bits, rounded once, away from under- and overflow."""
    a, b, c = as_f64(a), as_f64(b), as_f64(c)
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = a_high * b_high - product  # all of this exact
    rest = a_low * b_low + ((rest + a_high * b_low) + a_low * b_high)
    total, lost = _two_sum(product, c)
    fused = total + _to_odd(*_two_sum(lost, rest))
    plain = product + c
    exact_rest = np.isfinite(plain) & np.isfinite(rest) & (product != 0)
    return np.where(exact_rest, fused, plain).view(np.uint64)


def pairwise(function):
    """A function of 16-bit lanes on registers that hold two of them."""

    def on_pairs(*registers):
        halves = [np.ascontiguousarray(r) for r in registers]
        low = function(*[(r & np.uint32(0xFFFF)).astype(np.uint16) for r in halves])
        high = function(*[(r >> np.uint32(16)).astype(np.uint16) for r in halves])
        return pack(high, low)

    return on_pairs


def pack(high, low):
    return (high.astype(np.uint32) << np.uint32(16)) | low.astype(np.uint32)
