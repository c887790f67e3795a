# How long the workloads take, beside a plain copy of as many bytes.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Two ways. `graph`: many launches in one graph, its time divided by their number,
# the median over replays; this is what targets are for. `stream`: an event before
# and after each launch, all queued after a long copy, so that the device does
# not wait for Python; this is what PyTorch can be compared in.
#
# Launches go round several sets of operands, together several times the L2. Data
# is random bits: zeros take less power, and so less time.

import os
from dataclasses import dataclass

from .driver import DriverError, Graph
from .workloads import BY_NAME

RANDOM_BYTES = 32 << 20
MOST_SETS = 16
BATCH = 20


@dataclass(frozen=True)
class Repeats:
    graph_microseconds: int = 5000  # of one replay, about
    replays: int = 25
    stream: int = 60

    @staticmethod
    def of(settings):
        return Repeats(20, 3, BATCH) if settings.quick else Repeats()


ASSUMED_BYTES_PER_MICROSECOND = 3e6
BLOCKER_BYTES = 4 << 30  # takes a millisecond or more
ALIGNMENT = 512


class Random:
    """Random bits on the device, to fill operands with."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.address = gpu.allocate(RANDOM_BYTES)
        gpu.upload(self.address, os.urandom(RANDOM_BYTES))

    def fill(self, address, size):
        for begin in range(0, size, RANDOM_BYTES):
            part = min(RANDOM_BYTES, size - begin)
            self.gpu.copy(address + begin, self.address, part)

    def free(self):
        self.gpu.free(self.address)


def sets_for(gpu, size):
    """How many sets of operands of `size` bytes to go round."""
    l2 = gpu.attribute("l2_bytes") or 50 << 20
    wanted = max(-(-4 * l2 // max(size, 1)), 4)
    fitting = int(gpu.free_bytes * 0.4 // max(size, 1))
    return max(1, min(wanted, MOST_SETS, fitting))


class Operands:
    """One allocation with all operands of one launch."""

    def __init__(self, gpu, operation, random):
        sizes = operation.members * (2 if operation.adds else 1) + [operation.bucket]
        places, end = [], 0
        for size in sizes:
            places.append(end)
            end += -(-size // ALIGNMENT) * ALIGNMENT
        self.gpu, self.size = gpu, end
        self.address = gpu.allocate(end)
        random.fill(self.address, end)
        count = len(operation.members)
        addresses = [self.address + place for place in places]
        self.members, self.old = addresses[:count], addresses[count:-1]
        self.bucket = addresses[-1]

    def free(self):
        self.gpu.free(self.address)


class Blocker:
    """Keeps the device busy while calls are queued."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.size = min(BLOCKER_BYTES, int(gpu.free_bytes * 0.1)) // 2
        self.address = gpu.allocate(2 * self.size)

    def __call__(self):
        self.gpu.copy(self.address + self.size, self.address, self.size)

    def free(self):
        self.gpu.free(self.address)


def in_graph(stage, calls, moved):
    """Microseconds per call, one for each replay of a graph of them."""
    gpu, repeats = stage.gpu, Repeats.of(stage.settings)
    estimate = 5 + moved / ASSUMED_BYTES_PER_MICROSECOND
    rounds = max(1, round(repeats.graph_microseconds / estimate / len(calls)))
    count = rounds * len(calls)

    def record():
        for _ in range(rounds):
            for call in calls:
                call()

    graph = Graph(gpu, record)
    for _ in range(2):
        graph()
    times = gpu.time_each([graph] * repeats.replays)
    graph.destroy()
    return [time / count for time in times]


def on_stream(stage, calls, blocker):
    times = []
    while len(times) < Repeats.of(stage.settings).stream:
        batch = [calls[i % len(calls)] for i in range(BATCH)]
        times += stage.gpu.time_each(batch, blocker)
    return times


def both_ways(stage, workload, what, calls, moved, blocker):
    stage.go_on()
    middle = stage.time(workload, f"{what}, graph", in_graph(stage, calls, moved))
    stage.go_on()
    stage.time(workload, f"{what}, stream", on_stream(stage, calls, blocker))
    return middle


def measure(stage, module, random, blocker):
    gpu, operation = stage.gpu, module.operations[0]
    library = stage.load(module)
    size = sum(operation.members) + operation.bucket
    sets = [Operands(gpu, operation, random) for _ in range(sets_for(gpu, size))]
    gpu.finish()
    launches = [
        stage.launch(library, operation, s.members, s.old, s.bucket) for s in sets
    ]
    for launch in launches:  # a graph wants kernels that have been loaded
        launch()
    gpu.finish()
    first = both_ways(stage, module.name, "ours", launches, operation.moved, blocker)
    # A copy of half the bytes moves as many: it reads them and writes them.
    half = operation.moved // 2

    def copy_of(place):
        middle = place.address + -(-half // ALIGNMENT) * ALIGNMENT
        part = min(half, place.address + place.size - middle)
        return lambda: gpu.copy(middle, place.address, part)

    copies = [copy_of(place) for place in sets]
    both_ways(stage, module.name, "copy", copies, operation.moved, blocker)
    if module.name == "P1":  # how far two measurements of the same are apart
        again = stage.time(
            module.name, "ours again, graph",
            in_graph(stage, launches, operation.moved),
        )
        stage.fact(
            "P1 measured twice", f"{first:.2f} and {again:.2f} us, "
            f"{100 * abs(again / first - 1):.2f} % apart",
        )
    for place in sets:
        place.free()


def timing(stage):
    gpu = stage.gpu
    random, blocker = Random(gpu), Blocker(gpu)
    for name in BY_NAME:
        module = stage.folder.module(name)
        if not module:
            continue
        try:
            measure(stage, module, random, blocker)
        except DriverError as error:
            stage.check(f"{name} measured", False, str(error))
            raise
    random.free()
    blocker.free()
