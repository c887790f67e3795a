# What a program declares: parameters, units, the grid and its rank groups.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Built from the same plain dictionaries as the units of cases.json.

from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Optional

from .dtypes import Dtype, dtype


@dataclass
class Param:
    name: str
    shape: tuple
    storage: Dtype
    shard_dim: int = 0
    precision: dict = field(default_factory=dict)
    frozen: bool = False


@dataclass
class Grid:
    """A unit's view of the grid: which axes shard and which replicate."""

    shape: tuple
    shard_axes: tuple
    replicate_axes: tuple

    @property
    def ranks(self):
        return prod(self.shape)

    @property
    def w(self):
        return prod(self.shape[a] for a in self.shard_axes)

    @property
    def h(self):
        return prod(self.shape[a] for a in self.replicate_axes)

    def coordinates(self, rank):
        out = []
        for size in reversed(self.shape):
            out.append(rank % size)
            rank //= size
        return tuple(reversed(out))

    def group(self, rank, axes):
        """The ranks that share all other coordinates with `rank`, row-major
        over `axes` as listed."""
        here = list(self.coordinates(rank))
        members = []
        for place in product(*(range(self.shape[a]) for a in axes)):
            for axis, coordinate in zip(axes, place):
                here[axis] = coordinate
            members.append(self._number(here))
        return members

    def _number(self, coordinates):
        number = 0
        for coordinate, size in zip(coordinates, self.shape):
            number = number * size + coordinate
        return number

    def shard_place(self, rank):
        return self.group(rank, self.shard_axes).index(rank)


@dataclass
class Unit:
    name: str
    params: list
    grid: Grid
    precision: dict = field(default_factory=dict)
    reduction: str = "avg"
    factor: Optional[float] = None

    def param(self, name):
        return next(p for p in self.params if p.name == name)

    @property
    def trainable(self):
        return [p for p in self.params if not p.frozen]

    @property
    def divisor(self):
        if self.factor is not None:
            return self.factor
        return self.grid.w * self.grid.h if self.reduction == "avg" else 1


def grid_of(grid, unit):
    """The unit's own axes, else the grid's; shard axes default to those that
    do not replicate."""
    shape = tuple(grid["shape"])
    replicate = unit.get("replicate_axes", grid.get("replicate_axes", []))
    others = [a for a in range(len(shape)) if a not in replicate]
    shard = unit.get("shard_axes", grid.get("shard_axes", others))
    return Grid(shape, tuple(shard), tuple(replicate))


def units_of(description):
    """The units of a dictionary with `grid` and `units`."""
    units = []
    for unit in description["units"]:
        params = [
            Param(
                p["name"],
                tuple(p["shape"]),
                dtype(p["storage"]),
                p.get("shard_dim", 0),
                p.get("precision", {}),
                p.get("frozen", False),
            )
            for p in unit["params"]
        ]
        units.append(
            Unit(
                unit["name"],
                params,
                grid_of(description["grid"], unit),
                unit.get("precision", {}),
                unit.get("reduction", "avg"),
                unit.get("divide_factor"),
            )
        )
    return units
