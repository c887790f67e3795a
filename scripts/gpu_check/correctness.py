# Every kernel, bit by bit, against the oracle; and one out of a graph.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from .driver import Graph
from .stage import Skip
from .workloads import CHECKED_WHOLE

try:
    import numpy as np

    from local_ops import read_local_ops

    from .operands import Arena, ExactAllocations, Operands, Placement, Wrong
except ImportError:
    np = None

PLACEMENTS = 3  # the first is aligned
SMALL_OPERATIONS = 12  # of a module, where little time is left


def need_numpy():
    if np is None:
        raise Skip("no NumPy: nothing to compare with")


def run(memory, operands, launch_of):
    """One launch of `launch_of(members, old, bucket)`; raises Wrong."""
    everything = operands.all
    address = dict(zip(map(id, everything), memory.place(everything)))
    launch = launch_of(
        [address[id(o)] for o in operands.members],
        [address[id(o)] for o in operands.old], address[id(operands.bucket)],
    )
    launch()
    memory.check(everything)


def check_module(stage, module, memory, placements, most):
    """(launches, operations with wrong bits)"""
    library = stage.load(module)
    stage.emulate(module)
    ops = read_local_ops(stage.folder.text(module))
    launches = wrong = 0
    for number, (op, operation) in enumerate(zip(ops, module.operations)):
        if number >= most:
            break
        for attempt in range(placements):
            stage.go_on()
            rng = np.random.default_rng([number, attempt])
            place = Placement.anywhere(op, rng) if attempt else Placement.aligned(op)
            operands = Operands(op, module.kind, place, rng)
            launches += 1
            try:
                run(memory, operands, lambda *a: stage.launch(library, operation, *a))
            except Wrong as error:
                wrong += 1
                stage.log(f"{module.name}, {op}, {place}: {error}")
                stage.check(f"{module.name} {operation.function}", False, str(error))
                break
    return launches, wrong


def correctness(stage):
    """All modules; with `small` a few operations, and exact allocations."""
    need_numpy()
    small = stage.settings.small
    memory = (ExactAllocations if small else Arena)(stage.gpu)
    total = failed = 0
    for module in stage.folder.modules:
        if module.kind == "workload" and (small or module.name not in CHECKED_WHOLE):
            continue
        whole = module.kind == "workload"
        launches, wrong = check_module(
            stage, module, memory, 1 if whole else PLACEMENTS,
            SMALL_OPERATIONS if small else len(module.operations),
        )
        if not wrong:
            what = "at full size" if whole else "launches"
            stage.check(module.name, True, what if whole else f"{launches} {what}")
        total, failed = total + launches, failed + wrong
    stage.fact("compared", f"{total} launches, {failed} operations wrong")
    memory.free()


def graph(stage):
    """A launch that was captured, replayed on new data in the same memory."""
    need_numpy()
    module = stage.folder.module("tiny")
    library = stage.load(module)
    stage.emulate(module)
    op = read_local_ops(stage.folder.text(module))[0]
    memory = Arena(stage.gpu)
    graphs = []

    def captured(members, old, bucket):
        if not graphs:
            launch = stage.launch(library, module.operations[0], members, old, bucket)
            launch()  # loads the kernel, which must not happen while recording
            stage.gpu.finish()
            graphs.append(Graph(stage.gpu, launch))
        return graphs[0]

    wrong = ""
    for replay in range(4):  # the first one proves nothing
        rng = np.random.default_rng(replay)
        operands = Operands(op, module.kind, Placement.aligned(op), rng)
        try:
            run(memory, operands, captured)
        except Wrong as error:
            wrong = wrong or f"replay {replay}: {error}"
    stage.check("a captured launch, replayed", not wrong, wrong or "3 replays on new data")
    graphs[0].destroy()
    memory.free()
