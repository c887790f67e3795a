# PyTorch's own way to do what each workload does, on the same device.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   chunk_cat   torch._chunk_cat: cast and pack in one kernel. It takes members of
#               one dtype, so all are the matrices'.
#   cast        members cast to the bucket's dtype first, then torch._chunk_cat
#   foreach     torch._foreach_copy_ into views of the flat shard
#   split       torch.split_with_sizes_copy out of the bucket's rows
#
# Every call is eager, as it is in training: with its table uploads, and queued
# after a long kernel, so that the device does not wait for Python.

from .stage import Skip
from .timing import BATCH, Repeats
from .workloads import BY_NAME, RANKS

SETS = 2
WARM_UP = 3
SLEEP_CYCLES = 200_000_000  # 100 ms: hundreds of tensors take the host a while


def _torch():
    try:
        import torch
    except ImportError:
        raise Skip("no PyTorch") from None
    if not torch.cuda.is_available():
        raise Skip(f"PyTorch {torch.__version__} sees no device")
    return torch


class Maker:
    """Random tensors of the workloads."""

    def __init__(self, torch):
        self.torch = torch
        self.dtypes = {
            "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
        }

    def tensor(self, shape, name):
        tensor = self.torch.empty(shape, dtype=self.dtypes[name], device="cuda")
        return tensor.normal_()


def _chunk_cat(make, workload):
    torch, wire = make.torch, workload.wire
    name = workload.members[0][1]
    members = [make.tensor(shape, name) for shape, _ in workload.members]
    total = sum(m.numel() for m in members)
    out = torch.empty(RANKS, total // RANKS, dtype=make.dtypes[wire], device="cuda")

    def fused():
        torch._chunk_cat(members, dim=0, num_chunks=RANKS, out=out)

    def cast():
        wide = [m.to(make.dtypes[wire]) for m in members]
        torch._chunk_cat(wide, dim=0, num_chunks=RANKS, out=out)

    return {"chunk_cat": fused, "cast": cast} if name != wire else {"chunk_cat": fused}


def _concat(make, workload):
    torch = make.torch
    shards = []
    for shape, name in workload.members:
        shards.append(make.tensor((shape[0] // RANKS,) + shape[1:], name))
    sizes = [s.numel() for s in shards]
    flat = torch.empty(sum(sizes), dtype=make.dtypes[workload.wire], device="cuda")
    views = list(flat.split(sizes))
    sources = [s.view(-1) for s in shards]
    return {"foreach": lambda: torch._foreach_copy_(views, sources)}


def _unchunk(make, workload):
    torch = make.torch
    members = [make.tensor(shape, name) for shape, name in workload.members]
    sizes = [m.numel() // RANKS for m in members]
    bucket = make.tensor((RANKS, sum(sizes)), workload.wire)
    views = [m.view(RANKS, -1) for m in members]
    return {
        "split": lambda: torch.split_with_sizes_copy(bucket, sizes, dim=1, out=views)
    }


WAYS = {"chunk_cat": _chunk_cat, "concat": _concat, "unchunk": _unchunk}


def time_calls(torch, calls, repeats):
    """Microseconds of each call, as timing.on_stream takes them."""
    for _ in range(WARM_UP):
        for call in calls:
            call()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(BATCH + 1)]
    times = []
    while len(times) < repeats:
        torch.cuda._sleep(SLEEP_CYCLES)
        events[0].record()
        for number in range(BATCH):
            calls[number % len(calls)]()
            events[number + 1].record()
        torch.cuda.synchronize()
        times += [
            1000 * events[i].elapsed_time(events[i + 1]) for i in range(BATCH)
        ]
    return times


def pytorch(stage):
    torch = _torch()
    stage.fact("PyTorch", torch.__version__)
    make = Maker(torch)
    with torch.no_grad():
        measure_all(stage, torch, make)


def measure_all(stage, torch, make):
    for workload in BY_NAME.values():
        if not stage.folder.module(workload.name):
            continue
        stage.go_on()
        sets = []
        try:
            sets = [WAYS[workload.op](make, workload) for _ in range(SETS)]
            for what in sets[0]:
                times = time_calls(
                    torch, [ways[what] for ways in sets],
                    Repeats.of(stage.settings).stream,
                )
                stage.time(workload.name, f"PyTorch, {what}", times)
        except RuntimeError as error:  # what this version does not take
            stage.log(f"{workload.name}: {error}")
            stage.fact(f"PyTorch, {workload.name}", str(error).splitlines()[0])
        del sets
        torch.cuda.empty_cache()
