# Programs with the results that they must have, for the tests of test/Execution.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   python3 -m fsdp_test.execution.NAME TOOLS FOLDER [OPTION-OF-FSDP-COMPILE...]
