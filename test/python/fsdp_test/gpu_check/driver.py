# The CUDA driver from Python: what the device check needs, nothing else.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The library is libcuda.so.1, or what FSDPRT_LIBCUDA names, as for the runtime.
# Everything happens on one stream of the first device's primary context.

import ctypes
import os
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong
from ctypes import c_void_p

HANDLE = c_void_p
ADDRESS = c_ulonglong
OUT_HANDLE, OUT_ADDRESS = POINTER(HANDLE), POINTER(ADDRESS)

FUNCTIONS = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [POINTER(c_int)],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetAttribute": [POINTER(c_int), c_int, c_int],
    "cuDevicePrimaryCtxRetain": [OUT_HANDLE, c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxPushCurrent_v2": [HANDLE],
    "cuCtxPopCurrent_v2": [OUT_HANDLE],
    "cuMemGetInfo_v2": [POINTER(c_size_t), POINTER(c_size_t)],
    "cuMemAlloc_v2": [OUT_ADDRESS, c_size_t],
    "cuMemFree_v2": [ADDRESS],
    "cuMemsetD8Async": [ADDRESS, ctypes.c_ubyte, c_size_t, HANDLE],
    "cuMemcpyHtoDAsync_v2": [ADDRESS, c_void_p, c_size_t, HANDLE],
    "cuMemcpyDtoHAsync_v2": [c_void_p, ADDRESS, c_size_t, HANDLE],
    "cuMemcpyDtoDAsync_v2": [ADDRESS, ADDRESS, c_size_t, HANDLE],
    "cuStreamCreate": [OUT_HANDLE, c_uint],
    "cuStreamSynchronize": [HANDLE],
    "cuStreamDestroy_v2": [HANDLE],
    "cuStreamBeginCapture_v2": [HANDLE, c_int],
    "cuStreamEndCapture": [HANDLE, OUT_HANDLE],
    "cuGraphInstantiateWithFlags": [OUT_HANDLE, HANDLE, c_ulonglong],
    "cuGraphLaunch": [HANDLE, HANDLE],
    "cuGraphExecDestroy": [HANDLE],
    "cuGraphDestroy": [HANDLE],
    "cuEventCreate": [OUT_HANDLE, c_uint],
    "cuEventRecord": [HANDLE, HANDLE],
    "cuEventElapsedTime": [POINTER(c_float), HANDLE, HANDLE],
    "cuEventDestroy_v2": [HANDLE],
    "cuLibraryLoadData": [
        OUT_HANDLE, c_void_p, c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_uint,
    ],
    "cuLibraryUnload": [HANDLE],
    "cuLibraryGetKernel": [OUT_HANDLE, HANDLE, c_char_p],
    "cuLaunchKernelEx": [c_void_p, HANDLE, c_void_p, c_void_p],
}

NON_BLOCKING = 1
CAPTURE_THREAD_LOCAL = 1
ATTRIBUTES = {
    "multiprocessors": 16, "l2_bytes": 38, "capability_major": 75, "capability_minor": 76,
}


class DriverError(Exception):
    """A call of the driver failed, or there is no driver."""


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3), ("block", c_uint * 3), ("shared_bytes", c_uint),
        ("stream", HANDLE), ("attributes", c_void_p), ("attribute_count", c_uint),
    ]


class Driver:
    """The functions of the library, each of which raises DriverError."""

    def __init__(self):
        name = os.environ.get("FSDPRT_LIBCUDA") or "libcuda.so.1"
        try:
            self.library = ctypes.CDLL(name)
        except OSError as error:
            raise DriverError(f"no driver: {error}") from None
        for function, types in FUNCTIONS.items():
            try:
                getattr(self.library, function).argtypes = types
            except AttributeError:
                raise DriverError(f"{name} has no function {function}") from None

    def call(self, function, *arguments):
        result = getattr(self.library, function)(*arguments)
        if result:
            raise DriverError(f"{function}: {self.describe(result)}")

    def describe(self, result):
        name, text = c_char_p(), c_char_p()
        self.library.cuGetErrorName(result, ctypes.byref(name))
        self.library.cuGetErrorString(result, ctypes.byref(text))
        parts = [p.value.decode() for p in (name, text) if p.value]
        return ": ".join(parts) or f"error {result}"

    def made(self, function, *arguments, kind=HANDLE):
        """The handle or number that the first parameter of `function` takes."""
        result = kind()
        self.call(function, ctypes.byref(result), *arguments)
        return result if kind is HANDLE else result.value


class Launch:
    """A launch whose parameters have been written down: cheap to repeat."""

    def __init__(self, gpu, kernel, blocks, threads, addresses, bucket):
        self.gpu, self.kernel = gpu, kernel
        self.config = LaunchConfig(
            (c_uint * 3)(*blocks, 1), (c_uint * 3)(threads, 1, 1), 0, gpu.stream, None, 0
        )
        self.addresses = (ADDRESS * len(addresses))(*addresses)
        self.bucket = ADDRESS(bucket)
        self.parameters = (c_void_p * 2)(
            ctypes.addressof(self.addresses), ctypes.addressof(self.bucket)
        )

    def __call__(self):
        self.gpu.driver.call(
            "cuLaunchKernelEx", ctypes.byref(self.config), self.kernel,
            self.parameters, None,
        )


