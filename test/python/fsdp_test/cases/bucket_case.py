# What a case says, in the oracle's terms; shared by both runners.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from fsdp_test.oracle.buckets import Options, bucket_layout
from fsdp_test.oracle.description import units_of
from fsdp_test.oracle.dtypes import dtype
from fsdp_test.oracle.precision import resolve


def options_of(case):
    return Options(**case.get("options", {}))


def precisions_of(case, units):
    """{parameter name: Precision} over all units, by the case's profile."""
    profile = options_of(case).profile
    out = {}
    for unit in units:
        out.update(resolve(unit, profile))
    return out


class HandWritten:
    """The bucket of a layout, chunk_cat, concat or unchunk case."""

    def __init__(self, case):
        self.options = options_of(case)
        self.unit = units_of(case)[0]
        self.precisions = precisions_of(case, [self.unit])
        bucket = case["inputs"]["bucket"]
        self.kind = bucket["kind"]
        self.params = [self.unit.param(n) for n in bucket["members"]]
        bytes_wire = bucket["wire"] == "bytes"
        self.wire = None if bytes_wire else dtype(bucket["wire"])
        self.member_dtypes = [
            self.precisions[p.name].param if bytes_wire else self.wire
            for p in self.params
        ]
        self.layout = bucket_layout(
            self.params, self.member_dtypes, self.wire, case["W"], self.options.align
        )
        self.packed_type = (
            f"tensor<{case['W']}x{self.layout.row_elements}"
            f"x{self.layout.element_type}>"
        )
        self.flat_type = (
            f"tensor<{self.layout.row_elements}x{self.layout.element_type}>"
        )


def plan_fields(how):
    """A reduction plan in the words of expected.buckets."""
    return {
        "reduce_scatter": how.reduce_scatter,
        "premul": how.premul,
        "all_reduce": how.all_reduce,
        "divide": how.divide,
        "split_divide": how.split_divide,
    }
