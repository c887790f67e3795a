#!/usr/bin/python3
# Compares the offsets of a byte bucket and of a typed one with the rule, for every
# alignment that is allowed.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   alignments.py FSDP_OPT

import json
import subprocess
import sys

# On 2 ranks: elements of a rank, bytes of an element.
MEMBERS = {"a": (3, 2), "b": (1, 8), "c": (2050, 4), "d": (1, 4)}
SOURCE = """
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<5xbf16> precision <reduce = f32>
  fsdp.param @b : tensor<2xf64> precision <reduce = f32>
  fsdp.param @c : tensor<4099xf32>
  fsdp.param @d : tensor<1xf32>
}
func.func @f(%a: tensor<3xbf16>, %b: tensor<1xf64>, %c: tensor<2050xf32>, %d: tensor<1xf32>)
    -> (tensor<3xbf16>, tensor<1xf64>, tensor<2050xf32>, tensor<1xf32>) {
  %w:4 = fsdp.unshard @u(%a, %b, %c, %d) : (tensor<3xbf16>, tensor<1xf64>, tensor<2050xf32>, tensor<1xf32>)
      -> (tensor<5xbf16>, tensor<2xf64>, tensor<4099xf32>, tensor<1xf32>)
  %r:4 = fsdp.reduce_grads @u[@a, @b, @c, @d](%w#0, %w#1, %w#2, %w#3)
      : (tensor<5xbf16>, tensor<2xf64>, tensor<4099xf32>, tensor<1xf32>)
      -> (tensor<3xbf16>, tensor<1xf64>, tensor<2050xf32>, tensor<1xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<3xbf16>, tensor<1xf64>, tensor<2050xf32>, tensor<1xf32>
}
"""


def rule(wire_bytes, align):
    """Offsets and the row's size; without `wire_bytes` each has its own."""
    def up(x):
        return (x + align - 1) // align * align

    offsets, end = [], 0
    for count, size in MEMBERS.values():
        offsets.append(up(end))
        end = offsets[-1] + count * (wire_bytes or size)
    return offsets, up(end)


def main():
    wrong = 0
    alignments = [1 << i for i in range(13)]
    for align in alignments:
        done = subprocess.run(
            [sys.argv[1], f"--fsdp-optimize=align={align}",
             "--fsdp-print-plan=format=json", "-o", "/dev/null"],
            input=SOURCE, capture_output=True, text=True,
        )
        if done.returncode:
            sys.exit(done.stderr)
        (unit,) = json.loads(done.stdout)["units"]
        for bucket in unit["buckets"]:
            wanted = rule(4 if bucket["kind"] == "reduce" else None, align)
            got = [m["offset_bytes"] for m in bucket["members"]], bucket["row_bytes"]
            if got != wanted or bucket["align"] != align:
                print(f"align {align}, {bucket['name']}: {got}, expected {wanted}")
                wrong += 1
    print(f"{len(alignments)} alignments, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
