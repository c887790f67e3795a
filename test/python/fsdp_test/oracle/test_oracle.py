# Unit tests of the oracle, on values that were worked out by hand.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Run: python3 -m fsdp_test.oracle.test_oracle      (ends with `N passed, N failed`)

import os
import sys
import tempfile
import unittest
from fractions import Fraction
from math import inf, nan

import numpy as np

from fsdp_test.examples import check as check_example
from fsdp_test.oracle import buckets, dtypes, fill, program, reduction, tensor_file
from fsdp_test.oracle.description import Grid, Param, Unit
from fsdp_test.oracle.dtypes import BF16, F16, F32, F64, dtype
from fsdp_test.oracle.layout import BucketLayout, ShardLayout
from fsdp_test.oracle.precision import Refused, resolve


def f32_from_bits(pattern):
    return np.array([pattern], np.uint32).view(np.float32)


def cast_bits(x, src, dst):
    return int(dtypes.bits(dtypes.cast(x, src, dst))[0])


def values(a, t):
    return dtypes.widen(a, t).tolist()


def nearest_float8(x, t):
    """The pattern of the nearest number, by trying all of magnitude up to 1."""
    bias, fraction = dtypes.FLOAT8[t]

    def value(bits):
        exponent, rest = bits >> fraction, bits & ((1 << fraction) - 1)
        if exponent:
            rest += 1 << fraction
        return Fraction(rest) * Fraction(2) ** (max(exponent, 1) - bias - fraction)

    one = bias << fraction
    best = min(
        range(one + 1), key=lambda bits: (abs(value(bits) - abs(Fraction(x))), bits & 1)
    )
    return best | (0x80 if np.signbit(x) else 0)


def of(t, *numbers):
    return dtypes.narrow(np.array(numbers, np.float64), t)


class Casts(unittest.TestCase):
    def test_f32_to_bf16(self):
        for source, target in [
            (0x3F808000, 0x3F80),  # tie to even, down
            (0x3F818000, 0x3F82),  # tie to even, up
            (0x3F808001, 0x3F81),
            (0x7F7F7FFF, 0x7F7F),
            (0x7F7F8000, 0x7F80),  # overflow
            (0xFF7FFFFF, 0xFF80),
            (0x00008000, 0x0000),
            (0x00008001, 0x0001),  # subnormals are not flushed
            (0x80000001, 0x8000),  # -0
            (0xFF800000, 0xFF80),
        ]:
            with self.subTest(hex(source)):
                self.assertEqual(cast_bits(f32_from_bits(source), F32, BF16), target)

    def test_nan_stays_nan(self):
        for pattern in (0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF800001):
            for t in (BF16, F16, F64):
                with self.subTest(hex(pattern), to=t):
                    out = dtypes.cast(f32_from_bits(pattern), F32, t)
                    self.assertTrue(dtypes.is_nan(out, t)[0])

    def test_f32_to_f16(self):
        for source, target in [
            (65519.996, 0x7BFF),
            (65520.0, 0x7C00),
            (2.0**-24, 0x0001),
            (2.0**-25, 0x0000),
            (1 + 2.0**-11, 0x3C00),
            (1 + 3 * 2.0**-11, 0x3C02),
            (-65536.0, 0xFC00),
        ]:
            with self.subTest(source):
                x = np.array([source], np.float32)
                self.assertEqual(cast_bits(x, F32, F16), target)
        self.assertEqual(cast_bits(f32_from_bits(0x33000001), F32, F16), 0x0001)
        self.assertEqual(cast_bits(f32_from_bits(0x387FF000), F32, F16), 0x0400)

    def test_f64_to_bf16_rounds_once(self):
        x = 1 + 2.0**-8 + 2.0**-30
        self.assertEqual(values(of(BF16, x), BF16), [1.0078125])
        by_way_of_f32 = dtypes.cast(of(F32, x), F32, BF16)
        self.assertEqual(values(by_way_of_f32, BF16), [1.0])

    def test_f64_to_bf16_against_exact_arithmetic(self):
        rng = np.random.default_rng(7)
        x = rng.standard_normal(2000) * 2.0 ** rng.integers(-140, 128, 2000)
        values_near = dtypes.widen(of(BF16, *x.tolist()), BF16).astype(np.float64)
        ties = values_near[np.isfinite(values_near)] * (1 + 2.0**-8)
        near = np.nextafter(ties, inf)
        for v in np.concatenate([x, ties, near, -near]).tolist():
            self.assertEqual(values(of(BF16, v), BF16)[0], nearest_bf16(v), v)

    def test_bf16_and_f16(self):
        self.assertEqual(values(dtypes.cast(of(BF16, 65536), BF16, F16), F16), [inf])
        tiny = dtypes.cast(of(F16, 2.0**-24), F16, BF16)
        self.assertEqual(values(tiny, BF16), [2.0**-24])

    def test_opaque_types_are_not_cast(self):
        with self.assertRaises(ValueError):
            dtypes.cast(np.zeros(1, np.int8), dtype("i8"), F32)


