# Kernels of the GPU as text: compiled, interpreted, assembled, compared.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   compiler        a module's PTX, and the launches that its host code makes
#   interpreter     runs PTX, warp by warp, and checks every access
#   server          that for the fake GPU, another process
#   local_ops       reads the ops of a module in buffer form
#   reference       what an op must write, by the oracle, and adversarial inputs
#   execution       one op's launches, compared with it
#   workloads, random_modules, misaligned, many_members   what is run
#   run_kernels, division, planted_faults, traffic        how
#   ptxas_report, sass, conversions                       machine code
