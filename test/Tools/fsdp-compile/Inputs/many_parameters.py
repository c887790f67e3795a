#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Prints a program that gathers a unit of many small parameters on two ranks."""

import sys

count = range(int(sys.argv[1]))
shards = ", ".join("tensor<2x2xf32>" for _ in count)
full = ", ".join("tensor<3x2xf32>" for _ in count)
arguments = ", ".join(f"%s{i}: tensor<2x2xf32> {{fsdp.shard = @u::@p{i}}}" for i in count)
values = ", ".join(f"%s{i}" for i in count)
print("shard.grid @dp(shape = 2)\nfsdp.unit @u on @dp {")
for i in count:
    print(f"  fsdp.param @p{i} : tensor<3x2xf32>")
print(f"""}}
func.func @gather({arguments}) -> tensor<3x2xf32> {{
  %w:{len(count)} = fsdp.unshard @u ({values}) : ({shards}) -> ({full})
  return %w#{len(count) - 1} : tensor<3x2xf32>
}}""")