def nearest_bf16(v):
    """Nearest even by exact arithmetic over the two neighbours."""
    if v == 0:
        return v
    exact = abs(Fraction(v))
    exponent = -133
    while Fraction(2) ** (exponent + 8) <= exact:
        exponent += 1
    ulp = Fraction(2) ** exponent
    steps = exact / ulp
    down = int(steps)
    rest = steps - down
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2):
        down += 1
    out = float(down * ulp)
    out = inf if out >= 2.0**128 else out
    return -out if v < 0 else out


class Division(unittest.TestCase):
    def test_divide(self):
        got = dtypes.divide(of(BF16, 1, 1.25, 5, -7.5), BF16, 3)
        self.assertEqual(values(got, BF16), [0.333984375, 0.416015625, 1.6640625, -2.5])
        got = dtypes.divide(of(F16, 65504, 2.0**-24), F16, 2)
        self.assertEqual(values(got, F16), [32752, 0])
        self.assertEqual(values(dtypes.divide(of(F16, 44992), F16, 1.5), F16), [30000])

    def test_cast_comes_before_divide(self):
        how = reduction.Plan(divide=2)
        got = reduction.pack_gradient(np.array([65520], np.float32), F32, F16, how)
        self.assertEqual(values(got, F16), [inf])

    def test_predivisor(self):
        table = {
            1: 1, 2: 2, 3: 2, 4: 2, 5: 2, 6: 4, 8: 4, 12: 4, 16: 4, 24: 8,
            37.5: 1, 64: 8, 96: 16, 128: 16, 300: 8, 512: 32,
        }
        for d, q in table.items():
            with self.subTest(d):
                self.assertEqual(reduction.predivisor(d), q)

    def test_division_table(self):
        def how(wire, shape=(4,), replicate=(), **unit):
            shard = tuple(a for a in range(len(shape)) if a not in replicate)
            grid = Grid(shape, shard, replicate)
            return reduction.plan(Unit("u", [], grid, **unit), wire)

        plan = reduction.Plan
        hsdp = dict(shape=(2, 4), replicate=(0,))
        self.assertEqual(how(F32), plan("avg"))
        self.assertEqual(how(F32, (1,)), plan("sum"))
        self.assertEqual(how(F32, **hsdp), plan("avg", None, "avg"))
        self.assertEqual(how(F32, factor=4, **hsdp), plan("avg", None, "sum"))
        self.assertEqual(how(F32, factor=8, **hsdp), plan("premul", 0.125, "sum"))
        self.assertEqual(how(BF16, factor=3), plan("premul", 0.333984375))
        self.assertEqual(how(F32, factor=1), plan("sum"))
        self.assertEqual(how(F32, reduction="sum"), plan("sum"))
        three = how(BF16, reduction="sum", factor=3)
        self.assertEqual(three, plan("sum", None, None, None, 3))
        self.assertEqual(how(F16), plan("sum", None, None, 2, 2))
        self.assertEqual(how(F16, (2,)), plan("sum", None, None, 2, None))
        self.assertEqual(how(F16, **hsdp), plan("sum", None, "sum", 4, 2))
        self.assertEqual(how(F16, reduction="sum"), plan("sum"))
        self.assertEqual(how(F32, (1,), factor=4), plan("premul", 0.25))

    def test_average_after(self):
        def how(wire, shape=(4,), replicate=(), **unit):
            shard = tuple(a for a in range(len(shape)) if a not in replicate)
            unit = Unit("u", [], Grid(shape, shard, replicate), **unit)
            return reduction.plan(unit, wire, average="after")

        plan, hsdp = reduction.Plan, dict(shape=(2, 3), replicate=(0,))
        for wire in (F16, BF16, F32, F64):
            self.assertEqual(how(wire), plan("sum", split_divide=4))
            self.assertEqual(how(wire, factor=7.5), plan("sum", split_divide=7.5))
            self.assertEqual(how(wire, factor=1), plan("sum"))
            self.assertEqual(how(wire, (1,)), plan("sum"))
            self.assertEqual(how(wire, reduction="sum"), plan("sum"))
            both = plan("sum", None, "sum", None, 6)
            self.assertEqual(how(wire, **hsdp), both)


