# Random programs in batches; a batch is a function of the seed and its number.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A module has one grid and one set of options, so these belong to the batch.
# Everything else varies from program to program.

from itertools import chain
from math import prod
from random import Random

from fsdp_test.oracle.precision import Refused

from .description import gradients_of, precisions_of

FLOATS = ["f16", "bf16", "f32", "f64"]
OPAQUE = ["i8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2"]
BATCH = 10

# A grid's shape with the ways in which a unit may use its axes: shard axes and
# replicate axes; an axis in neither list is foreign.
GRIDS = [
    ([1], [([0], []), ([], [0])]),
    ([2], [([0], []), ([0], []), ([], [0])]),
    ([3], [([0], [])]),
    ([4], [([0], []), ([0], []), ([], [0])]),
    ([5], [([0], [])]),
    ([8], [([0], [])]),
    ([2, 2], [([1], [0]), ([0], [1]), ([0, 1], []), ([1, 0], []), ([1], [])]),
    ([3, 2], [([1], [0]), ([0], [1]), ([0], []), ([1, 0], [])]),
    ([2, 3], [([1], [0]), ([0], [1]), ([1], []), ([], [0, 1])]),
    ([2, 2, 2], [([2], [0]), ([1, 2], [0]), ([2, 0], [1]), ([2], [0, 1])]),
]
# Pairs of numbers of ranks that must give the same results.
OTHER_RANKS = [(1, 4), (2, 3), (4, 8), (3, 5), (2, 8), (1, 2)]
OTHER_POLICIES = ["torch-fsdp2", "inductor", "xla", "deepspeed", "megatron"]
# The default, by turns with the others; "global" is its scope.
POLICIES = ["", "global", *OTHER_POLICIES[:3], "", "global", *OTHER_POLICIES[3:]]
POLICIES += ["", ""]
SIZES = [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17]


def _some(rng, chance):
    return rng.random() < chance


def _casts(rng, chance):
    """A chain of casts that fsdp-fuse-casts may fold, or must not."""
    if not _some(rng, chance):
        return []
    return [rng.choice(FLOATS) for _ in range(rng.choice([1, 1, 2]))]


def _precision(rng, chance):
    keys = [k for k in ("param", "reduce", "grad") if _some(rng, chance)]
    return {k: rng.choice(FLOATS) for k in keys}


def _param(rng, name):
    shape = [rng.choice(SIZES) for _ in range(rng.choice([1, 2, 2, 3]))]
    if _some(rng, 0.05):
        shape = [rng.randint(200, 1500)]
    param = {"name": name, "shape": shape, "shard_dim": rng.randrange(len(shape))}
    if _some(rng, 0.1):
        return dict(param, storage=rng.choice(OPAQUE), frozen=True)
    param["storage"] = rng.choice(FLOATS)
    if _some(rng, 0.15):
        param["frozen"] = True
    if _some(rng, 0.5):
        param["precision"] = _precision(rng, 0.4)
    return param


def _obey(rng, unit):
    """Makes a unit one that its profile does not refuse."""
    profile = unit.get("profile")
    if profile == "stable":
        storage = rng.choice(FLOATS)
        for p in unit["params"]:
            if not p.get("frozen"):
                p["storage"] = storage
                p.pop("precision", None)
    elif profile == "grad_dtype":
        for p in unit["params"]:
            own = p.get("precision", {})
            own.pop("param", None)
            own.pop("reduce", None)
    for p in unit["params"]:
        if p["storage"] in OPAQUE:
            p.get("precision", {}).pop("param", None)


def _unit(rng, name, grid, uses):
    names = [f"{name}.{n}" for n in rng.sample(["z", "w-1", "b", "a", "k.q"], 5)]
    params = [_param(rng, names[i]) for i in range(rng.randint(1, 5))]
    unit = {"name": name, "precision": _precision(rng, 0.5), "params": params}
    shard, replicate = rng.choice(uses)
    unit["shard_axes"], unit["replicate_axes"] = list(shard), list(replicate)
    if _some(rng, 0.3):
        unit["reduction"] = "sum"
    if _some(rng, 0.35):
        w = prod(grid["shape"][a] for a in shard)
        unit["divide_factor"] = rng.choice([1, 2, 3, 6, 7.5, 300, w, 1024])
    if _some(rng, 0.4):
        unit["profile"] = rng.choice(["per_param", "stable", "grad_dtype"])
    _obey(rng, unit)
    return unit


def _term(rng, param_dtype):
    return {
        "dtype": param_dtype if _some(rng, 0.6) else rng.choice(FLOATS),
        "casts": _casts(rng, 0.2),
        "weight": _some(rng, 0.1),
    }


def _grad(rng, param, precision):
    terms = [
        _term(rng, precision.param.name) for _ in range(rng.choice([1, 1, 1, 2, 3]))
    ]
    if _some(rng, 0.1):  # two uses of the gathered tensor
        terms = [{"dtype": precision.param.name, "weight": True} for _ in range(2)]
    return {
        "param": param["name"],
        "terms": terms,
        "casts": _casts(rng, 0.3),
        "old": _some(rng, 0.1),
        "add": _some(rng, 0.7),
        "result_casts": _casts(rng, 0.15),
    }


