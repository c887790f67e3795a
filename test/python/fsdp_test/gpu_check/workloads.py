# What is measured, and what it should take.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Targets are microseconds per launch on an H100 and an H200 (SXM): 7 + bytes
# over 2.91 TB/s and 4.3 TB/s, what the best copy kernels reach there. They are
# a model until a run is in docs/results.

from dataclasses import dataclass

RANKS = 8

LAYER = [(6144, 2048), (2048, 2048), (8192, 2048), (2048, 8192)]
VECTORS = [(2048,)] * 4 + [(32,), (6144, 4)]

# A decoder layer of Llama-3-70B.
LLAMA_70B = [
    (8192, 8192), (1024, 8192), (1024, 8192), (8192, 8192),
    (28672, 8192), (28672, 8192), (8192, 28672), (8192,), (8192,),
]

# A block of a mixture of experts: 219M elements in 500 tensors.
EXPERTS = [(768, 512)] * 492 + [(2048, 3072)] * 4 + [(2048,)] * 4


def _mixed():
    return (
        [((768, 48), "bf16")] * 125 + [((2048, 49), "bf16")] * 125
        + [((2048, 64), "bf16")] * 125 + [((2048,), "f32")] * 125
    )


def _all(shapes, name):
    return [(shape, name) for shape in shapes]


@dataclass(frozen=True)
class Measured:
    """One op on members of (shape, dtype outside of the bucket)."""

    name: str
    op: str
    members: tuple
    wire: str
    h100: float  # most microseconds; None: no target
    h200: float
    torch_factor: float = 0  # at least so many times PyTorch's own time

    def scaled(self, divisor):
        """The same with smaller first dimensions, for tests."""
        members = tuple(
            ((max(shape[0] // divisor, 1),) + shape[1:], name)
            for shape, name in self.members
        )
        return Measured(self.name, self.op, members, self.wire, None, None)

    def target(self, device):
        return (
            self.h200 if "H200" in device else self.h100 if "H100" in device else None
        )


def _measured(name, op, members, wire, h100, h200, torch_factor=0):
    return Measured(name, op, tuple(members), wire, h100, h200, torch_factor)


WORKLOADS = [
    _measured(
        "P1", "chunk_cat", _all(LAYER, "bf16") + _all(VECTORS, "f32"), "f32",
        111, 78, torch_factor=1.7,
    ),
    _measured("P2", "chunk_cat", _all(LAYER, "bf16"), "bf16", 76, 54),
    _measured("P3", "chunk_cat", _mixed(), "f32", 77, 55),
    _measured("G1", "concat", _all(LAYER + VECTORS, "f32"), "bf16", 20, 16),
    _measured("G2", "concat", _all(EXPERTS, "f32"), "bf16", 64, 46),
    _measured("S1", "unchunk", _all(LAYER, "bf16"), "bf16", 76, 54),
    _measured("S2", "unchunk", _all(EXPERTS, "bf16"), "bf16", 308, 211),
    _measured("L1", "chunk_cat", _all(LLAMA_70B, "bf16"), "f32", 1770, 1200),
    _measured("L2", "unchunk", _all(LLAMA_70B, "bf16"), "bf16", 1183, 803),
    # The least that a launch takes.
    _measured("tiny", "chunk_cat", [((64, 8), "bf16")], "f32", None, None),
]
BY_NAME = {w.name: w for w in WORKLOADS}

# Those whose bits are compared at full size.
CHECKED_WHOLE = ["P1", "P3", "G1", "S1"]
