# Grids, units, parameters and buckets as text.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# They come as plain dictionaries in the format of test/cases.json.

from math import prod

from .text import number, symbol, tensor_type


def param_ref(unit, param):
    return f"{symbol(unit['name'])}::{symbol(param['name'])}"


def shard_axes(grid, unit):
    """Shard axes: the unit's, else the grid's, else all that do not replicate."""
    replicate = replicate_axes(grid, unit)
    others = [a for a in range(len(grid["shape"])) if a not in replicate]
    return unit.get("shard_axes", grid.get("shard_axes", others))


def replicate_axes(grid, unit):
    return unit.get("replicate_axes", grid.get("replicate_axes", []))


def shard_shape(grid, unit, param):
    """The full shape with the shard dimension divided among the ranks, rounded
    up."""
    w = prod(grid["shape"][a] for a in shard_axes(grid, unit))
    shape = list(param["shape"])
    k = param.get("shard_dim", 0)
    shape[k] = -(-shape[k] // w)
    return shape


def precision_text(entries):
    """`precision <param = ..., ...>` with a leading space, or nothing."""
    given = [f"{k} = {entries[k]}" for k in ("param", "reduce", "grad") if k in entries]
    return f" precision <{', '.join(given)}>" if given else ""


def param_text(param):
    text = f"fsdp.param {symbol(param['name'])} : "
    text += tensor_type(param["shape"], param["storage"])
    if param.get("shard_dim"):
        text += f" shard_dim {param['shard_dim']}"
    text += precision_text(param.get("precision", {}))
    return text + (" frozen" if param.get("frozen") else "")


def grid_text(grid, name="dp"):
    return f"shard.grid @{name}(shape = {'x'.join(map(str, grid['shape']))})"


def unit_text(grid, unit, grid_name="dp"):
    text = f"fsdp.unit {symbol(unit['name'])} on @{grid_name}"
    text += precision_text(unit.get("precision", {}))
    replicate = replicate_axes(grid, unit)
    if replicate or "shard_axes" in unit or "shard_axes" in grid:
        text += f" shard_axes {shard_axes(grid, unit)}"
        text += f" replicate_axes {replicate}" if replicate else ""
    if unit.get("reduction"):
        text += f" reduction {unit['reduction']}"
    if unit.get("divide_factor") is not None:
        text += f" divide_factor {number(unit['divide_factor'])}"
    if unit.get("profile"):
        text += f' attributes {{fsdp.profile = "{unit["profile"]}"}}'
    lines = [f"  {param_text(p)}" for p in unit["params"]]
    return "\n".join([text + " {", *lines, "}"])


def bucket_text(name, kind, unit, members, wire, align=128):
    """A bucket of a unit's parameters, by name; `kind` is gather or reduce."""
    names = ", ".join(map(symbol, members))
    text = f"fsdp.bucket {symbol(name)} {kind} {symbol(unit)}[{names}] : {wire}"
    return text + (f" align {align}" if align != 128 else "")
