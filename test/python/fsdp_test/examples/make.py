# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Writes a real model's units as an MLIR module for a number of ranks.

The committed examples are for 4 ranks: without MODEL all of them are written
again into examples/. A model that is too large for that needs -o. Shapes come
from examples/model_shapes.json.
"""

import argparse
import sys
import textwrap
from math import prod
from os.path import commonprefix
from pathlib import Path

from fsdp_test.ir import (
    grid_text, param_ref, shard_shape, symbol, tensor_type, unit_text,
)
from fsdp_test.paths import ROOT

from . import models

ABOUT = {
    "llama3_8b_layer": "A decoder layer of Llama-3-8B as one sharded unit.",
    "kimi_linear_kda_layer": (
        "A KDA mixture-of-experts layer of Kimi-Linear-48B-A3B as one sharded "
        "unit. A_log, dt_bias and the router's bias compute in f32 beside bf16 "
        "matrices, so the unit's one all-gather is a byte bucket. A_log is cut "
        "on its only dimension longer than 1."
    ),
    "deepseek_v3_671b": (
        "DeepSeek-V3 671B whole: a unit per layer, and one for the embeddings, "
        "the last norm and the output head. The router's bias computes in f32."
    ),
    "gpt2_124m": (
        "GPT-2 124M whole: a unit per block, and one for the embeddings and "
        "the last norm. wte has 50257 rows, so its shards are uneven; it is "
        "tied to the output head and declared once. The matrices of a block "
        "are stored [in, out] and are cut on dimension 1, their output features."
    ),
}


def header(model, description, file_name, command):
    grid, units = description["grid"], description["units"]
    params = [p for u in units for p in u["params"]]
    elements = sum(prod(p["shape"]) for p in params)
    ranks = prod(grid["shape"])
    facts = f"{len(params)} parameters, {elements:,} elements, {ranks} ranks"
    if len(grid["shape"]) == 2:
        facts += f" ({grid['shape'][0]} replicas of {grid['shape'][1]} shards)"
    about = f"{ABOUT[model]} {facts}; stored in f32, computed in bf16, reduced in f32."
    lines = textwrap.wrap(about, 76)
    lines += [
        "",
        f"Written by: {command}",
        "",
        f"  fsdp-opt {file_name} --fsdp-optimize --fsdp-print-plan -o /dev/null",
        f"  fsdp-compile {file_name} --target=cpu -o {model}.so",
        f"  fsdp-run {model}.so --ranks={ranks} --entry=backward --fill=1",
    ]
    return "\n".join(f"// {line}".rstrip() for line in lines)


class Values:
    """SSA names: the parameters' names without what they all share."""

    def __init__(self, units):
        names = [p["name"] for u in units for p in u["params"]]
        self.cut = commonprefix(names).rfind(".") + 1

    def __call__(self, param, suffix=""):
        return f"%{param['name'][self.cut:]}{suffix}"


def listed(items, indent):
    return f",\n{' ' * indent}".join(items)


def param_dtype(unit, param):
    return param.get("precision", {}).get("param", unit["precision"]["param"])


def function(grid, units, name, argument, result, op):
    """One entry. `argument` and `result`: (role, type of a parameter, suffix);
    `op`: the text of the unit's op; units in the order of their ops."""
    arg_role, arg_type, suffix = argument
    result_role, result_type = result
    value = Values(units)
    out_name = "full" if name == "forward" else "shard"
    pairs = [(u, p) for u in units for p in u["params"]]
    args = [
        f"{value(p, suffix)}: {arg_type(u, p)} {{{arg_role} = {param_ref(u, p)}}}"
        for u, p in pairs
    ]
    results = [
        f"{result_type(u, p)} {{{result_role} = {param_ref(u, p)}}}" for u, p in pairs
    ]
    lines = [
        f"func.func @{name}(",
        f"    {listed(args, 4)})",
        f"    -> ({listed(results, 8)}) {{",
    ]
    order = range(len(units)) if name == "forward" else reversed(range(len(units)))
    for i in order:
        unit = units[i]
        count = len(unit["params"])
        operands = listed([value(p, suffix) for p in unit["params"]], 6)
        types = listed([arg_type(unit, p) for p in unit["params"]], 7)
        out = listed([result_type(unit, p) for p in unit["params"]], 7)
        lines += [
            f"  %{out_name}{i}:{count} = {op(unit)}(",
            f"      {operands})",
            f"    : ({types})",
            f"   -> ({out})",
        ]
    returned = [
        f"%{out_name}{i}#{j}" for i, u in enumerate(units) for j in range(len(u["params"]))
    ]
    types = [result_type(u, p) for u, p in pairs]
    lines += [
        f"  return {listed(returned, 9)}",
        f"    : {listed(types, 6)}",
        "}",
    ]
    return "\n".join(lines)


