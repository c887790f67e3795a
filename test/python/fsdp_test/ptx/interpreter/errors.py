# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception


class PtxError(Exception):
    """The text is not understood, or a kernel did what it must not do."""
