#!/usr/bin/env python3
# Records what PyTorch's fully_shard computes, as cases for scripts/run-cases.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Needs an interpreter with torch; no GPU: the ranks are processes on Gloo. For
# each policy of docs/PyTorch.md and each mesh, one module is sharded, its
# parameters are gathered by a forward pass, and its gradients, which are chosen
# and differ from rank to rank, are reduced by a backward pass. Inputs and outputs
# become cases in the format of test/cases.json: one case for each mesh and each
# set of options that the table names, with a unit for each policy.
#
#   record.py FILE           writes the cases
#   record.py FILE --check   computes them again: is the file what torch says?
#
# Values are bit patterns, so that no digit is in doubt.

import argparse
import json
import os
import random
import socket
import struct
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
WORDS = {"f16": torch.int16, "bf16": torch.int16, "f32": torch.int32}

# Sizes that the numbers of ranks do not divide, and one parameter of one element.
SHAPES = {"up": [7, 3], "bias": [13], "norm": [5, 2, 2], "scale": [1]}

# Policies: what the user of PyTorch writes, and what a unit of ours says. `gloo`:
# the average comes after the sum, except in f16, where PyTorch divides before and
# after it as we do.
POLICIES = {
    "f32": {"storage": "f32"},
    "param-bf16": {"storage": "f32", "param": "bf16"},
    "param-bf16-reduce-f32": {"storage": "f32", "param": "bf16", "reduce": "f32"},
    "param-bf16-reduce-bf16": {"storage": "f32", "param": "bf16", "reduce": "bf16"},
    "reduce-bf16": {"storage": "f32", "reduce": "bf16"},
    "param-f16": {"storage": "f32", "param": "f16"},
    "param-f16-reduce-f16": {"storage": "f32", "param": "f16", "reduce": "f16"},
    "bf16": {"storage": "bf16"},
    "bf16-reduce-f32": {"storage": "bf16", "reduce": "f32"},
    "bf16-param-f32": {"storage": "bf16", "param": "f32"},
    "bf16-grad-f32": {"storage": "bf16", "grad": "f32"},
    "f16": {"storage": "f16"},
    "override": {"storage": "f32", "param": "bf16", "keep": ["norm", "scale"]},
    "frozen": {"storage": "f32", "param": "bf16", "frozen": ["up"]},
    "factor-w": {"storage": "f32", "param": "bf16", "factor": "W"},
    "sum-factor": {
        "storage": "f32", "param": "bf16", "reduce": "bf16", "factor": 6.0,
        "sum": True,
    },
    "f16-factor": {"storage": "f32", "param": "f16", "reduce": "f16", "factor": 6.0},
}

# Meshes: shards, or replicas of shards.
MESHES = [[2], [3], [4], [2, 2]]


def reduce_dtype(policy):
    """2.15: the grad dtype where the policy has none, whatever the param dtype."""
    return policy.get("reduce", policy.get("grad", policy["storage"]))


def divides_before(policy):
    """PyTorch divides f16 in two steps, by its own code and not by Gloo's."""
    return reduce_dtype(policy) == "f16"


def described(name, mesh):
    """The unit in the format of test/cases.json."""
    policy = POLICIES[name]
    unit = {"name": name, "precision": {}}
    for key in ("param", "reduce", "grad"):
        if key in policy:
            unit["precision"][key] = policy[key]
    if policy.get("sum"):
        unit["reduction"] = "sum"
    if "factor" in policy:
        unit["divide_factor"] = factor_of(policy, mesh)
    unit["params"] = []
    for param, shape in SHAPES.items():
        entry = {"name": f"{name}.{param}", "shape": shape}
        entry["storage"] = policy["storage"]
        if param in policy.get("keep", []):
            entry["precision"] = {"param": policy["storage"]}
        if param in policy.get("frozen", []):
            entry["frozen"] = True
        unit["params"].append(entry)
    return unit


def factor_of(policy, mesh):
    return float(mesh[-1]) if policy["factor"] == "W" else policy["factor"]


def param_dtype(policy, param):
    if param in policy.get("keep", []):
        return policy["storage"]
    return policy.get("param", policy["storage"])


def hexes(tensor, t):
    """A tensor's bit patterns, one after the other."""
    width = {"f32": 8}.get(t, 4)
    words = tensor.detach().contiguous().view(WORDS[t]).flatten().tolist()
    return "".join(f"{w & ((1 << 4 * width) - 1):0{width}x}" for w in words)


