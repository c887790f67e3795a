# Kernels on the fake driver: the PTX interpreter stands in for the device.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# For tests of scripts/gpu-check: `--emulator=test/gpu/emulated_gpu.py` on
# libfsdp_fake_gpu.so. A kernel that is launched reads and writes the memory of the
# process, where the fake's device memory is. GPU_CHECK_FAULT names a way in which
# it goes wrong:
#
#   bit        one bit of the first byte of an output is another one
#   unwritten  the last byte of an output keeps what it was
#   guard      one byte behind an output is written
#   input      the first byte of an input is written
#   hang       it never ends

import ctypes
import os
import sys
import time
from pathlib import Path

import numpy as np

TEST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TEST), str(TEST / "ptx")]

import reference
from execution import _table_of
from interpreter import Memory, launch, parse
from interpreter.memory import WRITTEN
from local_ops import read_local_ops

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
FAULT = os.environ.get("GPU_CHECK_FAULT", "")
THREADS = 256


def view(address, size):
    """Memory of the process as an array."""
    if not size:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))


class Kernel:
    """One kernel as a function of its parameters."""

    def __init__(self, module, operation, op):
        self.module, self.operation, self.op = module, operation, op

    def run(self, members, old, bucket):
        memory, op = Memory(), self.op
        buffers, outputs = [], []

        def add(name, address, size, is_output, may_read=None):
            keep = None if is_output and may_read is None else view(address, size).copy()
            buffer = memory.add(
                name, size, address % 4096, content=keep,
                readable=may_read if isinstance(may_read, np.ndarray) else None,
                writable=is_output,
            )
            buffers.append(buffer)
            if is_output:
                outputs.append((buffer, address))
            return buffer

        in_place = bool(old) and old == members
        sizes = self.operation.members
        first = [
            add(f"member {i}", a, s, not op.packs, True if in_place else None)
            for i, (a, s) in enumerate(zip(members, sizes))
        ]
        if op.packs:
            for buffer, address in zip(first, members):
                assert not buffer.writable, address
        second = first if in_place else [
            add(f"old {i}", a, s, False) for i, (a, s) in enumerate(zip(old, sizes))
        ]
        last = add(
            "bucket", bucket, self.operation.bucket, op.packs,
            None if op.packs else reference.readable(op).reshape(-1),
        )
        name = _table_of(self.module, self.operation.kernel)
        data = self.module.globals[name]
        table = memory.add(name, data.size, content=data)
        memory.seal()
        addresses = first + (second if op.adds else []) + [last]
        launch(
            self.module, self.operation.kernel, tuple(self.operation.blocks), THREADS,
            np.array([b.address for b in addresses], np.uint64), memory, {name: table},
        )
        for buffer, address in outputs:
            written = memory.states_of(buffer) == WRITTEN
            view(address, buffer.size)[written] = memory.bytes_of(buffer)[written]
        self.go_wrong(outputs, members if op.packs else [bucket])

    def go_wrong(self, outputs, inputs):
        buffer, address = max(outputs, key=lambda o: o[0].size)
        if FAULT == "bit":
            view(address, 1)[0] ^= 0x40
        elif FAULT == "unwritten":
            view(address + buffer.size - 1, 1)[0] = 0xA5
        elif FAULT == "guard":
            view(address + buffer.size, 1)[0] = 0
        elif FAULT == "hang":
            time.sleep(3600)
        elif FAULT == "input":
            view(inputs[0], 1)[0] ^= 0xFF

    def __call__(self, addresses, bucket):
        count = len(self.operation.members)
        total = count * (2 if self.op.adds else 1)
        words = list((ctypes.c_uint64 * total).from_address(addresses))
        try:
            self.run(words[:count], words[count:], bucket)
        except BaseException as error:  # nothing may leave a callback
            print(f"emulated kernel {self.operation.kernel}: {error}", file=sys.stderr)


keep_alive = []


def attach(gpu, folder, module):
    """From now on launches of the module's kernels do what they should."""
    set_kernel = gpu.driver.library.fsdpFakeSetKernel
    set_kernel.argtypes = [ctypes.c_char_p, BODY]
    parsed = parse(folder.ptx(module).rstrip(b"\0").decode())
    for operation, op in zip(module.operations, read_local_ops(folder.text(module))):
        body = BODY(Kernel(parsed, operation, op))
        keep_alive.append(body)
        set_kernel(operation.kernel.encode(), body)
