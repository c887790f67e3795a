#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Writes one safetensors file for each way to get it wrong."""

import json


def write(name, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(name, "wb") as file:
        n = len(text) if length is None else length
        file.write(n.to_bytes(8, "little") + text + data)


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


four = tensor("F32", [4], 0, 16)
data = bytes(16)
write("good.st", {"__metadata__": {"a": "b"}, "arg0": four}, data)
write("missing.st", {"other": four}, data)
write("shape.st", {"arg0": tensor("F32", [2, 2], 0, 16)}, data)
write("dtype.st", {"arg0": tensor("I32", [4], 0, 16)}, data)
write("truncated.st", {"arg0": four}, data[:15])
write("longer.st", {"arg0": four}, data + b"x")
write("size.st", {"arg0": tensor("F32", [5], 0, 16)}, data)
write("gap.st", {"arg0": four, "b": tensor("U8", [4], 20, 24)}, bytes(24))
write("overlap.st", {"arg0": four, "b": tensor("U8", [4], 12, 16)}, data)
write("order.st", {"arg0": tensor("F32", [4], 16, 0)}, data)
write("tag.st", {"arg0": tensor("F31", [4], 0, 16)}, data)
write("huge.st", {"arg0": tensor("F32", [1 << 40, 1 << 40], 0, 16)}, data)
write("negative.st", {"arg0": tensor("F32", [-4], 0, 16)}, data)
write("json.st", b'{"arg0": ')
write("syntax.st", b'{"arg0": {"dtype": F32}}')
write("colon.st", b'{"arg0" 1}')
write("after.st", b'{} {}')
write("deep.st", b'{"arg0": ' + b"[" * 1000000 + b"]" * 1000000 + b"}")
write("deep-metadata.st", b'{"__metadata__": {"a": ' + b'{"a": ' * 1000000 + b"1" + b"}" * 1000000 + b"}}")
write("metadata.st", {"__metadata__": {"a": 1}, "arg0": four}, data)
once = json.dumps({"arg0": four})
write("twice.st", (once[:-1] + ", " + once[1:]).encode(), data)
write("escaped.st", (once[:-1] + ", " + once[1:].replace("arg0", "\\u0061rg0")).encode(), data)
write("member.st", once.replace("[4]", "[4], \"shape\": [4]").encode(), data)
write("long.st", {"arg0": tensor("F32", [1] * 50000 + [4], 0, 16)}, data)
write("bytes.st", {"arg0": tensor("F4", [3], 0, 16)}, data)
write("name.st", {"arg0": four, "\x1b[2Jevil\nb": tensor("F32", [4], 12, 28)}, data)
write("bidi.st", {"arg0": four, "a\u202eb\u00e9": tensor("U8", [1], 16, 17)}, bytes(17))
write("utf8.st", once.replace("arg0", "arg\xff").encode("latin-1"), data)
write("new.st", {"arg0": four, "b": tensor("F7_NEW", [3], 16, 19)}, bytes(19))
write("new-gap.st", {"arg0": four, "b": tensor("F7_NEW", [3], 17, 19)}, bytes(19))
write("array.st", [1])
write("object.st", {"arg0": 3})
write("length.st", {"arg0": four}, data, length=1000)
write("enormous.st", {"arg0": four}, data, length=1 << 60)
open("empty.st", "wb").close()
open("short.st", "wb").write(b"\0\0\0")