class Reductions(unittest.TestCase):
    def check(self, terms, t, mode, expected, accumulate=None):
        got = reduction.combine([of(t, x) for x in terms], t, mode, None, accumulate)
        self.assertEqual(values(got, t), [expected])

    def test_table(self):
        self.check([256, 1, 1, 1], BF16, "avg", 64)
        self.check([256, 1, 1, 1], BF16, "avg", 65, "f32")
        self.check([1, 1, 1, 256], BF16, "avg", 65)
        self.check([256, 1, 1, 1], F32, "avg", 64.75)
        self.check([256, 1, 1, 1], BF16, "sum", 256)
        self.check([256, 1, 1, 1], BF16, "sum", 260, "f32")
        self.check([1] * 512, BF16, "sum", 256)
        self.check([1] * 512, BF16, "sum", 512, "f32")
        self.check([100] * 3, BF16, "avg", 100.5)

    def test_multiplies_before_the_sum(self):
        got = reduction.combine([of(F32, x) for x in (1, 2, 4)], F32, "avg")
        self.assertEqual(int(dtypes.bits(got)[0]), 0x40155556)

    def test_negative_zero(self):
        got = reduction.combine([of(F32, -0.0)] * 3, F32, "sum")
        self.assertEqual(int(dtypes.bits(got)[0]), 0x80000000)

    def test_ring(self):
        self.assertEqual(reduction.ring([0, 1, 2, 3], 0), [3, 2, 1, 0])
        self.assertEqual(reduction.ring([0, 1, 2, 3], 2), [1, 0, 3, 2])
        self.assertEqual(reduction.ring([0], 0), [0])
        # Segments of at most a mebibyte, at least two: 12 MB over 3 ranks are 12.
        chunks = {(1000, 4): 1000, (1001, 4): 1002, (1000003, 4): 1000004}
        for (length, size), chunk in chunks.items():
            self.assertEqual(reduction.ring_chunk(length, 3, size), chunk)
        # Rows of one element on four ranks, in chunks of two.
        grid = Grid((4,), (0,), ())
        packed = [[of(BF16, x)] * 4 for x in (256, 1, 1, 1)]
        got = reduction.reduce_scatter(
            grid, packed, BF16, reduction.Plan("sum"), "ring", (0, 1)
        )
        self.assertEqual([values(x, BF16)[0] for x in got], [260, 260, 256, 256])
        # The same shares in rows of an even length.
        got = reduction.reduce_scatter(
            grid, packed, BF16, reduction.Plan("sum"), "ring", (0, 64)
        )
        self.assertEqual([values(x, BF16)[0] for x in got], [260, 256, 256, 260])

    def test_partial_before_the_all_reduce(self):
        unit = Unit("u", [Param("w", (2,), F32)], Grid((2, 2), (1,), (0,)))
        reducer = reduction.GradientReducer(
            unit, unit.params[0], ShardLayout((2,), 0, 2), resolve(unit)["w"]
        )

        def step(numbers, with_all_reduce):
            full = [np.full(2, x, np.float32) for x in numbers]
            return reducer.step(full, F32, with_all_reduce)

        self.assertIsNone(step([1, 2, 3, 4], False))
        got = step([10, 20, 30, 40], True)
        self.assertEqual([s.tolist() for s in got], [[27.5]] * 4)

    def test_groups_are_row_major_over_the_axes(self):
        grid = Grid((2, 4), (1,), (0,))
        self.assertEqual(grid.group(5, grid.shard_axes), [4, 5, 6, 7])
        self.assertEqual(grid.group(5, grid.replicate_axes), [1, 5])
        self.assertEqual(grid.group(5, (1, 0)), [0, 4, 1, 5, 2, 6, 3, 7])


