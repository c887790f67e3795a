# A PyTorch without a device: takes the calls of fsdp_test/gpu_check/pytorch.py and
# checks what they are given.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from contextlib import contextmanager
from math import prod

__version__ = "0.0 of a test"
float32, bfloat16, float16 = "float32", "bfloat16", "float16"


class Tensor:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype

    def numel(self):
        return prod(self.shape)

    def normal_(self):
        return self

    def to(self, dtype):
        return Tensor(self.shape, dtype)

    def view(self, *shape):
        known = prod(s for s in shape if s != -1)
        shape = [self.numel() // known if s == -1 else s for s in shape]
        if prod(shape) != self.numel():
            raise RuntimeError(f"{self.shape} is no view of {shape}")
        return Tensor(shape, self.dtype)

    def split(self, sizes):
        if sum(sizes) != self.shape[0]:
            raise RuntimeError(f"{sizes} of {self.shape}")
        return [Tensor((size,), self.dtype) for size in sizes]


def empty(*shape, dtype, device):
    assert device == "cuda"
    return Tensor(shape[0] if isinstance(shape[0], tuple) else shape, dtype)


@contextmanager
def no_grad():
    yield


def _chunk_cat(tensors, dim, num_chunks, out):
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("expected tensors of one dtype")
    padded = [-(-t.shape[0] // num_chunks) * t.numel() // t.shape[0] for t in tensors]
    if dim or out.shape != (num_chunks, sum(padded)):
        raise RuntimeError(f"out has {out.shape}, expected {num_chunks, sum(padded)}")


def _foreach_copy_(to, of):
    if [t.numel() for t in to] != [t.numel() for t in of]:
        raise RuntimeError("expected as many elements on both sides")


def split_with_sizes_copy(tensor, sizes, dim, out):
    if dim != 1 or sum(sizes) != tensor.shape[1]:
        raise RuntimeError(f"{sizes} of {tensor.shape}")
    if [t.shape for t in out] != [(tensor.shape[0], size) for size in sizes]:
        raise RuntimeError("expected outputs of the sizes")
    if any(t.dtype != tensor.dtype for t in out):
        raise RuntimeError("expected outputs of the dtype")


class cuda:
    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            pass

        def elapsed_time(self, end):
            return 2.5  # milliseconds

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def _sleep(cycles):
        pass

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def empty_cache():
        pass
