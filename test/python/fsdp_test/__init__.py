# What tests fsdp-opt and is written in Python.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   ir               modules as text: the one writer of IR
#   oracle           the NumPy model, which knows nothing of the others
#   cases            cases with right answers, through the tools or the oracle
#   random_programs  random whole programs, compared at two levels and with it
#   execution        programs of the folder test/Execution, run and compared
#   ptx              kernels in an interpreter of PTX, and as machine code
#   gpu_check        the kernels on a device; goes there as a folder
#   examples         real models: written, run and compared
#   steps, demo, bench   what scripts/test, scripts/demo and scripts/bench do
#
# Programs are modules: `python3 -m fsdp_test.NAME`, with test/python on
# PYTHONPATH. The scripts and lit set that; no module changes where Python looks.