def drawn(what, shape, t):
    """Values over many binades, so that sums round, and some zeros of either
    sign. Drawn by Python, whose generator is the same everywhere."""
    rng = random.Random(what)
    count = 1
    for size in shape:
        count *= size
    values = []
    for _ in range(count):
        value = rng.gauss(0, 1) * 2.0 ** rng.randint(-9, 6)
        values.append(rng.choice([0.0, -0.0]) if rng.random() < 0.06 else value)
    exact = struct.unpack(f"{count}f", struct.pack(f"{count}f", *values))
    return torch.tensor(exact, dtype=torch.float32).reshape(shape).to(DTYPES[t])


def weight(policy, param):
    return drawn(f"{param} weight", SHAPES[param], policy["storage"])


def gradient(policy, param, rank):
    t = param_dtype(policy, param)
    return drawn(f"{param} gradient {rank}", SHAPES[param], t)


class Unit(nn.Module):
    """Its gradients are what `backward` is given, to the bit: 1 times each."""

    def __init__(self, policy):
        super().__init__()
        for param in SHAPES:
            trainable = param not in policy.get("frozen", [])
            value = nn.Parameter(weight(policy, param), requires_grad=trainable)
            if "grad" in policy and trainable:
                value.grad_dtype = DTYPES[policy["grad"]]
            self.register_parameter(param, value)
        self.gathered = {}

    def forward(self, gradients):
        total = 0
        for param, gradient in gradients.items():
            value = getattr(self, param)
            self.gathered[param] = value.detach().clone()
            if value.requires_grad:
                total = total + (value * gradient).sum(dtype=torch.float64)
        return total


def sharded(policy, mesh):
    """The module as a user would write it."""
    unit = Unit(policy)
    keep = {id(getattr(unit, name)) for name in policy.get("keep", [])}
    override = None
    if keep:
        def override(param):
            return param.dtype if id(param) in keep else None
    fully_shard(
        unit,
        mesh=DeviceMesh(
            "cpu", torch.arange(dist.get_world_size()).reshape(mesh),
            mesh_dim_names=("replicate", "shard")[-len(mesh) :],
        ),
        mp_policy=MixedPrecisionPolicy(
            param_dtype=DTYPES.get(policy.get("param")),
            reduce_dtype=DTYPES.get(policy.get("reduce")),
            cast_forward_inputs=False,
            param_dtype_override_fn=override,
        ),
    )
    if "factor" in policy:
        unit.set_gradient_divide_factor(factor_of(policy, mesh))
    if policy.get("sum"):
        unit.set_force_sum_reduction_for_comms(True)
    return unit


def padded(shard, param, mesh):
    """A rank's share with the zeros that ours ends in."""
    shape = list(SHAPES[param])
    shape[0] = -(-shape[0] // mesh[-1])
    out = torch.zeros(shape, dtype=shard.dtype)
    out[: shard.shape[0]] = shard
    return out


def one_rank(rank, ranks, port, jobs, results):
    """Every policy on every mesh of that many ranks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    out = {}
    for name, mesh in jobs:
        policy = POLICIES[name]
        unit = sharded(policy, mesh)
        given = {p: gradient(policy, p, rank) for p in SHAPES}
        unit(given).backward()
        gathered, shards = {}, {}
        for param in SHAPES:
            t = param_dtype(policy, param)
            gathered[param] = (t, hexes(unit.gathered[param], t))
            grad = getattr(unit, param).grad
            if grad is None:
                continue
            t = policy.get("grad", policy["storage"])
            local = grad.to_local()
            assert local.dtype == DTYPES[t], (name, param, local.dtype)
            shards[param] = (t, hexes(padded(local, param, mesh), t))
        out[name, tuple(mesh)] = (gathered, shards)
    results.put((rank, out))
    dist.barrier()
    dist.destroy_process_group()


def run(ranks, jobs):
    """{(policy, mesh): [(gathered, shards) of each rank]}"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=one_rank, args=(r, ranks, port, jobs, queue))
        for r in range(ranks)
    ]
    for process in processes:
        process.start()
    per_rank = dict(queue.get(timeout=300) for _ in processes)
    for process in processes:
        process.join()
    return {
        (name, tuple(mesh)): [per_rank[r][name, tuple(mesh)] for r in range(ranks)]
        for name, mesh in jobs
    }


def grid_of(mesh):
    grid = {"shape": mesh}
    if len(mesh) == 2:
        grid["replicate_axes"] = [0]
    return grid


