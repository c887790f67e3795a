# Compares casts and arithmetic around our ops with the oracle, bit by bit.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.execution.casts FOLDER-OF-THE-TOOLS FOLDER-TO-WORK-IN [OPTION-OF-FSDP-COMPILE...]

import subprocess
import sys
from pathlib import Path

import numpy as np

from fsdp_test.ir import Value, function, grid_text, tensor_type
from fsdp_test.oracle import dtypes, tensor_file
from fsdp_test.oracle.dtypes import BF16, F16, F32, F64

DTYPES = [F16, BF16, F32, F64]


def samples():
    """Values at and beside each value and each midpoint of f16 and bf16, in
    the wider types; every pattern of the 16-bit types; random patterns."""
    random = np.random.default_rng(1)
    patterns = np.arange(65536, dtype=np.uint16)
    narrow = {F16: patterns.view(np.float16), BF16: patterns}

    f32 = [patterns.astype(np.uint32) << np.uint32(16) | np.uint32(low)
           for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    halves = narrow[F16].astype(np.float32).view(np.uint32)
    # Half of the last place of an f16 is bit 12 of an f32; less for subnormals,
    # whose values and midpoints are met by the random patterns below.
    f32 += [halves + np.uint32(low) for low in (1, 0xFFF, 0x1000, 0x1001)]
    tiny = (random.integers(0, 1 << 12, 65536) * 2.0**-26).astype(np.float32)
    f32 += [tiny.view(np.uint32), random.integers(0, 1 << 32, 65536, np.uint32)]
    f32 = np.concatenate(f32).view(np.float32)

    # The same places in f64, and one step beside each.
    with np.errstate(all="ignore"):
        exact = f32.astype(np.float64)
        f64 = [exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)]
        large = random.integers(0, 1 << 63, 65536, np.uint64).view(np.float64)
        f64 += [large, -large, exact[: 1 << 16] * 2.0**-20]
    return {**narrow, F32: f32, F64: np.concatenate(f64)}


def cast_ops(source, target, count):
    """The ops of a cast; equal widths go through f32."""
    def one(name, a, b, type_a, type_b):
        return f"  %{b} = arith.{name} %{a} : tensor<{count}x{type_a}> to tensor<{count}x{type_b}>\n"

    if source.size == target.size:
        return (one("extf", "a", "w", source, F32)
                + one("truncf", "w", "r", F32, target))
    name = "extf" if source.size < target.size else "truncf"
    return one(name, "a", "r", source, target)


def entry(name, inputs, result, body, count):
    arguments = [Value(f"%{n}", tensor_type([count], t)) for n, t in inputs]
    results = [Value("%r", tensor_type([count], result))]
    lines = [line.removeprefix("  ") for line in body.splitlines()]
    return function(name, arguments, results, lines) + "\n"


def main():
    tools, folder = Path(sys.argv[1]), Path(sys.argv[2])
    on_gpu = "--target=cuda" in sys.argv and "--emulate" not in sys.argv
    values = samples()
    if on_gpu:  # an interpreter is slow: some of the wider ones
        some = np.random.default_rng(3)
        for t in (F32, F64):
            values[t] = some.choice(values[t], 20_000, replace=False)
    text = grid_text({"shape": [1]}) + "\n"
    checks = []  # name, inputs, result dtype, expected

    for source in DTYPES:
        a = values[source]
        for target in DTYPES:
            if source is target:
                continue
            name = f"{source}_to_{target}"
            text += entry(name, [("a", source)], target,
                          cast_ops(source, target, a.size), a.size)
            checks.append((name, [(source, a)], target,
                           dtypes.cast(a, source, target)))

    # Two operations after each other are two roundings.
    random = np.random.default_rng(2)
    for t in (F16, BF16):
        a = values[t]
        b = random.permutation(a)
        count = a.size
        kind = f"tensor<{count}x{t}>"
        body = (f"  %s = arith.addf %a, %b : {kind}\n"
                f"  %r = arith.addf %s, %b : {kind}\n")
        text += entry(f"add_{t}", [("a", t), ("b", t)], t, body, count)
        checks.append((f"add_{t}", [(t, a), (t, b)], t,
                       dtypes.add(dtypes.add(a, b, t), b, t)))
        with np.errstate(all="ignore"):
            wide_a, wide_b = dtypes.widen(a, t), dtypes.widen(b, t)
            for op, result in (("mulf", wide_a * wide_b),
                               ("divf", wide_a / wide_b)):
                name = f"{op}_{t}"
                text += entry(name, [("a", t), ("b", t)], t,
                              f"  %r = arith.{op} %a, %b : {kind}\n", count)
                checks.append((name, [(t, a), (t, b)], t,
                               dtypes.narrow(result, t)))

    (folder / "casts.mlir").write_text(text)
    subprocess.run([tools / "fsdp-compile", folder / "casts.mlir",
                    "--opt-level=0", *sys.argv[3:], "-o", folder / "casts.so"],
                   check=True)
    failed = 0
    for name, inputs, t, expected in checks:
        tensor_file.write(folder / "in.safetensors",
                          {f"arg{i}": (s, (a.size,), a)
                           for i, (s, a) in enumerate(inputs)})
        subprocess.run([tools / "fsdp-run", folder / "casts.so", "--ranks=1",
                        *(["--device=cuda"] if on_gpu else []),
                        f"--entry={name}", f"--in={folder}/in.safetensors",
                        f"--out={folder}/out.safetensors"],
                       check=True, stdout=subprocess.DEVNULL)
        got = tensor_file.read(folder / "out.safetensors")["result0"][2]
        wrong = dtypes.differences(got, expected, t)
        if wrong.size:
            at = wrong[0]
            operands = ", ".join(dtypes.show(a[at], s) for s, a in inputs)
            print(f"{name}: {wrong.size} of {expected.size} wrong; of "
                  f"{operands}: expected {dtypes.show(expected[at], t)}, "
                  f"got {dtypes.show(got[at], t)}")
            failed += 1
    print(f"{len(checks) - failed} of {len(checks)} correct")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
