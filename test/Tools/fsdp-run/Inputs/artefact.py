#!/usr/bin/python3
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
"""Writes and compiles an artefact for the tests of fsdp-run.

    artefact.py BUILD OUT GRID [SHARD_AXES [REPLICATE_AXES]]

GRID is 4 or 2x2; axes are comma-separated lists, `-` for none. The entries are
a few lines of C each, so that fsdp-run is tested without the compiler:

    forward     shards in, full tensors out
    backward    full gradient of w in, averaged shard out
    copy        shards in, the same out
    double      2 * arg0
    ranks       arg0 + rank: another result on each rank
    steps       arguments that are fsdp.uniform, and others: the same out
    large       full tensors of 16-bit types in, the same out
    liar        a full tensor, changed on the last rank
    replicas    shards, changed on the last rank
    leak, mismatch, broken, sleep      what their names say
"""

import json
import subprocess
import sys
from math import ceil, prod
from pathlib import Path

# name: shape, dimension, dtype
PARAMS = {
    "w": ((10, 3), 0, "f32"),
    "v": ((3, 5), 1, "bf16"),
    "t": ((2, 6, 3), 1, "f16"),
    "n": ((4,), 0, "i64"),
    "none": ((0, 2), 0, "f64"),
}
# Large enough for fill values that are ties between two narrow ones.
LARGE = {
    "b": ((1 << 19,), 0, "bf16"),
    "h": ((1 << 19,), 0, "f16"),
    "e": ((1 << 19,), 0, "f8E4M3FN"),
    "k": ((1 << 19,), 0, "f8E5M2"),
}
BYTES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i64": 8, "f8E4M3FN": 1, "f8E5M2": 1
}


def type_of(shape, dtype):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{dtype}>"


def axes_list(axes):
    """The axes as C writes them; an array has one element at least."""
    return ", ".join(map(str, axes or [0]))


def numbers(text, separator):
    return [] if text == "-" else [int(n) for n in text.split(separator)]