class Layouts(unittest.TestCase):
    def test_true_extents(self):
        for size, w, rows in [
            (10, 4, [3, 3, 3, 1]), (9, 4, [3, 3, 3, 0]), (6, 4, [2, 2, 2, 0]),
            (5, 4, [2, 2, 1, 0]), (3, 4, [1, 1, 1, 0]), (1, 4, [1, 0, 0, 0]),
            (257, 8, [33] * 7 + [26]), (7, 1, [7]), (0, 4, [0] * 4),
        ]:
            with self.subTest(size):
                self.assertEqual(ShardLayout((size,), 0, w).rows, rows)

    def test_dimension_one(self):
        layout = ShardLayout((2, 5), 1, 2)
        self.assertEqual((layout.chunk, layout.outer, layout.inner), (3, 2, 3))
        shares = [s.tolist() for s in layout.cut(np.arange(1, 11))]
        self.assertEqual(shares, [[1, 2, 3, 6, 7, 8], [4, 5, 0, 9, 10, 0]])

    def test_join_inverts_cut(self):
        for shape, k, w in [((5, 3, 2), 0, 4), ((5, 3, 2), 1, 2), ((2, 2, 7), 2, 3)]:
            layout = ShardLayout(shape, k, w)
            full = np.arange(np.prod(shape))
            self.assertEqual(layout.join(layout.cut(full)).tolist(), full.tolist())

    def test_bucket(self):
        layouts = [
            ShardLayout((10,), 0, 4), ShardLayout((8, 3), 0, 4),
            ShardLayout((3, 8), 1, 4), ShardLayout((16, 2), 0, 4),
        ]
        members = [F32, BF16, BF16, BF16]
        for align, offsets, row in [
            (128, [0, 128, 256, 384], 512), (1, [0, 12, 24, 36], 52),
        ]:
            bucket = BucketLayout(layouts, members, None, align)
            self.assertEqual((bucket.offsets, bucket.row_bytes), (offsets, row))
        bucket = BucketLayout(layouts[:3], [F32] * 3, F32, 1)
        self.assertEqual((bucket.offsets, bucket.row_elements), ([0, 12, 36], 15))


class Precisions(unittest.TestCase):
    def unit(self, precision, *params):
        return Unit("u", list(params), Grid((2,), (0,), ()), precision)

    def test_absent_reduce_dtype(self):
        unit = self.unit({"param": "bf16"}, Param("w", (4,), F32))
        got = [resolve(unit, p)["w"].reduce for p in ("per_param", "grad_dtype")]
        self.assertEqual(got, [BF16, F32])

    def test_opaque(self):
        ids = Param("ids", (4,), dtype("i64"), frozen=True)
        got = resolve(self.unit({"param": "bf16"}, ids))["ids"]
        self.assertEqual((got.param, got.reduce), (dtype("i64"), None))

    def test_promotion(self):
        unit = self.unit({}, Param("a", (4,), BF16), Param("b", (4,), F16))
        self.assertEqual(resolve(unit, "grad_dtype")["a"].reduce, F32)

    def test_stable_refuses(self):
        unit = self.unit({}, Param("a", (4,), BF16), Param("b", (4,), F32))
        with self.assertRaisesRegex(Refused, "storage"):
            resolve(unit, "stable")