def _partial(rng, unit, precisions, options):
    """Microbatches in explicit IR; None if no parameter has a gradient."""
    trainable = [p for p in unit["params"] if not p.get("frozen")]
    if not trainable:
        return None
    wire = precisions[unit["name"], rng.choice(trainable)["name"]].reduce
    params = [
        p for p in trainable if precisions[unit["name"], p["name"]].reduce is wire
    ]
    step = {
        "partial": unit["name"],
        "microbatches": [
            [_grad(rng, p, precisions[unit["name"], p["name"]]) for p in params]
            for _ in range(rng.choice([1, 2, 2, 3]))
        ],
    }
    if "align" in options:
        step["align"] = rng.choice([options["align"], _align(rng)])
    if _some(rng, 0.2):
        step["accumulate"] = "f32"
    for key, chance in [
        ("joint", 0.5), ("enters", 0.3), ("leaves", 0.3), ("split_add", 0.5)
    ]:
        step[key] = _some(rng, chance)
    return step


def _steps(rng, program, grid, options):
    precisions = precisions_of(program, grid)
    steps = []
    for unit in program["units"]:
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            casts = {p["name"]: _casts(rng, 0.15) for p in unit["params"]}
            steps.append({"gather": unit["name"], "casts": casts})
        trainable = [p for p in unit["params"] if not p.get("frozen")]
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            named = [p for p in trainable if _some(rng, 0.75)]
            rng.shuffle(named)  # operands come in any order
            if named:
                grads = [
                    _grad(rng, p, precisions[unit["name"], p["name"]]) for p in named
                ]
                steps.append({"reduce": unit["name"], "grads": grads})
        if _some(rng, 0.5 if unit["replicate_axes"] else 0.1):
            partial = _partial(rng, unit, precisions, options)
            steps += [partial] if partial else []
    rng.shuffle(steps)
    return steps


def _program(rng, name, grid, uses, options, invariant):
    program = {"name": name}
    program["values"] = "edges" if _some(rng, 0.35) else "fill"
    count = rng.choice([1, 1, 2, 2, 3])
    program["units"] = [_unit(rng, f"{name}.u{i}", grid, uses) for i in range(count)]
    if invariant:
        program["values"] = "integers"
        for unit in program["units"]:
            unit["reduction"] = "sum"
            unit.pop("divide_factor", None)
    program["steps"] = _steps(rng, program, grid, options)
    if invariant:
        for step in program["steps"]:
            # A shard's own, not a cut of one tensor.
            step.pop("enters", None)
            step.pop("split_add", None)
            for grad in chain(*gradients_of(step)):
                grad["old"] = False
                for term in grad["terms"]:
                    # The same on all ranks, so its sum depends on their number.
                    term["weight"] = False
    return program


def _align(rng):
    small, large = rng.randint(0, 3), rng.randint(4, 12)
    return 1 << rng.choice([small, large])


def _limits(rng, sizes):
    """One limit for all buckets, or one for each in turn."""
    count = rng.choice([1, 2, 3])
    return ",".join(str(rng.choice(sizes)) for _ in range(count))


def _bucket_options(rng, policy):
    """Options of fsdp-form-buckets that go with each other."""
    options = {}
    if policy in OTHER_POLICIES:
        options["policy"] = policy
    if policy == "torch-fsdp2":
        return options
    if policy == "global" or (policy in OTHER_POLICIES and _some(rng, 0.7)):
        options["scope"] = "global"
    if policy in ("deepspeed", "megatron"):
        if _some(rng, 0.7):
            options["max_elements"] = _limits(rng, [10, 40, 160, 640])
    elif _some(rng, 0.7 if policy else 0.3):
        options["max_bytes"] = _limits(rng, [64, 256, 1024, 4096])
    if policy in ("inductor", "xla"):
        options["gather"] = rng.choice(["bytes", "per-dtype"])
    elif policy != "deepspeed" and _some(rng, 0.3):
        options["gather"] = "per-dtype"
    if policy not in OTHER_POLICIES and _some(rng, 0.6):
        options["order"] = "execution"
    return options


def _options(rng, number):
    options = _bucket_options(rng, POLICIES[number % len(POLICIES)])
    if _some(rng, 0.7):
        options["align"] = _align(rng)
    if _some(rng, 0.5):
        options["unused"] = "zero"
    if _some(rng, 0.5):
        options["accumulate"] = "f32"
    if _some(rng, 0.4):
        options["average"] = "after"
    return options


def batch(seed, number, count=BATCH):
    """The batch of that number. Grids, policies and numbers of ranks take turns,
    with periods that have no common factor, so that none is missing from a short
    run; every seventh batch runs on two numbers of ranks."""
    rng = Random(f"{seed}/{number}")
    out = {"name": f"batch-{seed}-{number}", "options": _options(rng, number)}
    invariant = number % 7 == 3
    if invariant:
        ranks, other = rng.choice(OTHER_RANKS)
        shape, uses = [ranks], [([0], [])]
        out["other_grid"] = {"shape": [other]}
    else:
        shape, uses = GRIDS[number * 7 % len(GRIDS)]
    out["grid"] = {"shape": list(shape)}
    if number % 9 == 1:
        out["codegen_level"] = 2
    # In a ring the order depends on the place in the buffer, unless rows have an
    # even number of elements.
    options = out["options"]
    if number % 3 == 2 and options.get("policy") != "torch-fsdp2":
        out["sum_order"] = "ring"
        if "align" in options:
            options["align"] = max(options["align"], 16)
    out["programs"] = []
    while len(out["programs"]) < count:
        name = f"p{number}_{len(out['programs'])}"
        try:
            program = _program(
                rng, name, out["grid"], uses, out["options"], invariant
            )
        except Refused:
            continue  # a profile's rule; tested by test/cases.json
        if program["steps"]:
            out["programs"].append(program)
    return out
