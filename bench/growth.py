#!/usr/bin/python3
"""How the time of each pass grows with the program.

Usage: bench/growth.py [--quick] [--tools DIR] [--kinds K,...] [--repeat N]
                       [--max-slope S] [--list-slow SECONDS]

Writes programs of one kind and growing size (parameters of a unit, units,
entries, calls, branches, loops, casts, branches that are refused), sends them
through fsdp-optimize and fsdp-to-cpu at both levels with --mlir-timing, and
prints, for each pass that takes at least 20 ms on the largest one, the time per
item and the slope: the exponent k of time = size^k between the smallest and the
largest size. n log n has a slope of about 1.1 here, n^2 one of 2. Fails where a
slope is larger than --max-slope (1.5), which leaves room for a busy machine and
for caches, or than KNOWN_STEEP says, where upstream's passes grow faster still. Times
are the fastest of some repeats.

--quick takes small sizes, for the test suite.
"""

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARD, FULL = "tensor<2x3xf32>", "tensor<8x3xf32>"
WHOLE = "tensor<8x3xbf16>"


def declare(units):
    """The grid, and `units`: parameters by the name of their unit."""
    lines = ["shard.grid @dp(shape = 4)"]
    for unit, params in units.items():
        lines.append(f"fsdp.unit @{unit} on @dp precision <param = bf16, reduce = f32> {{")
        lines += [f"  fsdp.param @{param} : {FULL}" for param in params]
        lines.append("}")
    return lines


def unshard(result, unit, operands):
    """A gather of a unit of as many parameters as there are `operands`."""
    types = ", ".join([SHARD] * len(operands)), ", ".join([WHOLE] * len(operands))
    return (f"{result} = fsdp.unshard @{unit}({', '.join(operands)}) "
            f": ({types[0]}) -> ({types[1]})")


def parameters(n):
    """One unit of n parameters, forward and backward."""
    names = [f"w{i}" for i in range(n)]
    lines = declare({"u": names})
    lines.append("func.func @forward("
                 + ", ".join(f"%a{i}: {SHARD} {{fsdp.shard = @u::@{p}}}" for i, p in enumerate(names))
                 + ") -> (" + ", ".join(f"{WHOLE} {{fsdp.full = @u::@{p}}}" for p in names) + ") {")
    lines.append("  " + unshard(f"%r:{n}", "u", [f"%a{i}" for i in range(n)]))
    lines.append("  return " + ", ".join(f"%r#{i}" for i in range(n)) + " : "
                 + ", ".join([WHOLE] * n) + "\n}")
    lines.append("func.func @backward("
                 + ", ".join(f"%a{i}: {WHOLE} {{fsdp.full_grad = @u::@{p}}}" for i, p in enumerate(names))
                 + ") -> (" + ", ".join(f"{SHARD} {{fsdp.shard_grad = @u::@{p}}}" for p in names) + ") {")
    lines.append(f"  %r:{n} = fsdp.reduce_grads @u[{', '.join('@' + p for p in names)}]("
                 + ", ".join(f"%a{i}" for i in range(n)) + ") : ("
                 + ", ".join([WHOLE] * n) + ") -> (" + ", ".join([SHARD] * n) + ")")
    lines.append("  return " + ", ".join(f"%r#{i}" for i in range(n)) + " : "
                 + ", ".join([SHARD] * n) + "\n}")
    return lines


def units(n):
    """n units of one parameter, gathered in one function."""
    lines = declare({f"u{i}": [f"w{i}"] for i in range(n)})
    lines.append("func.func @f(" + ", ".join(f"%a{i}: {SHARD}" for i in range(n)) + ") -> ("
                 + ", ".join([WHOLE] * n) + ") {")
    lines += ["  " + unshard(f"%r{i}", f"u{i}", [f"%a{i}"]) for i in range(n)]
    lines.append("  return " + ", ".join(f"%r{i}" for i in range(n)) + " : "
                 + ", ".join([WHOLE] * n) + "\n}")
    return lines


