# Elementwise ops of a program around ours: every op of arith that has a kernel, on
# every dtype, in chains, with splats, broadcasts, transposes and slices, compared
# bit by bit with NumPy.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.execution.elementwise FOLDER-OF-THE-TOOLS FOLDER-TO-WORK-IN [OPTION-OF-FSDP-COMPILE...]

import subprocess
import sys
from pathlib import Path

import numpy as np

from fsdp_test.edges import EDGES
from fsdp_test.ir import Value, function, grid_text, tensor_type
from fsdp_test.oracle import dtypes, tensor_file
from fsdp_test.oracle.dtypes import BF16, F16, F32, F64, dtype

FLOATS = [F16, BF16, F32, F64]
INTEGERS = [dtype(f"i{bits}") for bits in (8, 16, 32, 64)]
END = 37  # elements of a tile that is not full


def count_of(*types):
    """A full tile of a kernel whose widest elements are of these, and an end."""
    return 256 * 4 * (16 // max(t.size for t in types)) + END


def random_bits(rng, t, count):
    """Any pattern, infinities, NaNs and subnormals among them; half of them near
    one, so that two have something to do with each other."""
    carrier = rng.integers(0, 256, count * t.size, np.uint8).view(t.carrier)
    if not t.floating:
        return carrier
    near = dtypes.narrow(rng.normal(size=count), t)
    special = dtypes.narrow(np.array(EDGES), t)
    values = np.where(rng.random(count) < 0.5, near, carrier)
    where = rng.integers(0, count, count // 16)
    values[where] = special[rng.integers(0, special.size, where.size)]
    return values


def in_floats(t, function, *arrays):
    """One op of f64, or of f32 with its result rounded to a 16-bit dtype."""
    return dtypes.narrow(function(*[dtypes.widen(a, t) for a in arrays]), t)


def minmax(t, largest, ignores_nan):
    """NaN if one is, or the other one; +0 is larger than -0."""
    def function(a, b):
        pick = (a > b) if largest else (a < b)
        zeros = (a == 0) & (b == 0)
        pick = np.where(zeros, np.signbit(b) if largest else np.signbit(a), pick)
        result = np.where(pick, a, b)
        either = np.isnan(a) | np.isnan(b)
        if ignores_nan:
            return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
        return np.where(either, a.dtype.type(np.nan), result)

    return lambda a, b: in_floats(t, function, a, b)


class Program:
    """A module of entries, each with its inputs and what it must return."""

    def __init__(self):
        self.text = grid_text({"shape": [1]}) + "\n"
        self.entries = []
        self.rng = np.random.default_rng(7)

    def add(self, name, arguments, results, body):
        """`arguments`: [(dtype, shape, array)], as %0, %1; `results` likewise, with
        what is expected; `body` defines %r0, %r1."""
        def values(prefix, tensors):
            return [
                Value(f"%{prefix}{i}", tensor_type(shape, t))
                for i, (t, shape, _) in enumerate(tensors)
            ]

        lines = [line.removeprefix("  ") for line in body.splitlines()]
        entry = function(name, values("a", arguments), values("r", results), lines)
        self.text += entry + "\n"
        self.entries.append((name, arguments, results))

    def values(self, t, *shape):
        return t, shape, random_bits(self.rng, t, int(np.prod(shape)))

    def simple(self, op, t, function, operands=2, result=None):
        """One op of `arith` on tensors."""
        result = result or t
        count = count_of(t, result)
        inputs = [self.values(t, count) for _ in range(operands)]
        names = ", ".join(f"%a{i}" for i in range(operands))
        source, target = f"tensor<{count}x{t}>", f"tensor<{count}x{result}>"
        kind = f"{source} to {target}" if result is not t else source
        self.add(
            f"{op}_{t}_{result}", inputs,
            [(result, (count,), function(*[a for _, _, a in inputs]))],
            f"  %r0 = arith.{op} {names} : {kind}\n",
        )


def floats(program):
    for t in FLOATS:
        for op, function in (
            ("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply),
            ("divf", np.divide),
        ):
            program.simple(op, t, lambda a, b, f=function: in_floats(t, f, a, b))
        program.simple("negf", t, lambda a: in_floats(t, np.negative, a), 1)
        for op, largest, ignores in (
            ("maximumf", True, False), ("minimumf", False, False),
            ("maxnumf", True, True), ("minnumf", False, True),
        ):
            program.simple(op, t, minmax(t, largest, ignores))
        # Comparison and choice: i1 in between, in the chain and as a tensor.
        n = count_of(t)
        x, y = program.values(t, n), program.values(t, n)
        (_, shape, a), (_, _, b) = x, y
        wide_a, wide_b = dtypes.widen(a, t), dtypes.widen(b, t)
        kind, bits = f"tensor<{n}x{t}>", f"tensor<{n}xi1>"
        program.add(
            f"choose_{t}", [x, y],
            [(t, shape, np.where(wide_a > wide_b, a, b)),
             (t, shape, np.where(wide_a > wide_b, b, a)),
             (t, shape, np.where(~(wide_a >= wide_b), a, b))],
            f"  %m = arith.cmpf ogt, %a0, %a1 : {kind}\n"
            f"  %r0 = arith.select %m, %a0, %a1 : {bits}, {kind}\n"
            f"  %r1 = arith.select %m, %a1, %a0 : {bits}, {kind}\n"
            f"  %n = arith.cmpf ult, %a0, %a1 : {kind}\n"
            f"  %r2 = arith.select %n, %a0, %a1 : {bits}, {kind}\n",
        )
        for other in FLOATS:
            if other.size != t.size:
                op = "extf" if other.size > t.size else "truncf"
                program.simple(
                    op, t, lambda a, o=other: dtypes.cast(a, t, o), 1, result=other
                )


def integers(program):
    for t in INTEGERS:
        kind, unsigned = t.carrier, np.dtype(f"u{t.size}")
        for op, function in (
            ("addi", np.add), ("subi", np.subtract), ("muli", np.multiply),
            ("andi", np.bitwise_and), ("ori", np.bitwise_or), ("xori", np.bitwise_xor),
            ("minsi", np.minimum), ("maxsi", np.maximum),
        ):
            program.simple(op, t, lambda a, b, f=function: f(a, b).astype(kind))
        for op, function in (("minui", np.minimum), ("maxui", np.maximum)):
            program.simple(
                op, t,
                lambda a, b, f=function: f(a.view(unsigned), b.view(unsigned)).view(kind),
            )
        for other in INTEGERS:
            wider = np.dtype(f"u{other.size}")
            if other.size > t.size:
                program.simple("extsi", t, lambda a, o=other: a.astype(o.carrier), 1, other)
                program.simple(
                    "extui", t,
                    lambda a, o=other, w=wider: a.view(unsigned).astype(w).view(o.carrier),
                    1, other,
                )
            elif other.size < t.size:
                program.simple("trunci", t, lambda a, o=other: a.astype(o.carrier), 1, other)
        for other in FLOATS:
            if t.size == 8 and other.size == 2:
                continue  # refused: it would take more than one rounding
            wide = np.float32 if t.size <= 2 else np.float64

            def convert(a, o=other, w=wide):
                if o.size >= 4:
                    return a.astype(o.carrier)
                return dtypes.narrow(a.astype(w), o)

            program.simple("sitofp", t, convert, 1, other)
            program.simple(
                "uitofp", t, lambda a, f=convert: f(a.view(unsigned)), 1, other
            )
        # Shifts by less than the width, division by a constant.
        n = count_of(t)
        (_, shape, a) = x = program.values(t, n)
        amount, divisor = 3, 7
        lines = f"  %c = arith.constant dense<{amount}> : tensor<{n}x{t}>\n"
        lines += f"  %d = arith.constant dense<{divisor}> : tensor<{n}x{t}>\n"
        expected = [
            ("shli", (a.astype(np.int64) << amount).astype(kind)),
            ("shrsi", a >> amount), ("shrui", (a.view(unsigned) >> unsigned.type(amount)).view(kind)),
        ]
        quotient = np.trunc(a.astype(np.longdouble) / divisor).astype(kind)
        expected_by = [
            ("divsi", quotient), ("remsi", (a - quotient * kind.type(divisor)).astype(kind)),
            ("divui", (a.view(unsigned) // unsigned.type(divisor)).view(kind)),
            ("remui", (a.view(unsigned) % unsigned.type(divisor)).view(kind)),
        ]
        for i, (op, _) in enumerate(expected + expected_by):
            by = "%c" if i < len(expected) else "%d"
            lines += f"  %r{i} = arith.{op} %a0, {by} : tensor<{n}x{t}>\n"
        program.add(
            f"constants_{t}", [x],
            [(t, shape, value) for _, value in expected + expected_by], lines,
        )
    for t in (F32, F64):
        for other in INTEGERS:
            n = count_of(t, other)
            values = program.rng.integers(-100, 100, n) / 4
            program.add(
                f"to_{t}_{other}", [(t, (n,), values.astype(t.carrier))],
                [(other, (n,), np.trunc(values).astype(other.carrier))],
                f"  %r0 = arith.fptosi %a0 : tensor<{n}x{t}> to tensor<{n}x{other}>\n",
            )


def chains(program):
    """What programs do: a scaled sum of gradients, moments, clipping."""
    n = count_of(F32)
    x, y, z = program.values(BF16, n), program.values(BF16, n), program.values(F32, n)
    (_, _, g), (_, _, h), (_, _, m) = x, y, z
    g32, h32 = dtypes.widen(g, BF16), dtypes.widen(h, BF16)
    total = (g32 + h32) * np.float32(0.375)
    moment = m * np.float32(0.9) + total * np.float32(0.1)
    program.add(
        "step", [x, y, z],
        [(F32, (n,), moment), (BF16, (n,), dtypes.narrow(moment, BF16))],
        f"""  %scale = arith.constant dense<0.375> : tensor<{n}xf32>
  %beta = arith.constant dense<0.9> : tensor<{n}xf32>
  %rest = arith.constant dense<0.1> : tensor<{n}xf32>
  %w0 = arith.extf %a0 : tensor<{n}xbf16> to tensor<{n}xf32>
  %w1 = arith.extf %a1 : tensor<{n}xbf16> to tensor<{n}xf32>
  %sum = arith.addf %w0, %w1 : tensor<{n}xf32>
  %scaled = arith.mulf %sum, %scale : tensor<{n}xf32>
  %kept = arith.mulf %a2, %beta : tensor<{n}xf32>
  %new = arith.mulf %scaled, %rest : tensor<{n}xf32>
  %r0 = arith.addf %kept, %new : tensor<{n}xf32>
  %r1 = arith.truncf %r0 : tensor<{n}xf32> to tensor<{n}xbf16>
""")
    # Every rounding stays: 256 + 1 is 256 in bf16, also where both sums are one
    # kernel.
    ones = np.full(n, 256.0, np.float32)
    program.add(
        "roundings", [(F32, (n,), ones)], [(F32, (n,), ones)],
        f"""  %c = arith.constant dense<1.0> : tensor<{n}xbf16>
  %x = arith.truncf %a0 : tensor<{n}xf32> to tensor<{n}xbf16>
  %y = arith.addf %x, %c : tensor<{n}xbf16>
  %z = arith.addf %y, %c : tensor<{n}xbf16>
  %r0 = arith.extf %z : tensor<{n}xbf16> to tensor<{n}xf32>
""")
    # A product and a sum are two roundings, no fused one.
    (_, _, a), (_, _, b), (_, _, c) = v = [program.values(F32, n) for _ in range(3)]
    program.add(
        "no_fma", v, [(F32, (n,), a * b + c)],
        f"""  %p = arith.mulf %a0, %a1 : tensor<{n}xf32>
  %r0 = arith.addf %p, %a2 : tensor<{n}xf32>
""")
    many = [program.values(F32, n) for _ in range(12)]
    total = many[0][2]
    lines = ""
    for i, (_, _, value) in enumerate(many[1:], 1):
        total = total + value
        name = "%r0" if i == 11 else f"%s{i}"
        before = "%a0" if i == 1 else f"%s{i - 1}"
        lines += f"  {name} = arith.addf {before}, %a{i} : tensor<{n}xf32>\n"
    program.add("many", many, [(F32, (n,), total)], lines)


def shapes(program):
    """Dense and strided operands of several dimensions."""
    rows, columns = 37, 75
    x, y = program.values(F32, rows, columns), program.values(F32, columns)
    (_, _, a), (_, _, bias) = x, y
    matrix = a.reshape(rows, columns)
    program.add(
        "broadcast", [x, y], [(F32, (rows, columns), (matrix + bias).reshape(-1))],
        f"""  %e = tensor.empty() : tensor<{rows}x{columns}xf32>
  %r0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a0, %a1 : tensor<{rows}x{columns}xf32>, tensor<{columns}xf32>) outs(%e : tensor<{rows}x{columns}xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }} -> tensor<{rows}x{columns}xf32>
""")
    (_, _, a) = x = program.values(BF16, 5, 6, 7)
    program.add(
        "transpose", [x],
        [(BF16, (7, 5, 6), a.reshape(5, 6, 7).transpose(2, 0, 1).reshape(-1))],
        """  %e = tensor.empty() : tensor<7x5x6xbf16>
  %r0 = linalg.transpose ins(%a0 : tensor<5x6x7xbf16>) outs(%e : tensor<7x5x6xbf16>) permutation = [2, 0, 1]
""")
    x, y = program.values(F32, rows, columns), program.values(F32, rows, 20)
    (_, _, a), (_, _, b) = x, y
    cut = a.reshape(rows, columns)[:, 5:45:2]
    placed = a.reshape(rows, columns).copy()
    placed[:, 3:23] = b.reshape(rows, 20)
    padded = np.zeros((rows + 2, 23), np.float32)
    padded[1:-1, 3:] = b.reshape(rows, 20)
    program.add(
        "slices", [x, y],
        [(F32, (rows, 20), cut.reshape(-1)), (F32, (rows, columns), placed.reshape(-1)),
         (F32, (rows + 2, 23), padded.reshape(-1)),
         (F32, (rows, columns + 20), np.concatenate([a.reshape(rows, columns), b.reshape(rows, 20)], 1).reshape(-1))],
        f"""  %r0 = tensor.extract_slice %a0[0, 5] [{rows}, 20] [1, 2] : tensor<{rows}x{columns}xf32> to tensor<{rows}x20xf32>
  %r1 = tensor.insert_slice %a1 into %a0[0, 3] [{rows}, 20] [1, 1] : tensor<{rows}x20xf32> into tensor<{rows}x{columns}xf32>
  %zero = arith.constant 0.0 : f32
  %r2 = tensor.pad %a1 low[1, 3] high[1, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  }} : tensor<{rows}x20xf32> to tensor<{rows + 2}x23xf32>
  %r3 = tensor.concat dim(1) %a0, %a1 : (tensor<{rows}x{columns}xf32>, tensor<{rows}x20xf32>) -> tensor<{rows}x{columns + 20}xf32>
""")
    for t in [dtype("f8E5M2"), dtype("i8"), F64]:
        a = program.rng.integers(0, 100, 99).astype(t.carrier)  # no NaN in 8 bits
        x = t, (9, 11), a
        program.add(
            f"column_{t}", [x], [(t, (9, 1), a.reshape(9, 11)[:, 4].copy())],
            f"  %r0 = tensor.extract_slice %a0[0, 4] [9, 1] [1, 1] : tensor<9x11x{t}> to tensor<9x1x{t}>\n",
        )
    # One element, none, a scalar in a tensor of rank 0.
    program.add(
        "one", [(F32, (1, 1), np.array([3.0], np.float32))],
        [(F32, (1, 1), np.array([9.0], np.float32))],
        "  %r0 = arith.mulf %a0, %a0 : tensor<1x1xf32>\n",
    )
    program.add(
        "none", [(F32, (0, 3), np.zeros(0, np.float32))],
        [(F32, (0, 3), np.zeros(0, np.float32))],
        "  %r0 = arith.mulf %a0, %a0 : tensor<0x3xf32>\n",
    )


def main():
    tools, folder = Path(sys.argv[1]), Path(sys.argv[2])
    options = sys.argv[3:]
    on_gpu = "--target=cuda" in options and "--emulate" not in options
    program = Program()
    with np.errstate(all="ignore"):
        floats(program)
        integers(program)
        chains(program)
        shapes(program)
    (folder / "all.mlir").write_text(program.text)
    subprocess.run([tools / "fsdp-compile", folder / "all.mlir", "--opt-level=0",
                    *options, "-o", folder / "all.so"], check=True)
    for name, arguments, _ in program.entries:
        tensor_file.write(folder / f"{name}.in.st",
                          {f"arg{i}": value for i, value in enumerate(arguments)})
    subprocess.run([tools / "fsdp-run", folder / "all.so",
                    *(["--device=cuda"] if on_gpu else []),
                    *[f"--entry={name}" for name, _, _ in program.entries],
                    f"--in={folder}/{{entry}}.in.st", f"--out={folder}/{{entry}}.out.st"],
                   check=True, stdout=subprocess.DEVNULL)
    wrong = checked = 0
    for name, arguments, results in program.entries:
        got = tensor_file.read(folder / f"{name}.out.st")
        for i, (t, shape, expected) in enumerate(results):
            checked += 1
            got_t, got_shape, array = got[f"result{i}"]
            if (got_t, got_shape) != (t, shape):
                print(f"{name}: result {i} is {got_shape} of {got_t}")
                wrong += 1
                continue
            differences = dtypes.differences(expected, array, t)
            if differences.size:
                at = differences[0]
                operands = ", ".join(
                    dtypes.show(a[at], s) for s, _, a in arguments if a.size == array.size
                )
                print(f"{name}: result {i}: {differences.size} of {array.size} differ; of "
                      f"{operands}: expected {dtypes.show(expected[at], t)}, got "
                      f"{dtypes.show(array[at], t)}")
                wrong += 1
    print(f"{checked} tensors, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