class Buckets(unittest.TestCase):
    def test_limit(self):
        params = [
            Param(name, (n,), F32)
            for name, n in [("a", 64), ("b", 64), ("c", 64), ("big", 512), ("d", 8)]
        ]
        unit = Unit("u", params, Grid((2,), (0,), ()))
        options = buckets.Options(max_bytes=512)
        got = buckets.gather_buckets([unit], resolve(unit), options)
        names = [[p.name for _, p, _ in b.members] for b in got]
        self.assertEqual(names, [["a", "b"], ["c"], ["big"], ["d"]])


class Fill(unittest.TestCase):
    def test_published_vectors(self):
        self.assertEqual(fill.fnv1a64(b""), 0xCBF29CE484222325)
        self.assertEqual(fill.fnv1a64(b"a"), 0xAF63DC4C8601EC8C)
        self.assertEqual(fill.fnv1a64(b"foobar"), 0x85944171F73967E8)
        got = fill.splitmix64(np.zeros(1, np.uint64))
        self.assertEqual(int(got[0]), 0xE220A8397B1DCDAF)

    def test_fill_against_python_integers(self):
        mask = (1 << 64) - 1

        def one(name, f, seed, rank):
            x = seed ^ fill.fnv1a64(name.encode()) ^ (rank << 40) ^ f
            x = (x + 0x9E3779B97F4A7C15) & mask
            x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
            x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
            return x ^ (x >> 31)

        for rank in (0, 3):
            h = [one("w.grad", f, 5, rank) for f in range(1000, 1100)]
            want = [((x >> 40) - 2**23) / 2**23 for x in h]
            got = fill.fill("w.grad", F32, 1000, 1100, 5, rank)
            self.assertEqual(got.tolist(), want)
            got = fill.fill("w.grad", BF16, 1000, 1100, 5, rank)
            self.assertEqual(got.tolist(), of(BF16, *want).tolist())
            got = fill.fill("w.grad", dtype("i8"), 1000, 1100, 5, rank)
            self.assertEqual(got.tolist(), [x % 100 for x in h])
            for t in ("f8E4M3FN", "f8E5M2"):
                got = fill.fill("w.grad", dtype(t), 1000, 1100, 5, rank)
                self.assertEqual(got.tolist(), [nearest_float8(x, t) for x in want])

    def test_float8(self):
        for t, vectors in {
            # Exponent 7, three bits of fraction: steps of 2^-3 below 1, of
            # 2^-9 below the smallest normal number, 2^-6.
            "f8E4M3FN": [
                (0.0, 0x00), (-1.0, 0xB8), (1.0, 0x38), (0.5, 0x30), (0.9375, 0x37),
                (0.96875, 0x38),  # tie, up to the even
                (0.90625, 0x36),  # tie, down
                (0.90625 + 2**-23, 0x37),
                (2**-6, 0x08), (2**-9, 0x01),
                (2**-10, 0x00), (-(2**-10), 0x80),  # tie to zero, with its sign
                (3 * 2**-10, 0x02),
                (2**-6 - 2**-10, 0x08),  # up to the normal number
            ],
            "f8E5M2": [
                (1.0, 0x3C), (-0.875, 0xBB), (0.9375, 0x3C), (0.8125, 0x3A),
                (2**-14, 0x04), (2**-16, 0x01), (2**-17, 0x00), (3 * 2**-17, 0x02),
                (-(2**-23), 0x80),
            ],
        }.items():
            for value, bits in vectors:
                with self.subTest(t=t, value=value):
                    got = dtypes.float8_bits(np.array([value]), dtype(t))
                    self.assertEqual(got.tolist(), [bits])
                    self.assertEqual(nearest_float8(value, t), bits)

    def test_checksum(self):
        rng = np.random.default_rng(3)
        for size in (0, 1, 5000, 262144, 262145):
            data = rng.integers(0, 256, size, dtype=np.uint8)
            with self.subTest(size):
                self.assertEqual(
                    fill.checksum(data, 12345), fill.fnv1a64(data.tolist(), 12345)
                )

    def test_checksum_continues(self):
        data = np.arange(300000, dtype=np.uint32).view(np.uint8)
        half = fill.checksum(data[:600001])
        self.assertEqual(fill.checksum(data[600001:], half), fill.checksum(data))