C = r"""
#include "fsdp/Runtime/Runtime.h"
#include <string.h>
#include <unistd.h>

const int32_t fsdprt_artefact_abi = FSDPRT_ABI_VERSION;
const char fsdprt_artefact_manifest[] = @MANIFEST@;

enum { W = @W@, RANKS = @RANKS@ };
static const int32_t shard[] = { @SHARD@ }, replicate[] = { @REPLICATE@ };
typedef struct { int64_t outer, inner, line, element; const char *name; } Param;
static const Param params[] = { @PARAMS@ };

#define TRY(call) do { fsdprtStatus s_ = (call); if (s_) return s_; } while (0)
#define ENTRY(name) fsdprtStatus fsdprt_entry_##name( \
    fsdprtContext *context, void *const *in, void *const *out)

/* One collective, whose record is made on the way. */
static fsdprtStatus run(fsdprtContext *context, int32_t kind, const char *bucket,
                        int32_t dtype, int32_t reduction, int64_t count,
                        const void *send, void *receive) {
  const int is_last = kind == FSDPRT_ALL_REDUCE;
  const fsdprtCollective record = {
      sizeof(record), kind, dtype, reduction, 0,
      is_last ? @REPLICATES@ : @SHARDS@, count, 0, bucket,
      is_last ? replicate : shard};
  const fsdprtCollective *records[] = {&record};
  return fsdprtRunCollectives(context, records, 1, &send, &receive);
}

static int64_t size(const Param *p) { return p->outer * p->inner * p->element; }

/* Copies between a rank's run and the full tensor, as far as that goes. */
static int64_t valid(const Param *p, int64_t r) {
  int64_t left = p->line - r * p->inner;
  return (left < 0 ? 0 : left < p->inner ? left : p->inner) * p->element;
}

ENTRY(forward) {
  for (int i = 0; i < @COUNT@; ++i) {
    const Param *p = &params[i];
    char *packed;
    TRY(fsdprtAlloc(context, W * size(p), (void **)&packed));
    TRY(run(context, FSDPRT_ALL_GATHER, p->name, FSDPRT_BYTES, 0, size(p), in[i], packed));
    for (int64_t r = 0; r < W; ++r)
      for (int64_t o = 0; o < p->outer; ++o)
        memcpy((char *)out[i] + (o * p->line + r * p->inner) * p->element,
               packed + r * size(p) + o * p->inner * p->element, valid(p, r));
    TRY(fsdprtFree(context, packed));
  }
  return 0;
}

ENTRY(backward) {
  const Param *p = &params[0];
  char *packed;
  TRY(fsdprtAlloc(context, W * size(p), (void **)&packed));
  memset(packed, 0, W * size(p));
  for (int64_t r = 0; r < W; ++r)
    for (int64_t o = 0; o < p->outer; ++o)
      memcpy(packed + r * size(p) + o * p->inner * p->element,
             (char *)in[0] + (o * p->line + r * p->inner) * p->element, valid(p, r));
  TRY(run(context, FSDPRT_REDUCE_SCATTER, "w_grad", FSDPRT_F32, FSDPRT_AVG, size(p) / 4, packed, out[0]));
  TRY(run(context, FSDPRT_ALL_REDUCE, "w_grad", FSDPRT_F32, FSDPRT_AVG, size(p) / 4, out[0], out[0]));
  return fsdprtFree(context, packed);
}

ENTRY(copy) {
  (void)context;
  for (int i = 0; i < @COUNT@; ++i)
    memcpy(out[i], in[i], size(&params[i]));
  return 0;
}

ENTRY(double) {
  (void)context;
  for (int i = 0; i < 4; ++i)
    ((float *)out[0])[i] = 2 * ((float *)in[0])[i];
  return 0;
}

ENTRY(ranks) {
  int64_t rank;
  TRY(fsdprtRank(context, &rank));
  for (int i = 0; i < 4; ++i)
    ((float *)out[0])[i] = ((float *)in[0])[i] + (i == 2 ? rank : 0);
  return 0;
}

ENTRY(steps) {
  (void)context;
  const int64_t bytes[] = { 8, 4, 20, 1, 48, 24, size(&params[0]) };
  for (int i = 0; i < 7; ++i)
    memcpy(out[i], in[i], bytes[i]);
  return 0;
}

ENTRY(large) {
  (void)context;
  const int64_t bytes[] = { @LARGE@ };
  for (int i = 0; i < (int)(sizeof bytes / sizeof *bytes); ++i)
    memcpy(out[i], in[i], bytes[i]);
  return 0;
}

ENTRY(liar) {
  int64_t rank;
  TRY(fsdprtRank(context, &rank));
  memcpy(out[0], in[0], 120);
  if (rank == RANKS - 1)
    ((float *)out[0])[17] += 1;
  return 0;
}

ENTRY(replicas) {
  int64_t rank;
  TRY(fsdprtRank(context, &rank));
  memcpy(out[0], in[0], size(&params[0]));
  if (rank == RANKS - 1)
    ((float *)out[0])[1] += 1;
  return 0;
}

ENTRY(leak) {
  void *data;
  (void)in, (void)out;
  return fsdprtAlloc(context, 64, &data);
}

ENTRY(mismatch) {
  int64_t rank;
  char send[8], receive[8 * RANKS];
  (void)in, (void)out;
  TRY(fsdprtRank(context, &rank));
  return run(context, FSDPRT_ALL_GATHER, rank == 1 ? "odd" : "even", FSDPRT_BYTES, 0, 8, send, receive);
}

ENTRY(broken) {
  int64_t rank;
  (void)in, (void)out;
  TRY(fsdprtRank(context, &rank));
  return rank == RANKS - 1 ? 77 : 0;
}

ENTRY(sleep) {
  int64_t rank;
  (void)in, (void)out;
  TRY(fsdprtRank(context, &rank));
  while (rank == 0)
    pause();
  return 0;
}
"""


