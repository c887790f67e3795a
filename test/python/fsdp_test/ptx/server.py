# Runs kernels for another process, a fake GPU.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Launches come on standard input and go back on standard output, in the words
# of unittests/Runtime/Fakes/Interpreter.cpp. A buffer is as large as it was
# allocated, may be read and written, and never both at one place by one launch
# unless it is read first.

import sys

import numpy as np

from .interpreter import Memory, PtxError, launch, parse

PAGE = 4096


class Closed(Exception):
    """The other process has ended."""


def read(count):
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        raise Closed
    return data


def read_words(count):
    return [int(word) for word in np.frombuffer(read(8 * count), np.uint64)]


def write(word, *data):
    out = sys.stdout.buffer
    out.write(np.uint64(word).tobytes())
    for piece in data:
        out.write(piece)
    out.flush()


def translated(address, places):
    """The address in the interpreter's memory; one in no buffer stays."""
    for base, buffer in places.items():
        if base <= address < base + buffer.size:
            return buffer.address + address - base
    return address


def run(module, kernel, blocks, threads, parameters, places):
    """`places`: {address: (size, content)}; returns the buffers' contents."""
    memory = Memory()
    buffers = {
        base: memory.add(
            f"the buffer at {base:#x}", size, base % PAGE,
            content=np.frombuffer(content, np.uint8), writable=True,
        )
        for base, (size, content) in places.items()
    }
    tables = {
        name: memory.add(name, data.size, content=data)
        for name, data in module.globals.items()
    }
    memory.seal()
    addresses = [translated(p, buffers) for p in parameters]
    launch(
        module, kernel, blocks, threads, np.array(addresses, np.uint64), memory, tables
    )
    return [memory.bytes_of(buffer).tobytes() for buffer in buffers.values()]


def serve_one(modules):
    (
        key, ptx_bytes, name_bytes, blocks_x, blocks_y, threads, parameter_count,
        buffer_count,
    ) = read_words(8)
    ptx = read(ptx_bytes).decode(errors="replace").rstrip("\0")
    kernel = read(name_bytes).decode()
    parameters = read_words(parameter_count)
    pairs = read_words(2 * buffer_count)
    places = {
        base: (size, read(size)) for base, size in zip(pairs[::2], pairs[1::2])
    }
    try:
        if ptx:
            modules[key] = parse(ptx)
        contents = run(
            modules[key], kernel, (blocks_x, blocks_y), threads, parameters, places
        )
    except Exception as error:  # the other side says it
        kind = "" if isinstance(error, PtxError) else f"{type(error).__name__}: "
        message = f"{kind}{error}".encode() or b"failed"
        write(len(message), message)
        return
    write(0, *contents)


def main():
    modules = {}
    try:
        while True:
            serve_one(modules)
    except Closed:
        pass


if __name__ == "__main__":
    main()
