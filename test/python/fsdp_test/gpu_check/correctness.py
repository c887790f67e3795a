# Every kernel, bit by bit, against the oracle; and one out of a graph.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from .driver import Graph
from .runtime import RuntimeFailure
from .stage import Skip
from .workloads import CHECKED_WHOLE

try:
    import numpy as np

    from fsdp_test.ptx.local_ops import read_local_ops

    from .operands import Arena, ExactAllocations, Operands, Placement, Wrong
except ImportError:
    np = None

SMALL_OPERATIONS = 12  # of a module, where little time is left


def need_numpy():
    if np is None:
        raise Skip("no NumPy: nothing to compare with")


def launched_ops(stage, module):
    """The oracle's view of the module's operations."""
    ops = read_local_ops(stage.folder.text(module))
    return [op for op in ops if not op.is_empty]


def run(memory, operands, call_of):
    """What `call_of(members, old, bucket)` returns, once; raises Wrong."""
    everything = operands.all
    address = dict(zip(map(id, everything), memory.place(everything)))
    call_of(
        [address[id(o)] for o in operands.members],
        [address[id(o)] for o in operands.old], address[id(operands.bucket)],
    )()
    memory.check(everything)


class Ways:
    """How an operation is started: by the driver alone, or by its artefact."""

    def __init__(self, stage, module):
        self.stage, self.module = stage, module
        self.library = stage.load(module)

    def driver(self, operation):
        return lambda *addresses: self.stage.launch(self.library, operation, *addresses)

    def artefact(self, operation):
        def call_of(members, old, bucket):
            arguments = members if operation.packs else [bucket, *old]
            results = [bucket] if operation.packs else members
            return self.stage.entry(self.module, operation, arguments, results)

        return call_of


def attempts(op, number, ways, operation, is_whole):
    """[(how it is started, where its operands lie, random numbers)]"""

    def rng(attempt):
        return np.random.default_rng([number, attempt])

    yield ways.driver(operation), Placement.aligned(op), rng(0)
    if not is_whole:
        place = rng(1)
        yield ways.driver(operation), Placement.anywhere(op, place), place
        yield ways.artefact(operation), Placement.aligned(op), rng(2)


def check_module(stage, module, memory, most):
    """(launches, operations with wrong bits)"""
    ways = Ways(stage, module)
    ops = launched_ops(stage, module)
    launches = wrong = 0
    for number, (op, operation) in enumerate(zip(ops, module.operations)):
        if number >= most:
            break
        is_whole = module.kind == "workload"
        for call_of, place, rng in attempts(op, number, ways, operation, is_whole):
            stage.go_on()
            launches += 1
            try:
                run(memory, Operands(op, module.kind, place, rng), call_of)
            except (Wrong, RuntimeFailure) as error:
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
        is_whole = module.kind == "workload"
        if is_whole and (small or module.name not in CHECKED_WHOLE):
            continue
        most = SMALL_OPERATIONS if small else len(module.operations)
        launches, wrong = check_module(stage, module, memory, most)
        if not wrong:
            stage.check(
                module.name, True, "at full size" if is_whole else f"{launches} launches"
            )
        total, failed = total + launches, failed + wrong
    stage.fact("compared", f"{total} launches, {failed} operations wrong")
    memory.free()


# --- graphs -------------------------------------------------------------------

REPLAYS = 4


def check_graph(stage, op, kind, what, call_of):
    """Captures what `call_of` returns, and replays it on new data in the same
    memory."""
    memory = Arena(stage.gpu)
    graphs = []

    def captured(*addresses):
        if not graphs:
            call = call_of(*addresses)
            call()  # loads the kernel, which must not happen while recording
            stage.gpu.finish()
            graphs.append(Graph(stage.gpu, call))
        return graphs[0]

    wrong = ""
    for replay in range(REPLAYS):  # the first one proves nothing
        rng = np.random.default_rng(replay)
        operands = Operands(op, kind, Placement.aligned(op), rng)
        try:
            run(memory, operands, captured)
        except Wrong as error:
            wrong = wrong or f"replay {replay}: {error}"
    stage.check(what, not wrong, wrong or f"{REPLAYS - 1} replays on new data")
    graphs[0].destroy()
    memory.free()


def graph(stage):
    need_numpy()
    module = stage.folder.module("tiny")
    ways = Ways(stage, module)
    op, operation = launched_ops(stage, module)[0], module.operations[0]
    check_graph(stage, op, module.kind, "a captured launch", ways.driver(operation))
    check_graph(stage, op, module.kind, "a captured entry", ways.artefact(operation))
