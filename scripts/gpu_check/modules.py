# The modules that are compiled for the device check.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Those of test/ptx, which are in buffer form: that is what says which memory an
# op reads and writes. fsdp-compile takes tensors, and makes of an entry whose
# operands are an op's and whose results are its results that very launch.

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "ptx")]

import random_modules
import workloads as ptx_workloads

from . import workloads

# Half-precision sources can be tried out whole.
PATTERNS = 1 << 16
TIES = PATTERNS * 8  # every upper half with eight lower halves


def measured(workload):
    return ptx_workloads.Workload(
        workload.op, workload.members, workload.wire
    ).text()


def random_ops(count, seed):
    """Every kind and pair of dtypes, layouts at random: {ranks: module}."""
    return by_ranks(random_modules.modules(random_modules.random_cases(seed, count)))


def _exhaustive_ops():
    """(op, member's dtype, wire, extra)"""
    floats = ["f32", "bf16", "f16"]
    for source in floats:
        for target in floats:
            if source != target:
                yield "chunk_cat", source, target, ""
                yield "unchunk", target, source, ""
    for divisor in ("3.0", "7.0", "4.0"):
        for source in ("bf16", "f16"):
            yield "chunk_cat", source, "f32", f" divide {divisor}"
            yield "split", "f32", source, f" divide {divisor}"
        yield "split", "bf16", "f32", f" divide {divisor}"
        yield "split", "f32", "f32", f" divide {divisor}"


def exhaustive_ops():
    """Casts and divisions of every value of a 16-bit type, and of the f32 values
    around every tie."""
    texts = []
    for op, member, wire, extra in _exhaustive_ops():
        source = member if op == "chunk_cat" else wire
        elements = TIES if source == "f32" else PATTERNS
        texts.append(
            ptx_workloads.Workload(op, [((elements,), member)], wire, extra).text()
        )
    return by_ranks(texts)


GRID = re.compile(r"shard\.grid (@\w+)\s*\(shape = (\d+)\)\n")


def by_ranks(texts):
    """{ranks: one module of all of `texts` for so many}. Fills the names of each
    text with its number: a module has one grid, and no name twice."""
    modules = {}
    for number, text in enumerate(texts):
        grid, ranks = GRID.match(text).groups()
        text = GRID.sub("", text).replace(f" on {grid} ", " on @dp ")
        text = re.sub(r"@(u|b|f)\b", rf"@\g<1>{number}", text)
        text = re.sub(r"@p(\d+)\b", rf"@p{number}.\g<1>", text)
        head = f"shard.grid @dp(shape = {ranks})\n"
        modules[int(ranks)] = modules.get(int(ranks), head) + text + "\n"
    return modules


# --- buffers to tensors ------------------------------------------------------

FUNCTION = re.compile(
    r"func\.func (@\w+)\(.*\) \{\n"
    r"  fsdp\.(\w+) (.*?) (into|of) (@\w+)(.*) outs\((.*?) : (.*?)\) : \((.*?)\) -> \(\)\n"
    r"  return\n\}"
)


def _function_of_tensors(match):
    name, op, inputs, of, bucket, extra, outputs, output_types, input_types = (
        match.groups()
    )
    old = re.search(r" add\((.*?) : (.*?)\)", extra)
    arguments = inputs.split(", ") + (old[1].split(", ") if old else [])
    types = input_types.split(", ") + (old[2].split(", ") if old else [])
    count = len(outputs.split(", "))
    results = "%r" if count == 1 else ", ".join(f"%r#{i}" for i in range(count))
    head = ", ".join(f"{a}: {t}" for a, t in zip(arguments, types))
    text = (
        f"func.func {name}({head}) -> ({output_types}) {{\n"
        f"  %r{'' if count == 1 else f':{count}'} = fsdp.{op} {inputs} {of} {bucket}"
        f"{extra} : ({input_types}) -> ({output_types})\n"
        f"  return {results} : {output_types}\n}}"
    )
    return text.replace("memref<", "tensor<")


def of_tensors(text):
    """The functions of a module in buffer form, on tensors."""
    result, count = FUNCTION.subn(_function_of_tensors, text)
    if count != text.count("func.func"):
        raise ValueError(f"{text.count('func.func')} functions, understood {count}")
    return result


# --- whole runs --------------------------------------------------------------

# A step of a unit with all that the local ops do in one: casts both ways, byte
# buckets, a strided shard, parameters that do not divide, an f32 among bf16.
STEP = """\
shard.grid @dp(shape = RANKS)
fsdp.unit @block on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @up : tensor<1024x192xf32>
  fsdp.param @down : tensor<192x1021xf32> shard_dim 1
  fsdp.param @norm : tensor<1021xf32> precision <param = f32>
  fsdp.param @bias : tensor<10xf32>
}
func.func @forward(%up: tensor<UPx192xf32> {fsdp.shard = @block::@up},
                   %down: tensor<192xDOWNxf32> {fsdp.shard = @block::@down},
                   %norm: tensor<DOWNxf32> {fsdp.shard = @block::@norm},
                   %bias: tensor<BIASxf32> {fsdp.shard = @block::@bias})
    -> (tensor<1024x192xbf16> {fsdp.full = @block::@up},
        tensor<192x1021xbf16> {fsdp.full = @block::@down},
        tensor<1021xf32> {fsdp.full = @block::@norm},
        tensor<10xbf16> {fsdp.full = @block::@bias}) {
  %f:4 = fsdp.unshard @block(%up, %down, %norm, %bias)
      : (tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>)
      -> (tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>)
  return %f#0, %f#1, %f#2, %f#3
      : tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>
}
func.func @backward(%up: tensor<1024x192xbf16> {fsdp.full_grad = @block::@up},
                    %down: tensor<192x1021xbf16> {fsdp.full_grad = @block::@down},
                    %norm: tensor<1021xf32> {fsdp.full_grad = @block::@norm},
                    %bias: tensor<10xbf16> {fsdp.full_grad = @block::@bias})
    -> (tensor<UPx192xf32> {fsdp.shard_grad = @block::@up},
        tensor<192xDOWNxf32> {fsdp.shard_grad = @block::@down},
        tensor<DOWNxf32> {fsdp.shard_grad = @block::@norm},
        tensor<BIASxf32> {fsdp.shard_grad = @block::@bias}) {
  %g:4 = fsdp.reduce_grads @block[@up, @down, @norm, @bias](%up, %down, %norm, %bias)
      : (tensor<1024x192xbf16>, tensor<192x1021xbf16>, tensor<1021xf32>, tensor<10xbf16>)
      -> (tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>)
  return %g#0, %g#1, %g#2, %g#3
      : tensor<UPx192xf32>, tensor<192xDOWNxf32>, tensor<DOWNxf32>, tensor<BIASxf32>
}
"""


def step(ranks):
    text = STEP.replace("RANKS", str(ranks))
    for name, size in (("UP", 1024), ("DOWN", 1021), ("BIAS", 10)):
        text = text.replace(f"<{name}x", f"<{-(-size // ranks)}x")
        text = text.replace(f"x{name}x", f"x{-(-size // ranks)}x")
    return text