def module(model, description, file_name, command):
    grid, units = description["grid"], description["units"]

    def shard(unit, param):
        return tensor_type(shard_shape(grid, unit, param), param["storage"])

    def full(unit, param):
        return tensor_type(param["shape"], param_dtype(unit, param))

    def unshard(unit):
        return f"fsdp.unshard {symbol(unit['name'])}"

    def reduce_grads(unit):
        names = listed([symbol(p["name"]) for p in unit["params"]], 6)
        return f"fsdp.reduce_grads {symbol(unit['name'])}[\n      {names}]"

    parts = [header(model, description, file_name, command), grid_text(grid)]
    parts += [unit_text(grid, u) for u in units]
    parts.append(
        "// Shards in, full parameters out.\n"
        + function(
            grid, units, "forward", ("fsdp.shard", shard, ""), ("fsdp.full", full),
            unshard,
        )
    )
    parts.append(
        "// Full gradients in, averaged shards out; the last unit comes first.\n"
        + function(
            grid, units, "backward", ("fsdp.full_grad", full, ".grad"),
            ("fsdp.shard_grad", shard), reduce_grads,
        )
    )
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(
        prog="make-examples", description=__doc__.splitlines()[0]
    )
    parser.add_argument("model", nargs="?", choices=sorted(models.MODELS))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--grid", metavar="AxB", help="A replicas of B shards")
    parser.add_argument("--experts", type=int, help="experts of an MoE layer")
    parser.add_argument("--layers", type=int, help="the first layers of DeepSeek-V3")
    parser.add_argument(
        "--divisor", type=int, default=1, help="divides every extent, rounded up"
    )
    parser.add_argument("-o", dest="output", metavar="FILE", help="default: examples/")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is stale"
    )
    args = parser.parse_args()
    if args.output and not args.model:
        parser.error("-o needs a model")
    if args.model in models.NOT_COMMITTED and not args.output:
        parser.error(f"{args.model} is too large for examples/: it needs -o")
    if args.layers is not None and args.model != "deepseek_v3_671b":
        parser.error("--layers is for deepseek_v3_671b")
    if args.ranks < 1 or args.divisor < 1:
        parser.error("--ranks and --divisor must be positive")
    if args.divisor > 1 and not args.output:
        parser.error("--divisor needs -o: examples/ has the real shapes")
    grid = [int(n) for n in args.grid.split("x")] if args.grid else None
    if grid and (len(grid) != 2 or prod(grid) != args.ranks):
        parser.error(f"--grid {args.grid} has not {args.ranks} ranks")

    command = f"scripts/make-examples --ranks {args.ranks}"
    command += f" --grid {args.grid}" if args.grid else ""
    command += f" --experts {args.experts}" if args.experts else ""
    command += f" --layers {args.layers}" if args.layers is not None else ""
    command += f" --divisor {args.divisor}" if args.divisor > 1 else ""
    committed = sorted(models.MODELS.keys() - models.NOT_COMMITTED)
    for model in [args.model] if args.model else committed:
        path = Path(args.output or ROOT / "examples" / f"{model}.mlir")
        name = path.name if args.output else f"examples/{path.name}"
        description = models.describe(
            model, args.ranks, grid, args.experts, args.layers, args.divisor
        )
        text = module(model, description, name, f"{command} {model}")
        if not args.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"make-examples: {path} is not what '{command} {model}' writes")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
