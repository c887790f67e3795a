# safetensors: eight bytes of header length, a JSON header, the data.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import json

import numpy as np

from . import dtypes


def write(path, tensors):
    """`tensors`: {name: (dtype, shape, carrier array)}."""
    header, at = {}, 0
    for name, (t, shape, array) in tensors.items():
        size = array.size * t.size
        header[name] = {
            "dtype": t.tag,
            "shape": list(shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for _, (_, _, array) in tensors.items():
            file.write(np.ascontiguousarray(array).tobytes())


def _tensors(header, array_at):
    """{name: (dtype, shape, carrier)}; `array_at` takes dtype, begin, count."""
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        t = dtypes.BY_TAG[entry["dtype"]]
        begin, end = entry["data_offsets"]
        array = t.zeros(0)
        if begin != end:
            array = array_at(t, begin, (end - begin) // t.size)
        out[name] = (t, tuple(entry["shape"]), array)
    return out


def read(path):
    """{name: (dtype, shape, carrier array)}; the arrays are mapped, not read."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    return _tensors(
        header,
        lambda t, begin, count: np.memmap(
            path, t.carrier, "r", 8 + length + begin, (count,)
        ),
    )


def parse(data):
    """The same of a file's bytes: for small files, which map slowly."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return _tensors(
        header,
        lambda t, begin, count: np.frombuffer(
            data, t.carrier, count, 8 + length + begin
        ),
    )