def entries(n):
    """n entries that gather one unit."""
    lines = declare({"u": ["w"]})
    for i in range(n):
        lines += [f"func.func @f{i}(%a: {SHARD}) -> {WHOLE} {{",
                  "  " + unshard("%r", "u", ["%a"]), f"  return %r : {WHOLE}", "}"]
    return lines


def calls(n):
    """n private functions that gather one unit, called in turn."""
    lines = declare({"u": ["w"]})
    for i in range(n):
        lines += [f"func.func private @f{i}(%a: {SHARD}) -> {WHOLE} {{",
                  "  " + unshard("%r", "u", ["%a"]), f"  return %r : {WHOLE}", "}"]
    lines.append(f"func.func @f(%a: {SHARD}) -> {WHOLE} {{")
    lines += [f"  %r{i} = call @f{i}(%a) : ({SHARD}) -> {WHOLE}" for i in range(n)]
    lines += [f"  return %r{n - 1} : {WHOLE}", "}"]
    return lines


def inside(n, opening, arguments):
    """n regions with a gather, one after the other."""
    lines = declare({"u": ["w"]})
    lines += [f"func.func private @use({WHOLE})",
              f"func.func @f(%a: {SHARD}, {arguments}) {{",
              "  %zero = arith.constant 0 : index",
              "  %one = arith.constant 1 : index"]
    for i in range(n):
        lines += [f"  {opening} {{".replace("NUMBER", str(i)),
                  "    " + unshard("%r", "u", ["%a"]), "  }"]
    return lines + ["  return", "}"]


def branches(n):
    """n branches on one uniform condition."""
    return inside(n, "scf.if %c", "%c: i1 {fsdp.uniform}")


def loops(n):
    """n loops."""
    return inside(n, "scf.for %iNUMBER = %zero to %n step %one", "%n: index {fsdp.uniform}")


def refused(n):
    """n branches on n conditions that nothing makes uniform."""
    return inside(n, "scf.if %cNUMBER", ", ".join(f"%c{i}: i1" for i in range(n)))


def refused_order(n):
    """n branches on a rank's place, with two communicators in either order."""
    lines = ["shard.grid @g(shape = 2x2x2)"]
    for unit, axis in (("a", 1), ("b", 2)):
        lines += [f"fsdp.unit @{unit} on @g shard_axes [{axis}] {{",
                  "  fsdp.param @w" + unit + " : tensor<4xf32>", "}"]
    lines += ["func.func @f(%s: tensor<2xf32>) {",
              "  %i = shard.process_multi_index on @g axes = [0] : index"]
    for i in range(n):
        lines += [f"  %c{i} = arith.constant {i} : index",
                  f"  %p{i} = arith.cmpi eq, %i, %c{i} : index",
                  f"  scf.if %p{i} {{",
                  *(f"    %{unit} = fsdp.unshard @{unit}(%s) : (tensor<2xf32>) -> tensor<4xf32>"
                    for unit in ("ab" if i % 2 else "ba")),
                  "  }"]
    return lines + ["  return", "}"]


def casts(n):
    """n gathered parameters, each cast."""
    names = [f"w{i}" for i in range(n)]
    lines = declare({"u": names})
    lines.append("func.func @f(" + ", ".join(f"%a{i}: {SHARD}" for i in range(n)) + ") -> ("
                 + ", ".join([FULL] * n) + ") {")
    lines.append("  " + unshard(f"%r:{n}", "u", [f"%a{i}" for i in range(n)]))
    lines += [f"  %c{i} = arith.extf %r#{i} : {WHOLE} to {FULL}" for i in range(n)]
    lines.append("  return " + ", ".join(f"%c{i}" for i in range(n)) + " : "
                 + ", ".join([FULL] * n) + "\n}")
    return lines


LOWER = [["--fsdp-optimize", "--fsdp-to-cpu"],
         ["--fsdp-optimize=opt-level=0", "--fsdp-to-cpu"]]
