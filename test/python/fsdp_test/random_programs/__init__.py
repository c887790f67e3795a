# Random whole programs, compared at two levels and with the oracle.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   description   what a program is, and its operations one by one
#   generate      random programs in batches, from a seed
#   coverage      what the programs of a run contain
#   emit          a batch as IR
#   evaluate      arguments, and results by the oracle
#   check         a batch through the tools, against the oracle
#   shrink        the smallest program that still fails
#   faults        planted faults, each of which must be found
#   run           scripts/random-programs