class Graph:
    """What `record` puts on the stream, as a graph that can be replayed."""

    def __init__(self, gpu, record):
        self.gpu = gpu
        driver = gpu.driver
        driver.call("cuStreamBeginCapture_v2", gpu.stream, CAPTURE_THREAD_LOCAL)
        try:
            record()
        finally:
            graph = HANDLE()
            driver.call("cuStreamEndCapture", gpu.stream, ctypes.byref(graph))
        self.executable = driver.made("cuGraphInstantiateWithFlags", graph, 0)
        driver.call("cuGraphDestroy", graph)

    def __call__(self):
        self.gpu.driver.call("cuGraphLaunch", self.executable, self.gpu.stream)

    def destroy(self):
        self.gpu.driver.call("cuGraphExecDestroy", self.executable)


class Gpu:
    """The first device: memory, kernels, time."""

    def __init__(self):
        self.driver = driver = Driver()
        driver.call("cuInit", 0)
        if driver.made("cuDeviceGetCount", kind=c_int) < 1:
            raise DriverError("there is no device")
        self.device = driver.made("cuDeviceGet", 0, kind=c_int)
        self.context = driver.made("cuDevicePrimaryCtxRetain", self.device)
        driver.call("cuCtxPushCurrent_v2", self.context)
        self.stream = driver.made("cuStreamCreate", NON_BLOCKING)
        self.libraries = []
        self.events = []

    # --- what it is -----------------------------------------------------------

    @property
    def name(self):
        text = ctypes.create_string_buffer(128)
        self.driver.call("cuDeviceGetName", text, len(text), self.device)
        return text.value.decode()

    def attribute(self, name):
        return self.driver.made(
            "cuDeviceGetAttribute", ATTRIBUTES[name], self.device, kind=c_int
        )

    @property
    def driver_version(self):
        version = self.driver.made("cuDriverGetVersion", kind=c_int)
        return f"{version // 1000}.{version % 1000 // 10}"

    @property
    def free_bytes(self):
        free, total = c_size_t(), c_size_t()
        self.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    # --- memory ---------------------------------------------------------------

    def allocate(self, size):
        return self.driver.made("cuMemAlloc_v2", max(size, 1), kind=ADDRESS)

    def free(self, address):
        self.driver.call("cuMemFree_v2", address)

    def upload(self, address, data):
        """`data`: anything with the buffer interface; waits."""
        view = memoryview(data).cast("B")
        if not len(view):
            return
        content = (ctypes.c_ubyte * len(view)).from_buffer_copy(view) if (
            view.readonly) else (ctypes.c_ubyte * len(view)).from_buffer(view)
        self.driver.call(
            "cuMemcpyHtoDAsync_v2", address, ctypes.addressof(content), len(view),
            self.stream,
        )
        self.finish()

    def download(self, address, into):
        """Fills `into`, a writable buffer; waits."""
        view = memoryview(into).cast("B")
        if not len(view):
            return
        content = (ctypes.c_ubyte * len(view)).from_buffer(view)
        self.driver.call(
            "cuMemcpyDtoHAsync_v2", ctypes.addressof(content), address, len(view),
            self.stream,
        )
        self.finish()

    def copy(self, to, source, size):
        self.driver.call("cuMemcpyDtoDAsync_v2", to, source, size, self.stream)

    def set(self, address, byte, size):
        self.driver.call("cuMemsetD8Async", address, byte, size, self.stream)

    def finish(self):
        self.driver.call("cuStreamSynchronize", self.stream)

    # --- kernels --------------------------------------------------------------

    def load(self, image):
        """The library of a fat binary, a cubin or PTX with its final zero."""
        content = ctypes.create_string_buffer(image, len(image))
        library = self.driver.made(
            "cuLibraryLoadData", content, None, None, 0, None, None, 0
        )
        self.libraries.append((library, content))
        return library

    def kernel(self, library, name):
        return self.driver.made("cuLibraryGetKernel", library, name.encode())

    # --- time -----------------------------------------------------------------

    def event(self):
        return self.driver.made("cuEventCreate", 0)

    def record(self, event):
        self.driver.call("cuEventRecord", event, self.stream)

    def microseconds(self, begin, end):
        return 1000 * self.driver.made("cuEventElapsedTime", begin, end, kind=c_float)

    def time_each(self, calls, before=lambda: None):
        """Microseconds of each of `calls`, which are queued together after
        `before`: with enough to do there, the device never waits for Python."""
        while len(self.events) <= len(calls):
            self.events.append(self.event())
        before()
        self.record(self.events[0])
        for number, call in enumerate(calls, 1):
            call()
            self.record(self.events[number])
        self.finish()
        return [
            self.microseconds(self.events[i], self.events[i + 1])
            for i in range(len(calls))
        ]

    def close(self):
        for event in self.events:
            self.driver.call("cuEventDestroy_v2", event)
        for library, _ in self.libraries:
            self.driver.call("cuLibraryUnload", library)
        self.driver.call("cuStreamDestroy_v2", self.stream)
        self.driver.made("cuCtxPopCurrent_v2")
        self.driver.call("cuDevicePrimaryCtxRelease_v2", self.device)