VERIFY = [["--fsdp-verify-collectives"]]
# The program, its sizes, those for the suite, and where it goes.
KINDS = {
    "parameters": (parameters, (500, 8000), (150, 1200), LOWER),
    "units": (units, (500, 8000), (100, 800), LOWER),
    "entries": (entries, (500, 8000), (100, 800), LOWER[:1]),
    "calls": (calls, (500, 8000), (100, 800), LOWER[:1]),
    "branches": (branches, (500, 8000), (100, 800), LOWER[:1]),
    "loops": (loops, (500, 8000), (100, 800), LOWER[:1]),
    "casts": (casts, (500, 8000), (150, 1200), LOWER[:1]),
    "refused": (refused, (1000, 16000), (500, 4000), VERIFY),
    "refused-order": (refused_order, (500, 4000), (200, 1600), VERIFY),
}
# What is known to grow faster, by kind and pass, all of it upstream's: the slope
# that it may have instead, which no other pass may.
KNOWN_STEEP = {
    ("calls", "OneShotBufferizePass"): 2.4,  # every call asks the whole module
    ("branches", "OneShotBufferizePass"): 2.2,
    ("loops", "OneShotBufferizePass"): 2.2,
}
LINE = re.compile(r"^\s+([\d.]+) \(\s*[\d.]+%\)\s+(\S.*)$")


def measure(tool, path, flags, repeat, fastest):
    """Lowers `fastest`, seconds by pass, to the fastest of some more runs."""
    for _ in range(repeat):
        run = subprocess.run(
            [tool, path, *flags, "--mlir-timing", "--mlir-timing-display=list",
             "--mlir-disable-threading", "-o", os.devnull],
            stderr=subprocess.PIPE, text=True)
        seconds = {}
        for line in run.stderr.splitlines():
            if match := LINE.match(line):
                name = match.group(2).strip()
                seconds[name] = seconds.get(name, 0) + float(match.group(1))
        if not seconds:
            sys.exit(f"growth: no times from {flags}: {run.stderr[-500:]}")
        for name, value in seconds.items():
            fastest[name] = min(value, fastest.get(name, value))


def slopes(kind, sizes, before, after, options):
    """(pass, seconds, slope, slope that it may have) of what is slow enough."""
    small, large = sizes
    for name, seconds in sorted(after.items(), key=lambda item: -item[1]):
        if seconds >= options.list_slow and name != "Total":
            # What is too short to measure is taken as the clock's step.
            first = max(before.get(name, 0), 1e-3)
            slope = math.log(seconds / first) / math.log(large / small)
            yield name, seconds, slope, KNOWN_STEEP.get((kind, name), options.max_slope)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tools", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tries", type=int, default=4,
                        help="measure again, so often at most, what is too steep")
    parser.add_argument("--max-slope", type=float, default=1.5)
    parser.add_argument("--list-slow", type=float, default=0.02)
    options = parser.parse_args()
    tool, wrong, checked = options.tools / "fsdp-opt", 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds.split(","):
            generate, long_sizes, quick_sizes, pipelines = KINDS[kind]
            small, large = quick_sizes if options.quick else long_sizes
            files = []
            for size in (small, large):
                files.append(Path(folder) / f"{kind}-{size}.mlir")
                files[-1].write_text("\n".join(generate(size)) + "\n")
            for flags in pipelines:
                before, after = {}, {}
                # Other work on the machine makes a pass look steep, but not
                # every time.
                for _ in range(options.tries):
                    for fastest, file in zip((before, after), files):
                        measure(tool, file, flags, options.repeat, fastest)
                    found = list(slopes(kind, (small, large), before, after, options))
                    if all(slope <= allowed for _, _, slope, allowed in found):
                        break
                print(f"{kind} {small} to {large}, {' '.join(flags)}: "
                      f"{after.get('root', 0):.2f} s")
                for name, seconds, slope, allowed in found:
                    checked += 1
                    bad = slope > allowed
                    wrong += bad
                    print(f"  {name:40} {seconds / large * 1e6:9.1f} us each, slope "
                          f"{slope:.2f}{'  TOO STEEP' if bad else ''}"
                          f"{'  known' if not bad and slope > options.max_slope else ''}")
    print(f"{checked} passes, {wrong} too steep")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
