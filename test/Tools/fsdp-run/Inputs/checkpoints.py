#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Writes the tensors of checkpoint.mlir in every form that --in reads.

The values have few bits, so that every dtype holds them.
"""

import json
from math import ceil

import numpy as np

RANKS = 3
TAGS = {"float16": "F16", "float32": "F32", "float64": "F64", "uint16": "BF16"}
ALL = {
    "scale": np.array(2.5, np.float32),  # no dimensions
    "w": np.arange(14, dtype=np.float32).reshape(7, 2) - 3,
    "short": np.array([0.25, -8]),
    "wide": np.arange(15, dtype=np.float32).reshape(3, 5) / 4,
}
DIMS = {"scale": 0, "w": 0, "short": 0, "wide": 1}


def write(path, tensors, more=()):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.tobytes()
        header[name] = {
            "dtype": TAGS[value.dtype.name], "shape": value.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    for name, tag, size in more:
        header[name] = {
            "dtype": tag, "shape": [size], "data_offsets": [len(data), len(data) + size],
        }
        data += bytes(size)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def index(path, weight_map):
    with open(path, "w") as file:
        json.dump({"metadata": {"total_size": 1}, "weight_map": weight_map}, file)


def some(*names):
    return {name: ALL[name] for name in names}


def bf16(value):
    return (value.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def shard(value, dim, rank, padded):
    value = value.reshape(1) if value.ndim == 0 else value
    chunk = ceil(value.shape[dim] / RANKS)
    value = np.take(value, range(min(rank * chunk, value.shape[dim]),
                                 min((rank + 1) * chunk, value.shape[dim])), dim)
    missing = [(0, chunk - n if d == dim and padded else 0) for d, n in enumerate(value.shape)]
    return np.ascontiguousarray(np.pad(value, missing))


def main():
    write("all.st", ALL)
    write("beside.st", ALL, [("new", "F7_NEW", 5), ("u", "U8", 3)])
    write("first.st", some("scale", "wide"))
    write("second.st", some("w", "short"))
    write("third.st", {"other": np.zeros(3)})
    files = {"scale": "first.st", "wide": "first.st", "w": "second.st", "short": "second.st"}
    index("model.json", files | {"other": "third.st"})
    index("absent.json", files | {"other": "absent.st"})
    index("needed.json", files | {"w": "absent.st"})
    index("lie.json", files | {"w": "first.st"})
    write("also-w.st", some("scale", "wide", "w"))
    index("twice.json", files | {"scale": "also-w.st", "wide": "also-w.st"})
    index("less.json", {k: v for k, v in files.items() if k != "short"})
    index("outside.json", files | {"w": "../second.st"})
    index("number.json", files | {"w": 2})
    with open("no-map.json", "w") as file:
        file.write('{"metadata": {}}')
    with open("two-maps.json", "w") as file:
        file.write('{"weight_map": {"w": "second.st", "w": "first.st"}}')
    with open("deep.json", "w") as file:
        file.write('{"metadata": ' + "[" * 100000 + "]" * 100000 + "}")
    for rank in range(RANKS):
        for padded, name in ((True, "padded"), (False, "local")):
            write(f"{name}.{rank}.st",
                  {k: shard(v, DIMS[k], rank, padded) for k, v in ALL.items()})
        write(f"w.{rank}.st", {"w": shard(ALL["w"], 0, rank, False)})
        write(f"wrong.{rank}.st", {"w": shard(ALL["w"], 0, 1, False)[:2]})
    write("rest.st", some("scale", "short", "wide"))
    narrow = {"scale": ALL["scale"].astype(np.float16), "w": bf16(ALL["w"]),
              "short": ALL["short"].astype(np.float32), "wide": bf16(ALL["wide"])}
    write("narrow.st", narrow)
    write("half.st", ALL | {"w": ALL["w"].astype(np.float16), "short": bf16(ALL["short"])})
    write("wider.st", ALL | {"w": ALL["w"].astype(np.float64)})


main()
