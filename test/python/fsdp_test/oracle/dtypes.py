# Element types of the oracle: casts with one rounding, division, addition.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Every tensor is a NumPy array in its type's *carrier*: float16, float32 and
# float64 for themselves, uint16 bit patterns for bf16 (NumPy has no bf16), and
# integers for the opaque types. A function that needs values widens a carrier
# to float32 or float64 (exact) and rounds the answer once.

import numpy as np


class Dtype:
    """A storage type: its MLIR name, bytes, carrier and safetensors tag."""

    def __init__(self, name, size, carrier, tag, floating):
        self.name = name
        self.size = size
        self.carrier = np.dtype(carrier)
        self.tag = tag
        self.floating = floating

    def __repr__(self):
        return self.name

    def zeros(self, count):
        return np.zeros(count, self.carrier)


_ALL = [
    Dtype("f16", 2, np.float16, "F16", True),
    Dtype("bf16", 2, np.uint16, "BF16", True),
    Dtype("f32", 4, np.float32, "F32", True),
    Dtype("f64", 8, np.float64, "F64", True),
    Dtype("i8", 1, np.int8, "I8", False),
    Dtype("i16", 2, np.int16, "I16", False),
    Dtype("i32", 4, np.int32, "I32", False),
    Dtype("i64", 8, np.int64, "I64", False),
    Dtype("f8E4M3FN", 1, np.uint8, "F8_E4M3", False),
    Dtype("f8E5M2", 1, np.uint8, "F8_E5M2", False),
]
FLOAT8 = {"f8E4M3FN": (7, 3), "f8E5M2": (15, 2)}  # bias, bits of the fraction
BY_NAME = {d.name: d for d in _ALL}
BY_TAG = {d.tag: d for d in _ALL}
F16, BF16, F32, F64 = (BY_NAME[n] for n in ("f16", "bf16", "f32", "f64"))
I8 = BY_NAME["i8"]


def dtype(name):
    return name if isinstance(name, Dtype) else BY_NAME[name]


def promote(a, b):
    """The narrowest type that holds both; f32 for f16 with bf16."""
    if a is b:
        return a
    if {a, b} == {F16, BF16}:
        return F32
    return a if a.size > b.size else b


# --- rounding ---------------------------------------------------------------


def bf16_bits(x):
    """float32 to bf16 bit patterns, to nearest even. A NaN stays a NaN: the
    carry of the rounding must neither run into the sign nor clear the
    mantissa, so NaNs are set apart."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    half = ((u >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    bits = ((u + half) >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(x)
    if nan.any():
        bits[nan] = 0x7FC0
    return bits


def float8_bits(x, t):
    """Values of magnitude at most 1 to bit patterns of a float8 type, to nearest
    even. Programs only ever copy these types; fill values are made in them."""
    bias, fraction = FLOAT8[t.name]
    magnitude = np.abs(np.asarray(x, np.float64))
    # The power of two at or below the value, or the smallest normal one.
    exponent = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, 1 - bias)
    exponent = np.maximum(exponent, 1 - bias)
    steps = np.rint(np.ldexp(magnitude, fraction - exponent)).astype(np.int64)
    # A normal number has at least 2^fraction steps, which is one exponent.
    bits = ((exponent + bias - 1) << fraction) + steps
    return (bits | (np.signbit(x) * 0x80)).astype(np.uint8)


def _round_to_odd(x):
    """float64 to float32, towards zero, with the last bit set if anything was
    lost. Rounding the answer to a type at least two bits narrower then gives
    what one rounding of `x` gives."""
    with np.errstate(all="ignore"):
        y = x.astype(np.float32)
        up = np.abs(y.astype(np.float64)) > np.abs(x)
        bits = y.view(np.uint32)
        bits = bits - up.astype(np.uint32)
        lost = bits.view(np.float32).astype(np.float64) != x
    bits |= (lost & ~np.isnan(x)).astype(np.uint32)
    return bits.view(np.float32)


def widen(a, src):
    """Carrier to values: float64 for f64, float32 for the others. Exact."""
    if src is F64:
        return a
    if src is BF16:
        return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return a.astype(np.float32)


def narrow(x, dst):
    """float32 or float64 values to a floating-point carrier, one rounding."""
    if dst is BF16:
        return bf16_bits(x if x.dtype == np.float32 else _round_to_odd(x))
    with np.errstate(all="ignore"):
        return x.astype(dst.carrier)


def cast(a, src, dst):
    """One cast, one rounding. Opaque types are only ever copied."""
    if src is dst:
        return a
    if not (src.floating and dst.floating):
        raise ValueError(f"{src} is not cast to {dst}")
    return narrow(widen(a, src), dst)


# --- arithmetic in a type -----------------------------------------------------


def divide(a, t, divisor):
    """True division by a constant: in float32 (float64 for f64), then rounded."""
    work = np.float64 if t is F64 else np.float32
    with np.errstate(all="ignore"):
        return narrow(widen(a, t).astype(work) / work(divisor), t)


def multiply(a, t, multiplier):
    """RNE_t(a * multiplier), the multiplier already a value of `t`."""
    work = np.float64 if t is F64 else np.float32
    with np.errstate(all="ignore"):
        return narrow(widen(a, t) * work(multiplier), t)


def add(a, b, t):
    """RNE_t(a + b)."""
    with np.errstate(all="ignore"):
        return narrow(widen(a, t) + widen(b, t), t)


def round_scalar(x, t):
    """A Python number rounded to `t`, as a Python float."""
    return float(widen(narrow(np.array([x], np.float64), t), t)[0])


# --- bits and comparison ------------------------------------------------------


def bits(a):
    """The bit patterns of a carrier as unsigned integers."""
    return np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")


def from_bytes(data, t):
    return np.frombuffer(bytes(data), t.carrier).copy()


def is_nan(a, t):
    return np.isnan(widen(a, t)) if t.floating else np.zeros(a.shape, bool)


def differences(a, b, t):
    """Flat indices at which two carriers differ. Zeros compare with their
    sign, NaNs as a class."""
    unequal = bits(a).ravel() != bits(b).ravel()
    if t.floating and unequal.any():
        unequal &= ~(is_nan(a, t).ravel() & is_nan(b, t).ravel())
    return np.flatnonzero(unequal)


def show(a, t):
    """One element for a message: value and bit pattern."""
    element = np.asarray(a).reshape(1)
    pattern = int(bits(element)[0])
    value = float(widen(element, t)[0]) if t.floating else int(element[0])
    return f"{value} (0x{pattern:0{2 * t.size}x})"
