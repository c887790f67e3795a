# What each instruction computes.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# `semantics(opcode)` gives the types of an instruction's operands and a function
# of arrays. Types are those of PTX; registers hold unsigned integers, and bools
# for predicates. Opcodes that are not listed do not exist.

from functools import lru_cache

import numpy as np

from . import floats
from .errors import PtxError

WIDTHS = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
    "u16x2": 32, "s16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64,
}
CARRIERS = {
    1: np.dtype(bool), 8: np.dtype(np.uint8), 16: np.dtype(np.uint16),
    32: np.dtype(np.uint32), 64: np.dtype(np.uint64),
}
COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}
LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
INTEGER = {"add": np.add, "sub": np.subtract, "mul.lo": np.multiply}
FLOAT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def carrier(ptx_type):
    return CARRIERS[WIDTHS[ptx_type]]


def _signed(bits):
    return bits.view(f"i{bits.dtype.itemsize}")


def _view_as(ptx_type):
    """From a register's bits to values of `ptx_type`."""
    if ptx_type[0] == "s":
        return _signed
    if ptx_type == "f32":
        return floats.as_f32
    if ptx_type == "f64":
        return floats.as_f64
    return lambda bits: bits


def _bits_of(values):
    return values.view(f"u{values.dtype.itemsize}")


def _shift_signed(width):
    def function(value, amount):
        # A larger amount leaves nothing but the sign.
        amount = np.minimum(amount, width - 1).astype(value.dtype)
        return _bits_of(_signed(value) >> _signed(amount))

    return function


def _shift(left, width):
    shift = np.left_shift if left else np.right_shift

    def function(value, amount):
        amount = amount.astype(value.dtype)
        kept = amount < width  # a larger one shifts everything out
        moved = shift(value, np.where(kept, amount, 0).astype(value.dtype))
        return np.where(kept, moved, 0).astype(value.dtype)

    return function


def _extract(signed):
    def function(value, position, length):
        mask = (np.uint32(1) << length) - np.uint32(1)
        field = (value >> position) & mask
        if not signed:
            return field
        sign = np.uint32(1) << (length - np.uint32(1))
        return (field ^ sign) - sign

    return function


def _minmax(ptx_type, function):
    view = _view_as(ptx_type)
    return lambda a, b: _bits_of(function(view(a), view(b)))


def _minmax_nan(ptx_type, largest):
    """NaN if one is; +0 is larger than -0."""
    if ptx_type in ("f16x2", "bf16x2"):
        return floats.pairwise(_minmax_nan(ptx_type[:-2], largest))
    if ptx_type in floats.HALF:
        values = _values_of(ptx_type)
        pick = _minmax_nan("f64", largest)
        return lambda a, b: floats.round_half(
            floats.as_f64(pick(_bits_of(values(a)), _bits_of(values(b)))), ptx_type
        )
    view = _view_as(ptx_type)

    def function(a, b):
        x, y = view(a), view(b)
        pick = (x > y) if largest else (x < y)
        sign = np.signbit(y) if largest else np.signbit(x)
        picked = np.where((x == y) & (x == 0), sign, pick)
        either = np.isnan(x) | np.isnan(y)
        return _bits_of(np.where(either, x + y, np.where(picked, x, y)))

    return function


def _minmax_number(ptx_type, largest):
    """The other one if one is NaN; +0 is larger than -0."""
    view = _view_as(ptx_type)
    with_nan = _minmax_nan(ptx_type, largest)

    def function(a, b):
        return np.where(
            np.isnan(view(a)), b, np.where(np.isnan(view(b)), a, with_nan(a, b))
        )

    return function


