# The NumPy oracle: what a program must compute, to the bit.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A second implementation of the numerical rules, written from the rules and
# not from the compiler. It shares no code with the libraries and the tools, so
# that one mistake cannot hide in both. It needs NumPy and nothing else.
#
#   dtypes        element types, casts with one rounding, division
#   description   parameters, units, the grid and its groups of ranks
#   layout        shards, segments and rows
#   precision     profiles: param, reduce and grad dtype of every parameter
#   reduction     division table, reduce-scatter, all-reduce, split
#   buckets       which parameters share a collective
#   fill          fill values and checksums of fsdp-run
#   tensor_file   safetensors, read and written
#   program       whole `forward` and `backward` programs, streamed
