#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Writes and compiles an artefact for a device, for the tests of fsdp-run.

    device_artefact.py BUILD OUT RANKS

The host never touches data: entries give calls to the device. Shards are whole
rows, so that a gather of them is the full tensor.

    gather      shard of w in, full tensor out
    reduce      full gradient of w in, summed shard out
    launch      a kernel of a module that the fake GPU understands
    missing     a kernel that no module has
"""

import json
import subprocess
import sys
from pathlib import Path

C = r"""
#include "fsdp/Runtime/Runtime.h"

const int32_t fsdprt_artefact_abi = FSDPRT_ABI_VERSION;
const char fsdprt_artefact_manifest[] = @MANIFEST@;

#define ENTRY(name) fsdprtStatus fsdprt_entry_##name( \
    fsdprtContext *context, void *const *in, void *const *out)

static const int32_t axes[] = {0};

static fsdprtStatus run(fsdprtContext *context, int32_t kind, const char *bucket,
                        const void *send, void *receive) {
  const fsdprtCollective record = {
      sizeof(record), kind, FSDPRT_F32, FSDPRT_SUM, 0, 1, @COUNT@, 0, bucket, axes};
  const fsdprtCollective *records[] = {&record};
  return fsdprtRunCollectives(context, records, 1, &send, &receive);
}

ENTRY(gather) {
  return run(context, FSDPRT_ALL_GATHER, "w_gather", in[0], out[0]);
}

ENTRY(reduce) {
  return run(context, FSDPRT_REDUCE_SCATTER, "w_reduce", in[0], out[0]);
}

static const char module[] = "fake: pack=16,8";

static fsdprtStatus launch(fsdprtContext *context, const char *kernel) {
  void *addresses[2] = {0, 0}, *bucket;
  fsdprtStatus status = fsdprtAlloc(context, 1024, &bucket);
  if (!status)
    status = fsdprtLaunch(context, module, sizeof(module), kernel, 2, 1, 128, addresses, sizeof(addresses), bucket);
  return status ? status : fsdprtFree(context, bucket);
}

ENTRY(launch) { (void)in, (void)out; return launch(context, "pack"); }
ENTRY(missing) { (void)in, (void)out; return launch(context, "unpack"); }
"""


def main():
    build, out, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = 2
    full, shard = f"tensor<{ranks * rows}x8xf32>", f"tensor<{rows}x8xf32>"

    def value(role):
        local = shard if "shard" in role else full
        return {
            "name": "w.grad" if "grad" in role else "w", "param": "w", "role": role, "unit": "u", "full_type": full,
            "type": local, "shard_dim": 0,
        }

    entries = {
        "gather": ([value("shard")], [value("full")]),
        "reduce": ([value("full_grad")], [value("shard_grad")]),
        "launch": ([], []),
        "missing": ([], []),
    }
    manifest = {
        "abi": 3, "target": "cuda", "ranks": ranks, "grid": [ranks],
        "plan_hash": "0123456789abcdef",
        "entries": [
            {"name": n, "args": a, "results": r} for n, (a, r) in entries.items()
        ],
        "units": [{"name": "u", "shard_axes": [0], "replicate_axes": []}],
        "buckets": [],
    }
    source = C.replace("@MANIFEST@", json.dumps(json.dumps(manifest)))
    source = source.replace("@COUNT@", str(rows * 8))
    root = Path(__file__).resolve().parents[4]
    subprocess.run(
        ["cc", "-x", "c", "-", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-shared", "-I", root / "include", "-L", Path(build) / "lib", "-lfsdprt",
         "-o", out],
        input=source.encode(), check=True,
    )


if __name__ == "__main__":
    main()