def options_of(policy):
    """In a ring the order of a sum depends on the place in the buffer, so the
    layout is PyTorch's."""
    options = {
        "profile": "grad_dtype", "policy": "torch-fsdp2", "sum_order": "ring",
    }
    return options if divides_before(policy) else dict(options, average="after")


class Cases:
    """One for each mesh and each set of options; inputs that several of them
    have are stored once."""

    def __init__(self):
        self.tensors, self.cases = {}, {}

    def shared(self, name, tensor, t):
        self.tensors[f"{name}.{t}"] = hexes(tensor, t)
        return f"@{name}.{t}"

    def case(self, mesh, options):
        label = f"torch-{'x'.join(map(str, mesh))}"
        label += f"-{options['average']}" if "average" in options else "-before"
        if label not in self.cases:
            self.cases[label] = {
                "id": label, "title": "fully_shard, policy by policy",
                "kind": "step", "W": mesh[-1], "grid": grid_of(mesh),
                "options": options, "levels": [2], "units": [],
                "inputs": {"tensors": {}, "grads": {}},
                "expected": {"full": {}, "shards": {}},
            }
        return self.cases[label]

    def add(self, name, mesh, per_rank):
        policy = POLICIES[name]
        case = self.case(mesh, options_of(policy))
        case["units"].append(described(name, mesh))
        inputs, expected = case["inputs"], case["expected"]
        gathered, reduced = per_rank[0]
        assert all(other == gathered for other, _ in per_rank), (name, mesh)
        for param, (t, values) in gathered.items():
            full = f"{name}.{param}"
            weight_of = weight(policy, param)
            inputs["tensors"][full] = {
                "values": self.shared(f"{param}.weight", weight_of, policy["storage"])
            }
            expected["full"][full] = {"dtype": t, "values": values}
        for param, (t, _) in reduced.items():
            full, given = f"{name}.{param}", param_dtype(policy, param)
            inputs["grads"][full] = {
                "dtype": given,
                "ranks": [
                    self.shared(
                        f"{param}.gradient.{r}", gradient(policy, param, r), given
                    )
                    for r in range(len(per_rank))
                ],
            }
            shards = [own[param][1] for _, own in per_rank]
            expected["shards"][full] = {"dtype": t, "ranks": shards}


def record():
    by_ranks = {}
    for mesh in MESHES:
        ranks = 1
        for size in mesh:
            ranks *= size
        jobs = by_ranks.setdefault(ranks, [])
        for name, policy in POLICIES.items():
            jobs.append((name, mesh))
    cases = Cases()
    for ranks, jobs in by_ranks.items():
        for (name, mesh), per_rank in run(ranks, jobs).items():
            cases.add(name, list(mesh), per_rank)
    return {
        "about": "What PyTorch's fully_shard computes on Gloo, recorded by "
        "record.py, with the profile and the options under which ours is equal.",
        "torch": torch.__version__.split("+")[0],
        "tensors": cases.tensors,
        "cases": list(cases.cases.values()),
    }


def text_of(recorded):
    """One tensor or case a line."""
    cases = [json.dumps(case, separators=(",", ":")) for case in recorded["cases"]]
    tensors = [
        f"{json.dumps(name)}:{json.dumps(bits)}"
        for name, bits in recorded["tensors"].items()
    ]
    head = {k: v for k, v in recorded.items() if k not in ("cases", "tensors")}
    return (
        json.dumps(head)[:-1]
        + ', "tensors": {\n' + ",\n".join(tensors)
        + '\n}, "cases": [\n' + ",\n".join(cases) + "\n]}\n"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    recorded = record()
    if not args.check:
        args.file.write_text(text_of(recorded))
        print(f"{args.file}: {len(recorded['cases'])} cases")
        return
    wanted = json.loads(args.file.read_text())
    if wanted["torch"] != recorded["torch"]:
        print(f"recorded with torch {wanted['torch']}, this is {recorded['torch']}")
    wrong = [
        f"{case['id']}, {name}, {what}"
        for case, now in zip(wanted["cases"], recorded["cases"])
        for what in ("full", "shards")
        for name, value in case["expected"][what].items()
        if value != now["expected"][what].get(name)
    ]
    for name in wrong:
        print(f"{name}: not what torch {recorded['torch']} computes")
    # Inputs and descriptions are this script's.
    for one in (wanted, recorded):
        for case in one["cases"]:
            case["expected"] = None
        one["torch"] = None
    if wanted != recorded:
        wrong.append("inputs")
        print(f"{args.file} has other cases than this script")
    passed = sum(len(case["units"]) for case in recorded["cases"])
    print(f"{passed} policies on a mesh, {len(wrong)} tensors differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
