# Modules as text: the one writer of IR.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   text          symbols, types, values, functions, calls
#   declarations  grids, units, parameters, buckets
#   step          gathers and reductions of declared units
#   local_op      one op between members and a bucket, on tensors or on buffers
#
# Programs that a test spells out are in that test; what is put together of parts
# comes from here.

from . import step
from .declarations import (
    bucket_text, grid_text, param_ref, replicate_axes, shard_axes, shard_shape, unit_text,
)
from .text import (
    Value, call, function, module, number, op, several, shaped, symbol, tensor_names,
    tensor_type, types_text,
)
