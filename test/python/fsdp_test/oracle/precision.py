# Profiles: the param, reduce and grad dtype of every parameter.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from dataclasses import dataclass
from functools import reduce
from typing import Optional

from .dtypes import Dtype, dtype, promote


class Refused(Exception):
    """The profile refuses the unit; the message says why."""


@dataclass
class Precision:
    param: Dtype
    reduce: Optional[Dtype]
    grad: Optional[Dtype]


def _given(unit, param, key):
    name = param.precision.get(key, unit.precision.get(key))
    return dtype(name) if name else None


def resolve(unit, profile="per_param"):
    """{parameter name: Precision}, or Refused."""
    out = {}
    for p in unit.params:
        if not p.storage.floating:
            if "param" in p.precision:
                raise Refused(
                    f"'{p.name}' of type {p.storage} asks for {p.precision['param']}"
                )
            out[p.name] = Precision(p.storage, None, None)
            continue
        param = _given(unit, p, "param") or p.storage
        grad = _given(unit, p, "grad") or p.storage
        out[p.name] = Precision(param, _given(unit, p, "reduce") or param, grad)

    floating = [p for p in unit.params if p.storage.floating]
    counted = [p for p in floating if not p.frozen] or floating
    if profile == "stable":
        _check_uniform(unit, out)
    elif profile == "grad_dtype" and floating:
        _one_reduce_dtype(unit, counted, floating, out)
    return out


def _check_uniform(unit, out):
    """`stable` is one policy per unit."""
    trainable = [p for p in unit.trainable if p.storage.floating]
    for what in ("storage", "param", "reduce", "grad"):
        names = {}
        for p in trainable:
            t = p.storage if what == "storage" else getattr(out[p.name], what)
            names.setdefault(t.name, []).append(p.name)
        if len(names) > 1:
            listed = "; ".join(f"{t}: {', '.join(n)}" for t, n in names.items())
            raise Refused(
                f"unit '{unit.name}' has no uniform {what} dtype: {listed}"
            )


def _one_reduce_dtype(unit, counted, floating, out):
    """`grad_dtype` reduces a unit in one promoted dtype."""

    def votes(p):
        if "reduce" in unit.precision:
            return dtype(unit.precision["reduce"])
        return _given(unit, p, "grad") or p.storage

    joint = reduce(promote, (votes(p) for p in counted))
    for p in floating:
        if not p.frozen:
            asked = p.precision.get("param")
            allowed = {p.storage.name, unit.precision.get("param", p.storage.name)}
            if asked and asked not in allowed:
                raise Refused(
                    f"'{p.name}' asks for param dtype {asked}, allowed are "
                    + ", ".join(sorted(allowed))
                )
            asked = p.precision.get("reduce")
            if asked and asked != joint.name:
                raise Refused(
                    f"'{p.name}' asks for reduce dtype {asked}, the unit's is {joint}"
                )
        out[p.name].reduce = joint
