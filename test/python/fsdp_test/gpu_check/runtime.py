# libfsdprt from Python: one rank on the device, for entries of artefacts.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_void_p

# The name that artefacts look for: with the version of the interface.
LIBRARY = "libfsdprt.so.3"


class Options(ctypes.Structure):
    """fsdprtOptions of fsdp/Runtime/Runtime.h."""

    _fields_ = [
        ("gridShape", POINTER(c_int64)), ("gridAxes", c_int32),
        ("timeoutSeconds", c_double), ("trace", c_void_p), ("traceUser", c_void_p),
        ("stallRank", c_int64), ("stallCall", c_int64), ("log", c_void_p),
        ("logUser", c_void_p), ("device", c_char_p), ("communicator", c_char_p),
        ("hasRank", c_int32), ("rank", c_int64), ("localRank", c_int64),
        ("rendezvous", c_char_p), ("stream", c_void_p), ("sumOrder", c_char_p),
    ]


class RuntimeFailure(Exception):
    """libfsdprt's own sentence."""


class Context:
    """A world of one rank on the first device, in a stream of the caller's."""

    def __init__(self, library, stream=None):
        # For the artefacts, which look for it by its name.
        self.library = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        self.library.fsdprtMessage.restype = c_char_p
        self.library.fsdprtMessage.argtypes = [c_void_p]
        shape = (c_int64 * 1)(1)
        options = Options(gridShape=shape, gridAxes=1, device=b"cuda", stream=stream)
        message = ctypes.create_string_buffer(1024)
        self.handle = c_void_p()
        if self.library.fsdprtCreateLocal(
            byref(options), byref(self.handle), message, c_int64(len(message))
        ):
            raise RuntimeFailure(message.value.decode())
        self.check(self.library.fsdprtStart(self.handle, b"gpu-check"))

    def check(self, status):
        if status:
            message = self.library.fsdprtMessage(self.handle).decode()
            raise RuntimeFailure(f"status {status}: {message}")

    def run(self, artefact, entry, arguments, results):
        """Runs `entry` of a loaded artefact on addresses of the device."""
        function = getattr(artefact, f"fsdprt_entry_{entry}")
        self.check(
            self.library.fsdprtRun(
                self.handle, ctypes.cast(function, c_void_p),
                (c_void_p * len(arguments))(*arguments),
                (c_void_p * len(results))(*results),
            )
        )

    def destroy(self):
        self.library.fsdprtDestroy(self.handle)
