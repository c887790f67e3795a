//===- FsdpDialect.td - the dialect -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_DIALECT
#define FSDP_DIALECT

include "mlir/IR/OpBase.td"

def Fsdp_Dialect : Dialect {
  let name = "fsdp";
  let cppNamespace = "::mlir::fsdp";
  let summary = "sharded parameters, their dtypes and their collectives";
  let description = [{
    Fully sharded data-parallel training moves every parameter between two
    forms: the *shard* that a rank owns and the *full* tensor that it computes
    with. A *unit* is a set of parameters that are gathered and reduced
    together. A *bucket* is one communication buffer: an ordered list of
    parameters, one wire dtype, one layout.

    ```
                concat             all_gather            unchunk
      shards ----------> flat shard ---------> bucket -------------> full tensors
      shards <---------- flat shard <--------- bucket <------------- full gradients
                 split            reduce_scatter         chunk_cat
    ```

    `concat`/`split` and `unchunk`/`chunk_cat` are local and dual to each other,
    `all_gather`/`reduce_scatter` communicate. Hybrid sharding adds `all_reduce`
    after `reduce_scatter`. Casts are `arith` ops until a pass folds them into a
    local op.

    **Stages.**

    | stage | ops that may occur | invariant |
    | --- | --- | --- |
    | *declared* | `unit param unshard reduce_grads` | says what is sharded, nothing about how |
    | *explicit* | `unit param bucket`, the local ops and collectives, `arith` casts | precision fully written; one bucket per parameter and direction, casts explicit |
    | *packed* | the same | no foldable cast feeds a local op or follows one |
    | *buffered* | the buffer forms | no tensor of ours is left; the gather's input is its output's own slot |

    Every op declares the stages at which it may occur; `fsdp-verify-stage` checks
    them, and the invariant of a stage.

    **Forms.** A local op or a collective has a value form, with tensors and
    results, and a buffer form, in which the results are `outs(...)` operands and
    everything is a memref.

    **Effects.** The value forms of the local ops are pure. `unshard`,
    `reduce_grads` and the collectives allocate their results: an unused one may
    be erased, but none is merged with another, hoisted out of a loop or sunk into
    a branch, since a gather in the backward pass is a second gather on purpose.
    Nothing is folded, so that no pass changes a plan that it does not mean to.

    **Interfaces.** Unit ops, local ops and collectives have an interface each,
    and passes ask these, not for names. The TableGen file of another dialect
    includes `FsdpOpBase.td` and derives its collectives from `Fsdp_CollectiveOp`.

    **Groups.** A unit names the *shard axes* and *replicate axes* of its grid; W
    and H are the numbers of ranks in the two groups. Ranks are numbered row-major
    over the axes as listed.

    **Layout.** A parameter's shard is its type with `shard_dim` replaced by
    `ceil(size / W)`, the same on all ranks; the last ranks may hold padding. The
    packed tensor of a bucket is `W x L`: row `r` is rank `r`'s share, and a flat
    shard has `L` elements. Segments and rows start at multiples of `align` bytes.
    Only `chunk_cat` makes padding (+0), only `unchunk` drops it, `concat` and
    `split` copy it; gaps between segments are +0.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The profile (`StringAttr`) of a unit, or of all units of a module.
    static constexpr StringLiteral getProfileAttrName() { return "fsdp.profile"; }
    /// The hash of a module's plan, 16 hexadecimal digits (`StringAttr`):
    /// recorded by fsdp-verify-collectives where it has proved the order.
    static constexpr StringLiteral getPlanHashAttrName() { return "fsdp.plan_hash"; }
    /// On a module: fingerprint of its buckets as `fsdp-form-buckets` left them.
    static constexpr StringLiteral getFormedAttrName() { return "fsdp.formed"; }
    /// Marks an argument that has the same value on every rank.
    static constexpr StringLiteral getUniformAttrName() { return "fsdp.uniform"; }
    /// What an argument or result of an entry function is; each names a
    /// parameter (`@unit::@param`).
    static constexpr StringLiteral getShardAttrName() { return "fsdp.shard"; }
    static constexpr StringLiteral getFullAttrName() { return "fsdp.full"; }
    static constexpr StringLiteral getShardGradAttrName() { return "fsdp.shard_grad"; }
    static constexpr StringLiteral getFullGradAttrName() { return "fsdp.full_grad"; }
    /// On a function, in lowered code: a launcher calls it; how many of its
    /// arguments (`IntegerAttr`) are inputs, the others being results.
    static constexpr StringLiteral getEntryAttrName() { return "fsdp.entry"; }
    /// On the last result of a function, in lowered code: the runtime's status.
    static constexpr StringLiteral getStatusAttrName() { return "fsdp.status"; }
  }];
}

#endif // FSDP_DIALECT
