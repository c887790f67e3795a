# The two ops of declared programs, on any of a unit's parameters.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from .declarations import param_ref, shard_shape
from .text import Value, call, several, symbol, tensor_type


def _values(prefix, unit, params, types, role):
    return [
        Value(f"%{prefix}{i}", t, f"fsdp.{role}", param_ref(unit, p), p["name"])
        for i, (p, t) in enumerate(zip(params, types))
    ]


def shards(prefix, grid, unit, params, dtype_of, role="shard"):
    """One value for each parameter, cut; `dtype_of` says of which dtype."""
    types = [tensor_type(shard_shape(grid, unit, p), dtype_of(p)) for p in params]
    return _values(prefix, unit, params, types, role)


def full(prefix, unit, params, dtype_of, role="full"):
    types = [tensor_type(p["shape"], dtype_of(p)) for p in params]
    return _values(prefix, unit, params, types, role)


def _call(name, callee, operands, results):
    """The line of an op that names its results."""
    left, parts = several(name, len(results))
    for value, ssa in zip(results, parts):
        value.ssa = ssa
    return call(
        left, callee, [o.ssa for o in operands], [o.type for o in operands],
        [r.type for r in results],
    )


def unshard(name, unit, operands, results):
    return _call(name, f"fsdp.unshard {symbol(unit['name'])}", operands, results)


def reduce_grads(name, unit, params, operands, results):
    names = ", ".join(symbol(p["name"]) for p in params)
    callee = f"fsdp.reduce_grads {symbol(unit['name'])}[{names}]"
    return _call(name, callee, operands, results)