def _permute_bytes(a, b, selector):
    """Byte i of the result is the one of the eight bytes of b and a that nibble i
    selects, or, with the nibble's highest bit, its sign in all bits."""
    a, b, selector = np.broadcast_arrays(a, b, selector)
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(both.shape, np.uint64)
    for i in range(4):
        nibble = (selector.astype(np.uint64) >> np.uint64(4 * i)) & np.uint64(15)
        byte = (both >> (np.uint64(8) * (nibble & np.uint64(7)))) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7), np.uint64(255), np.uint64(0))
        byte = np.where(nibble >> np.uint64(3), sign, byte)
        result |= byte << np.uint64(8 * i)
    return result.astype(np.uint32)


def _divide_integers(ptx_type, remainder):
    """Towards zero. What divides by zero is not defined, and here an error."""
    view = _view_as(ptx_type)

    def function(a, b):
        x, y = np.broadcast_arrays(view(a), view(b))
        if (y == 0).any():
            raise PtxError("division by zero")
        if ptx_type[0] == "u":
            return _bits_of(x % y if remainder else x // y)
        quotient = x // y
        rest = x - quotient * y
        off = (rest != 0) & ((x < 0) != (y < 0))
        quotient = quotient + off.astype(x.dtype)
        return _bits_of(x - quotient * y if remainder else quotient)

    return function


def _multiply_high(ptx_type):
    view, width = _view_as(ptx_type), WIDTHS[ptx_type]

    def function(a, b):
        x, y = view(a).astype(object), view(b).astype(object)
        high = (x * y) >> width
        return np.asarray(high & (2**width - 1)).astype(carrier(ptx_type))

    return function


def _multiply_wide(ptx_type):
    view = _view_as(ptx_type)
    wide = f"{'i' if ptx_type[0] == 's' else 'u'}{WIDTHS[ptx_type] // 4}"
    return lambda a, b: _bits_of(view(a).astype(wide) * view(b).astype(wide))


def _half_arithmetic(name, function):
    # float64 holds sums and products of 16-bit values exactly, so that the
    # rounding to 16 bits is the only one.
    def on_halves(a, b):
        wide = function(floats.widen_half(a, name), floats.widen_half(b, name))
        return floats.round_half(wide, name)

    return on_halves


def _float_arithmetic(operation, ptx_type):
    function = FLOAT[operation]
    if ptx_type in ("f16", "bf16") and operation != "div":
        return _half_arithmetic(ptx_type, function)
    if ptx_type in ("f16x2", "bf16x2") and operation != "div":
        return floats.pairwise(_half_arithmetic(ptx_type[:-2], function))
    if ptx_type in ("f32", "f64"):
        view = _view_as(ptx_type)
        return lambda a, b: _bits_of(function(view(a), view(b)))
    return None


def _compare(comparison, ptx_type):
    view = _view_as(ptx_type)
    if ptx_type in ("f16", "bf16"):
        view = _values_of(ptx_type)
    if ptx_type in ("f16", "bf16", "f32", "f64"):
        if comparison[-1] == "u" and comparison[:-1] in COMPARE:
            ordered = _compare(comparison[:-1], ptx_type)
            return lambda a, b: (
                np.isnan(view(a)) | np.isnan(view(b)) | ordered(a, b)
            )
        if comparison in ("num", "nan"):
            wanted = comparison == "nan"
            return lambda a, b: (np.isnan(view(a)) | np.isnan(view(b))) == wanted
        if comparison == "ne":  # ordered: false for NaN
            return lambda a, b: (view(a) < view(b)) | (view(a) > view(b))
    if comparison not in COMPARE:
        return None
    function = COMPARE[comparison]
    return lambda a, b: function(view(a), view(b))


def _values_of(ptx_type):
    """A register's bits as exact float64 values."""
    if ptx_type in floats.HALF:
        return lambda bits: floats.widen_half(bits, ptx_type)
    view = _view_as(ptx_type)
    return lambda bits: view(bits).astype(np.float64)


def _convert_float(to, source):
    values = _values_of(source)
    if to in floats.HALF:
        return lambda bits: floats.round_half(values(bits), to)
    target = np.float32 if to == "f32" else np.float64
    return lambda bits: _bits_of(values(bits).astype(target))


def _integer_to_float(to, source):
    view = _view_as(source)
    if to in floats.HALF:
        # float64 holds what has up to 32 bits.
        exact = WIDTHS[source] <= 32
        return exact and (
            lambda bits: floats.round_half(view(bits).astype(np.float64), to)
        )
    target = np.float32 if to == "f32" else np.float64
    return lambda bits: _bits_of(view(bits).astype(target))


def _float_to_integer(to, source):
    """Towards zero; NaN is 0, and what is too large the largest."""
    values, width = _values_of(source), WIDTHS[to]
    low = -(2 ** (width - 1)) if to[0] == "s" else 0
    high = 2 ** (width - (to[0] == "s")) - 1

    def function(bits):
        whole = np.trunc(np.nan_to_num(values(bits), posinf=2.0**65, neginf=-(2.0**65)))
        inside = (whole >= low) & (whole <= high) & (whole < 2.0**width)
        kept = np.where(inside & (whole < 2.0 ** (width - (to[0] == "s"))), whole, 0.0)
        kind = f"{'i' if to[0] == 's' else 'u'}{width // 8}"
        result = kept.astype(kind)
        result = np.where(whole >= float(high), np.array(high, kind), result)
        return _bits_of(np.where(whole < low, np.array(low, kind), result))

    return function


def _convert_mixed(modifiers):
    """cvt between integers and floats, or None."""
    rounding, to, source = modifiers
    is_float = [t in ("f16", "bf16", "f32", "f64") for t in (to, source)]
    is_integer = [t[0] in "su" for t in (to, source)]
    if rounding == "rn" and is_float[0] and is_integer[1]:
        function = _integer_to_float(to, source)
    elif rounding == "rzi" and is_integer[0] and is_float[1]:
        function = _float_to_integer(to, source)
    else:
        return None
    return function and ((to, source), function)


def _funnel(low, high, bits):
    both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return (both >> (bits & 31).astype(np.uint64)).astype(np.uint32)


# The low word of two words that are shifted right by bits, or by bytes.
TWO_WORDS = {
    "shf.r.wrap.b32": _funnel,
    "prmt.b32.f4e": lambda low, high, first: _funnel(low, high, 8 * (first & 3)),
}


def _convert(modifiers):
    """cvt: (types, function)."""
    if len(modifiers) == 3:
        mixed = _convert_mixed(modifiers)
        if mixed:
            return mixed
    if modifiers[0] == "rzi":
        return None
    rounds = modifiers[0] == "rn"
    to, source = modifiers[1:] if rounds else modifiers
    if rounds and to in ("f16x2", "bf16x2"):
        one = _convert_float(to[:-2], source)
        return (to, source, source), lambda a, b: floats.pack(one(a), one(b))
    floating = {"f16", "bf16", "f32", "f64"}
    if to in floating and source in floating:
        if rounds != (WIDTHS[to] < WIDTHS[source]):
            return None
        return (to, source), _convert_float(to, source)
    if rounds or to not in WIDTHS or source not in WIDTHS:
        return None
    if to == "s8":  # in a register of 16 bits, which its sign fills
        return ("s16", source), lambda a: a.astype(np.int8).astype(np.int16).view(np.uint16)
    if source[0] == "u" or WIDTHS[to] <= WIDTHS[source]:
        return (to, source), lambda a: a.astype(carrier(to))
    signed = f"i{WIDTHS[to] // 8}"
    return (to, source), lambda a: _bits_of(_signed(a).astype(signed))


def _lookup(opcode):
    operation, *modifiers = opcode.split(".")
    last = modifiers[-1] if modifiers else ""
    rest = modifiers[:-1]
    if opcode in TWO_WORDS:
        return ("b32", "b32", "b32", "u32"), TWO_WORDS[opcode]
    if last not in WIDTHS:
        return None
    if operation == "mov" and not rest:
        return (last, last), lambda a: a
    if operation in LOGIC and not rest:
        return (last,) * 3, LOGIC[operation]
    if operation == "not" and not rest:
        invert = np.logical_not if last == "pred" else np.bitwise_not
        return (last, last), invert
    if operation == "selp" and not rest:
        return (last, last, last, "pred"), lambda a, b, p: np.where(p, a, b)
    if operation == "setp" and len(rest) == 1:
        function = _compare(rest[0], last)
        return function and (("pred", last, last), function)
    if operation in ("shl", "shr") and not rest and last[0] in "bu":
        function = _shift(operation == "shl", WIDTHS[last])
        return (last, last, "u32"), function
    if operation == "shr" and not rest and last[0] == "s":
        return (last, last, "u32"), _shift_signed(WIDTHS[last])
    if operation in ("div", "rem") and not rest and last[0] in "us":
        return (last,) * 3, _divide_integers(last, operation == "rem")
    nan_types = ("f16", "bf16", "f16x2", "bf16x2", "f32")
    if operation in ("min", "max") and rest == ["NaN"] and last in nan_types:
        return (last,) * 3, _minmax_nan(last, operation == "max")
    if operation == "mul" and rest == ["hi"] and last[0] in "us":
        return (last,) * 3, _multiply_high(last)
    if operation == "bfe" and last in ("u32", "s32"):
        return (last, last, "u32", "u32"), _extract(last == "s32")
    if operation in ("min", "max") and not rest and last == "f64":
        return (last,) * 3, _minmax_number(last, operation == "max")
    if operation in ("min", "max") and not rest and last[0] in "us":
        function = np.minimum if operation == "min" else np.maximum
        if last.endswith("x2"):
            return (last,) * 3, floats.pairwise(_minmax(last[:-2], function))
        return (last,) * 3, _minmax(last, function)
    if opcode in ("add.s16x2", "add.u16x2"):
        return (last,) * 3, floats.pairwise(np.add)
    if opcode == "prmt.b32":
        return ("b32", "b32", "b32", "b32"), _permute_bytes
    if operation == "neg" and not rest:
        sign = {"f32": 1 << 31, "f64": 1 << 63, "f16": 1 << 15, "bf16": 1 << 15}
        sign |= {"f16x2": 1 << 31 | 1 << 15, "bf16x2": 1 << 31 | 1 << 15}
        if last in sign:
            bit = carrier(last).type(sign[last])
            return (last, last), lambda a: a ^ bit
        return (last, last), lambda a: (~a) + carrier(last).type(1)
    if operation == "mul" and rest == ["wide"] and last in ("u16", "s16", "u32", "s32"):
        wide = f"{last[0]}{2 * WIDTHS[last]}"
        return (wide, last, last), _multiply_wide(last)
    if operation == "mad" and rest == ["lo"] and last[0] in "us":
        return (last,) * 4, lambda a, b, c: a * b + c
    name = ".".join([operation] + rest)
    if name in INTEGER and last[0] in "us":
        return (last,) * 3, INTEGER[name]
    if operation in FLOAT and rest == ["rn"]:
        function = _float_arithmetic(operation, last)
        return function and ((last,) * 3, function)
    if opcode == "fma.rn.f32":
        return ("f32",) * 4, floats.fma_f32
    if opcode == "fma.rn.f64":
        return ("f64",) * 4, floats.fma_f64
    if operation == "cvt":
        return _convert(modifiers)
    return None


@lru_cache(maxsize=None)
def semantics(opcode):
    """((type of the result, types of the operands...), function), or an error."""
    found = _lookup(opcode)
    if not found:
        raise PtxError(f"instruction '{opcode}' is not known")
    return found


def immediate(text, ptx_type):
    """A literal as the bits of `ptx_type`, or None."""
    kind = carrier(ptx_type)
    if text[:2] in ("0f", "0d"):
        return np.array(int(text[2:], 16), kind)
    try:
        value = int(text.removesuffix("U"), 0)
    except ValueError:
        return None
    if ptx_type == "pred":
        return np.array(bool(value))
    return np.array(value & (2 ** WIDTHS[ptx_type] - 1), kind)