def main():
    build, out, grid = sys.argv[1:4]
    grid = numbers(grid, "x")
    replicate = numbers(sys.argv[5], ",") if len(sys.argv) > 5 else []
    shard = (
        numbers(sys.argv[4], ",")
        if len(sys.argv) > 4
        else [a for a in range(len(grid)) if a not in replicate]
    )
    w = prod(grid[a] for a in shard)

    def chunk(shape, dim):
        return shape[:dim] + (ceil(shape[dim] / w),) + shape[dim + 1 :]

    def value(name, role):
        shape, dim, dtype = (PARAMS | LARGE)[name]
        full = type_of(shape, dtype)
        local = type_of(chunk(shape, dim), dtype) if "shard" in role else full
        return {
            "name": name + (".grad" if "grad" in role else ""),
            "param": name, "role": role, "unit": "u", "full_type": full,
            "type": local, "shard_dim": dim,
        }

    def ordinary(name, t):
        return {"name": name, "role": "value", "type": t}

    shards = [value(n, "shard") for n in PARAMS]
    fulls = [value(n, "full") for n in PARAMS]
    large = [value(n, "full") for n in LARGE]
    four = [ordinary("arg0", "tensor<4xf32>")], [ordinary("result0", "tensor<4xf32>")]
    steps = [
        dict(ordinary("steps", "index"), uniform=True),
        dict(ordinary("scale", "tensor<1xf32>"), uniform=True),
        dict(ordinary("ids", "tensor<5xi32>"), uniform=True),
        dict(ordinary("on", "i1"), uniform=True),
        dict(ordinary("noise", "tensor<2x3xf64>"), uniform=True),
        ordinary("own", "tensor<3xi64>"),
        value("w", "shard"),
    ]
    entries = {
        "forward": (shards, fulls),
        "backward": ([value("w", "full_grad")], [value("w", "shard_grad")]),
        "copy": (shards, shards),
        "double": four,
        "ranks": four,
        "steps": (steps, [dict(v, uniform=False) for v in steps]),
        "large": (large, large),
        "liar": (fulls[:1], fulls[:1]),
        "replicas": (shards[:1], shards[:1]),
        "leak": ([], []),
        "mismatch": ([], []),
        "broken": ([], []),
        "sleep": ([], []),
    }
    manifest = {
        "abi": 3, "target": "cpu", "ranks": prod(grid), "grid": grid,
        "plan_hash": "0123456789abcdef",
        "entries": [
            {"name": n, "args": a, "results": r} for n, (a, r) in entries.items()
        ],
        "units": [{"name": "u", "shard_axes": shard, "replicate_axes": replicate}],
        "buckets": [],
    }
    rows = []
    for name, (shape, dim, dtype) in PARAMS.items():
        rest = prod(shape[dim + 1 :])
        inner = ceil(shape[dim] / w) * rest
        rows.append(
            f'{{{prod(shape[:dim])}, {inner}, {shape[dim] * rest}, {BYTES[dtype]}, "{name}"}}'
        )
    source = C
    for key, text in {
        "MANIFEST": json.dumps(json.dumps(manifest)),
        "W": w, "RANKS": prod(grid), "COUNT": len(PARAMS),
        "SHARD": axes_list(shard), "REPLICATE": axes_list(replicate),
        "SHARDS": len(shard), "REPLICATES": len(replicate),
        "PARAMS": ", ".join(rows),
        "LARGE": ", ".join(str(prod(s) * BYTES[t]) for s, _, t in LARGE.values()),
    }.items():
        source = source.replace(f"@{key}@", str(text))
    root = Path(__file__).resolve().parents[4]
    subprocess.run(
        ["cc", "-x", "c", "-", "-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra",
         "-Werror", "-O1", "-fPIC", "-shared", "-I", root / "include",
         "-L", Path(build) / "lib", "-lfsdprt", "-o", out],
        input=source.encode(), check=True,
    )


if __name__ == "__main__":
    main()
