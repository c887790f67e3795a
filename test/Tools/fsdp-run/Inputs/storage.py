#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Files with the tensors of storage.mlir, by their bytes.

    storage.py write FILE        bytes of all values
    storage.py compare A B       each tensor of B is that of A, but `norm`
"""

import json
import sys

TENSORS = {  # dtype, shape, bits of an element
    "u8": ("U8", [20, 1], 8), "u16": ("U16", [5], 16), "u32": ("U32", [4], 32),
    "u64": ("U64", [2, 2], 64), "norm": ("F32", [7], 32), "scale": ("F8_E8M0", [5, 2], 8),
    "f4": ("F4", [5, 6], 4), "wide": ("F4", [3, 10], 4), "e2m3": ("F6_E2M3", [4, 8], 6),
    "e3m2": ("F6_E3M2", [12], 6),
}


def write(path):
    header, data = {}, b""
    for name, (tag, shape, bits) in TENSORS.items():
        count = 1
        for size in shape:
            count *= size
        # With the highest bits set, too; finite in f32, no NaN in f8E8M0FNU.
        raw = bytes((len(data) + 37 * i) % 251 for i in range(count * bits // 8))
        if name == "norm":
            raw = bytes(len(raw))
        header[name] = {
            "dtype": tag, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def read(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    return {
        name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])])
        for name, t in header.items()
    }


def main():
    if sys.argv[1] == "write":
        write(sys.argv[2])
        return 0
    expected, found = read(sys.argv[2]), read(sys.argv[3])
    wrong = [n for n, t in found.items() if n != "norm" and t != expected[n]]
    print(f"{len(found)} tensors, {len(wrong)} differ {wrong}")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
