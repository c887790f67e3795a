# An interpreter of the PTX that the kernels consist of.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Every register is an array with one lane per thread, so a grid of millions of
# threads runs in NumPy. Only the instructions that fsdp-opt emits exist; any
# other one is an error, and so is every access to memory that a device would
# punish or that the op must not make.

from .errors import PtxError
from .machine import Counts, launch
from .memory import Memory
from .parser import parse

__all__ = ["Counts", "Memory", "PtxError", "launch", "parse"]