class Programs(unittest.TestCase):
    """The streamed program against one that cuts, packs and joins."""

    def test_backward(self):
        for grid in (Grid((3,), (0,), ()), Grid((2, 4), (1,), (0,))):
            unit = Unit(
                "u",
                [Param("a", (5, 3), F32, 1), Param("b", (7,), F32)],
                grid,
                {"param": "bf16", "reduce": "bf16"},
            )
            for result, p in zip(program.backward([unit], 9), unit.params):
                layout = ShardLayout(p.shape, p.shard_dim, grid.w)
                reducer = reduction.GradientReducer(
                    unit, p, layout, resolve(unit)[p.name]
                )
                count = int(np.prod(p.shape))
                full = [
                    fill.fill(f"{p.name}.grad", BF16, 0, count, 9, r)
                    for r in range(grid.ranks)
                ]
                shards = reducer.step(full, BF16)
                want = layout.join([shards[r] for r in grid.group(0, grid.shard_axes)])
                got = np.concatenate([x for _, x in result.pieces()])
                self.assertEqual(dtypes.bits(got).tolist(), dtypes.bits(want).tolist())

    def test_forward(self):
        unit = Unit(
            "u", [Param("a", (5, 3), F32)], Grid((2,), (0,), ()), {"param": "bf16"}
        )
        (result,) = program.forward([unit], 9)
        want = dtypes.cast(fill.fill("a", F32, 0, 15, 9), F32, BF16)
        ((_, got),) = result.pieces()
        self.assertEqual(got.tolist(), want.tolist())


class TensorFile(unittest.TestCase):
    def test_round_trip(self):
        tensors = {
            "a": (BF16, (2, 2), of(BF16, 1, -2, nan, 4)),
            "none": (F32, (0, 3), F32.zeros(0)),
            "ids": (dtype("i64"), (3,), np.array([1, -1, 1 << 40])),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            tensor_file.write(path, tensors)
            got = tensor_file.read(path)
        self.assertEqual(list(got), list(tensors))
        for name, (t, shape, array) in tensors.items():
            self.assertEqual(got[name][:2], (t, shape))
            same = dtypes.bits(got[name][2]) == dtypes.bits(array)
            self.assertTrue(same.all(), name)


class CheckExample(unittest.TestCase):
    """The comparison with result files, on a small unit."""

    def setUp(self):
        params = [Param("a", (5, 3), F32), Param("b", (7,), F32)]
        self.unit = Unit("u", params, Grid((2,), (0,), ()), {"param": "bf16"})
        self.results = program.backward([self.unit], 4)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "out.safetensors")
        self.tensors = {}
        for r in self.results:
            whole = np.concatenate([x for _, x in r.pieces()])
            self.tensors[r.name] = (r.dtype, r.shape, whole)

    def check(self, printed=()):
        tensor_file.write(self.path, self.tensors)
        files = {self.path: tensor_file.read(self.path)}
        check_example.check(self.results, files, dict(printed), None)

    def test_equal(self):
        sums = {
            name: fill.checksum(array.view(np.uint8))
            for name, (_, _, array) in self.tensors.items()
        }
        self.check({"stdout": sums})

    def test_one_bit(self):
        self.tensors["b.grad"][2].view(np.uint32)[3] ^= 1
        with self.assertRaisesRegex(check_example.Wrong, "'b.grad', element 3"):
            self.check()

    def test_shape(self):
        t, _, array = self.tensors["a.grad"]
        self.tensors["a.grad"] = (t, (3, 5), array)
        with self.assertRaisesRegex(check_example.Wrong, "expected f32"):
            self.check()

    def test_missing(self):
        del self.tensors["b.grad"]
        with self.assertRaisesRegex(check_example.Wrong, "'b.grad' is missing"):
            self.check()

    def test_checksum(self):
        with self.assertRaisesRegex(check_example.Wrong, "checksum of 'a.grad'"):
            self.check({"stdout": {"a.grad": 1}})


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    failed = len({id(t) for t, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
