# The models of the examples as units, in the format of test/cases.json.
#
# Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Read by `make`, which writes them as IR, and by `check`, which has the oracle
# compute what their programs must give.

import json

from fsdp_test.paths import ROOT

SHAPES = ROOT / "examples" / "model_shapes.json"


def _expand(entries, prefix, experts, shard_dim=lambda entry: 0):
    """Parameters of a block; `{e}` runs over the first `experts` experts, one
    expert after the other."""
    params, at = [], 0
    while at < len(entries):
        run = 1
        if "{e}" in entries[at]["name"]:
            while at + run < len(entries) and "{e}" in entries[at + run]["name"]:
                run += 1
            copies = range(experts)
        else:
            copies = [None]
        for e in copies:
            for entry in entries[at : at + run]:
                param = {
                    "name": prefix + entry["name"].replace("{e}", str(e)),
                    "shape": entry["shape"],
                    "storage": "f32",
                    "shard_dim": shard_dim(entry),
                }
                if entry.get("fp32_in_source"):
                    param["precision"] = {"param": "f32"}
                params.append(param)
        at += run
    return params


def _unit(name, params):
    return {
        "name": name,
        "precision": {"param": "bf16", "reduce": "f32"},
        "params": params,
    }


def _llama3_8b_layer(models, experts):
    block = models["llama3_8b"]["blocks"]["decoder_layer"]
    name = "model.layers.0"
    return [_unit(name, _expand(block["params"], name + ".", None))]


def _kimi_linear_kda_layer(models, experts):
    block = models["kimi_linear_48b_a3b"]["blocks"]["kda_moe_layer"]
    name = "model.layers.1"

    def longest(entry):
        # A_log is 1x1x32x1: its first dimension would give everything to
        # rank 0.
        shape = entry["shape"]
        return 0 if shape[0] > 1 else shape.index(max(shape))

    return [_unit(name, _expand(block["params"], name + ".", experts, longest))]


def _gpt2_124m(models, experts):
    model = models["gpt2_124m"]

    def output_dim(entry):
        # Every matrix of a block is a Conv1D, stored [in, out]. Cutting the
        # output features, as for a linear layer's [out, in], is dimension 1.
        return 1 if len(entry["shape"]) == 2 else 0

    units = [_unit("transformer", _expand(model["non_block"], "", None))]
    block = model["blocks"]["block"]
    for i in range(block["repeat"]):
        name = f"transformer.h.{i}"
        params = _expand(block["params"], name + ".", None, output_dim)
        units.append(_unit(name, params))
    return units


def _deepseek_v3_671b(models, experts, layers=None):
    """The embeddings with the output head, then the layers, dense ones first."""
    model = models["deepseek_v3_671b"]
    units = [_unit("model", _expand(model["non_block"], "", None))]
    kinds = [
        block["params"]
        for block in (model["blocks"]["dense_layer"], model["blocks"]["moe_layer"])
        for _ in range(block["repeat"])
    ]
    for i, params in enumerate(kinds[:layers]):
        name = f"model.layers.{i}"
        units.append(_unit(name, _expand(params, name + ".", experts)))
    return units


EXPERTS = {  # unless asked for otherwise
    "kimi_linear_kda_layer": 8,  # of 256
    "deepseek_v3_671b": 256,
}
# Too large for files in the repository; the build writes build/examples/gpt2_124m.mlir.
NOT_COMMITTED = {"deepseek_v3_671b", "gpt2_124m"}
MODELS = {
    "deepseek_v3_671b": _deepseek_v3_671b,
    "llama3_8b_layer": _llama3_8b_layer,
    "kimi_linear_kda_layer": _kimi_linear_kda_layer,
    "gpt2_124m": _gpt2_124m,
}


def _divide(units, divisor):
    for unit in units:
        for param in unit["params"]:
            param["shape"] = [-(-extent // divisor) for extent in param["shape"]]


def describe(model, ranks, grid=None, experts=None, layers=None, divisor=1):
    """`grid` and `units` of an example. A grid AxB has A replicas of B shards;
    `layers`, of the models that have them, are the first ones only. Every extent
    is divided by `divisor` and rounded up: a small model of the same structure,
    for what takes its time per element."""
    with open(SHAPES) as file:
        models = json.load(file)["models"]
    shape = grid or [ranks]
    axes = {"shape": shape}
    if len(shape) == 2:
        axes["replicate_axes"] = [0]
    experts = experts or EXPERTS.get(model)
    some = {} if layers is None else {"layers": layers}
    units = MODELS[model](models, experts, **some)
    _divide(units, divisor)
    return {"grid": axes, "units": units}
