//===- Passes.td - passes on values -*- tablegen -*- ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TRANSFORMS_PASSES
#define FSDP_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def ResolvePrecisionPass : Pass<"fsdp-resolve-precision", "::mlir::ModuleOp"> {
  let summary = "write the param, reduce and grad dtype on every parameter";
  let description = [{
    Takes units in which dtypes may be inherited and writes all three on every
    parameter (`param` alone on those of opaque storage). Later passes read only
    what is written there. Nothing but the parameters' `precision` changes; a second
    run changes nothing.

    The param dtype is the parameter's own entry, else the unit's, else the
    storage dtype; the grad dtype is the own entry, the unit's or the storage
    dtype. The *profile* says what an absent reduce dtype means and what is legal.
    It is the attribute `fsdp.profile` of the unit, else of the closest module
    that has one, else the option.

    | profile | reduce dtype | refused |
    | --- | --- | --- |
    | `per_param` | own entry, the unit's, or the param dtype | nothing |
    | `stable` | the same | dtypes that differ among the unit's trainable parameters |
    | `grad_dtype` | one for the unit: the unit's entry, or the grad dtypes of its trainable parameters, promoted | an own `param` that is neither the storage dtype nor the unit's, an own `reduce` that is not the unit's |

    Own entries on a parameter of opaque storage, which is never cast, are refused
    by all profiles. Frozen parameters are resolved like the others and refused
    for nothing. Before anything is refused nothing is written.

    Where no entry asks for a reduce dtype and the profile's has fewer bits than
    the storage, a remark names the parameters. docs/PyTorch.md says which profile
    is which release of PyTorch.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32>
      fsdp.param @ids : tensor<16xi64> frozen
    }
    ```
    becomes
    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
      fsdp.param @norm : tensor<10xf32> precision <param = f32, reduce = f32, grad = f32>
      fsdp.param @ids : tensor<16xi64> precision <param = i64> frozen
    }
    ```
  }];
  let options = [
    Option<"profile", "profile", "::mlir::fsdp::Profile",
           "::mlir::fsdp::Profile::PerParam",
           "profile of units for which the IR has none", [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::Profile::PerParam, "per_param",
                        "any dtypes per parameter"),
             clEnumValN(::mlir::fsdp::Profile::Stable, "stable",
                        "one policy per unit"),
             clEnumValN(::mlir::fsdp::Profile::GradDtype, "grad_dtype",
                        "one reduce dtype per unit, after the grad dtypes"))}]>,
  ];
}

def ExpandUnitsPass : Pass<"fsdp-expand-units", "::mlir::ModuleOp"> {
  let summary = "make every collective visible, one per parameter";
  let description = [{
    Takes stage *declared*, with precision resolved, to stage *explicit*: no
    `unshard` and no `reduce_grads` is left. Each becomes one bucket and one
    collective per parameter, in the order of declaration, with every cast
    explicit. This naive form defines the bits; later passes keep them.

    The division by the number of ranks, or by the unit's `divide_factor`, is
    carried out by the unit's reduction and the wire dtype: multiplied in before
    the sum by the collective (`avg`, `premul`), divided afterwards by `split`, or
    in f16 half before and half after, for range. A multiplier is rounded to the
    wire dtype; where it is not exact in 16 bits a remark says by how much the
    mean is biased. With `average=after` collectives only add, and `split` divides
    the sum of all ranks by the whole divisor, once; sums of f16 gradients may
    then overflow, which a remark says.

    Refused: units that are not resolved, and a `divide_factor` that the wire
    dtype cannot carry out.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
    }
    func.func @step(%s: tensor<2x3xf32>) -> tensor<8x3xbf16> {
      %w = fsdp.unshard @u(%s) : (tensor<2x3xf32>) -> tensor<8x3xbf16>
      return %w : tensor<8x3xbf16>
    }
    ```
    becomes
    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
    }
    fsdp.bucket @w_gather gather @u[@w] : bf16 group 0
    func.func @step(%s: tensor<2x3xf32>) -> tensor<8x3xbf16> {
      %0 = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
      %1 = fsdp.concat %0 into @w_gather : (tensor<2x3xbf16>) -> tensor<64xbf16>
      %2 = fsdp.all_gather %1 of @w_gather : (tensor<64xbf16>) -> tensor<4x64xbf16>
      %3 = fsdp.unchunk %2 of @w_gather : (tensor<4x64xbf16>) -> tensor<8x3xbf16>
      return %3 : tensor<8x3xbf16>
    }
    ```
  }];
  let options = [
    Option<"unused", "unused", "::mlir::fsdp::Unused",
           "::mlir::fsdp::Unused::Skip",
           "trainable parameters that a reduce_grads does not name",
           [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::Unused::Skip, "skip",
                        "are in no collective"),
             clEnumValN(::mlir::fsdp::Unused::Zero, "zero",
                        "are reduced as zeros, and the result is dropped"))}]>,
    Option<"accumulate", "accumulate", "::mlir::fsdp::Accumulate",
           "::mlir::fsdp::Accumulate::Wire",
           "dtype of the running sum of a 16-bit reduction (changes bits)",
           [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::Accumulate::Wire, "wire",
                        "the wire dtype, as a ring does"),
             clEnumValN(::mlir::fsdp::Accumulate::F32, "f32",
                        "f32, rounded once at the end"))}]>,
    Option<"average", "average", "::mlir::fsdp::Average",
           "::mlir::fsdp::Average::Before",
           "whether a mean divides the terms or their sum (changes bits)",
           [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::Average::Before, "before",
                        "the terms, which is NCCL's rule"),
             clEnumValN(::mlir::fsdp::Average::After, "after",
                        "the sum, which is Gloo's rule"))}]>,
    Option<"align", "align", "int64_t", "::mlir::fsdp::kDefaultAlign",
           "alignment in bytes of a bucket's segments and rows">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GatherInPlacePass : Pass<"fsdp-gather-in-place", "::mlir::ModuleOp"> {
  let summary = "pack the flat shard into the gather's own row";
  let description = [{
    On buffers: where nothing but one `fsdp.concat` and one `fsdp.all_gather` use
    the flat shard, the gather's output moves above the `concat` and this rank's
    own row of it becomes the flat shard. One buffer and one copy less; no bit
    changes. What is left as it is gets a remark with the reason.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @b gather @u[@w] : f32
    func.func @gather(%w: memref<2x3xf32>, %g: memref<4x32xf32>) {
      %f = memref.alloc() : memref<32xf32>
      fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
      fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>)
          : (memref<32xf32>) -> ()
      return
    }
    ```
    becomes
    ```mlir
    module {
      shard.grid @dp(shape = 4)
      fsdp.unit @u on @dp {
        fsdp.param @w : tensor<8x3xf32>
      }
      fsdp.bucket @b gather @u[@w] : f32
      func.func @gather(%arg0: memref<2x3xf32>, %arg1: memref<4x32xf32>) {
        %proc_linear_idx = shard.process_multi_index on @dp axes = [0] : index
        %subview = memref.subview %arg1[%proc_linear_idx, 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
        fsdp.concat %arg0 into @b outs(%subview : memref<32xf32, strided<[1], offset: ?>>) : (memref<2x3xf32>) -> ()
        fsdp.all_gather %subview of @b outs(%arg1 : memref<4x32xf32>) : (memref<32xf32, strided<[1], offset: ?>>) -> ()
        return
      }
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "memref::MemRefDialect"];
}

def FormBucketsPass : Pass<"fsdp-form-buckets", "::mlir::ModuleOp"> {
  let summary = "merge buckets and so their collectives";
  let description = [{
    Takes stage *explicit*, with one bucket and one collective per parameter, and
    merges buckets of one block, kind and groups of ranks; reductions also of one
    wire dtype, with equal keywords, constants and accumulation. Gathers may mix
    dtypes, as bytes, or with `gather=per-dtype` do not. With `scope=unit` only
    buckets of one unit op merge, with `scope=global` also those of different
    units. Members lie in the order of declaration, units in the order of their
    ops, or with `order=execution` all in the order of the program. No bit of any
    result changes.

    `max-bytes` bounds the packed tensor of a bucket, padding included: the
    parameter that would pass it closes the bucket and opens the next. With a
    list, bucket `i` of its kind obeys entry `i`, or the last one. A parameter
    above the limit has a bucket of its own.

    Collectives are in the order of their buckets' first members. A merged
    gather is placed at its first member, or after its last operand; a merged
    reduction at its last member. Casts of its operands and of its results go
    along, and so an operand's cast is no last operand. A bucket may come
    after one with a later first member that it needs. Two items are not merged
    if one needs the other, through any chain of ops and buckets formed before,
    or if the bucket would come after the first use of one of its
    results; the refused item is offered to later buckets.

    `policy` follows another system instead: `torch-fsdp2`, `inductor`, `xla`,
    `deepspeed`, `megatron`, or one that was registered (`BucketPolicy.h`). It
    decides which parameters share a collective, their order, and the order of
    the collectives, and comes with that system's limit; `deepspeed` and
    `megatron` count elements (`max-elements`). BucketingRules.md has the rules of
    all.

    Buckets that nothing uses any more are erased; a bucket that merges with none
    keeps its name and its ops. A bucket whose flat shard is added to another, or
    leaves the function, stays as it is. Each merged bucket, and each pair of
    neighbours that did not merge, has a remark with the reason.

    The pass does not change what it has made: where a second run with the same
    options could (a bucket that was closed is an item like any other to it), it
    leaves a fingerprint of its buckets on the module, `fsdp.formed`, and does
    nothing as long as that fits.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @a : tensor<8x3xf32>
      fsdp.param @b : tensor<4xf32>
    }
    fsdp.bucket @a_gather gather @u[@a] : f32 group 0
    fsdp.bucket @b_gather gather @u[@b] : f32 group 0
    func.func @gather(%a: tensor<2x3xf32>, %b: tensor<1xf32>)
        -> (tensor<8x3xf32>, tensor<4xf32>) {
      %fa = fsdp.concat %a into @a_gather : (tensor<2x3xf32>) -> tensor<32xf32>
      %ga = fsdp.all_gather %fa of @a_gather
          : (tensor<32xf32>) -> tensor<4x32xf32>
      %wa = fsdp.unchunk %ga of @a_gather : (tensor<4x32xf32>) -> tensor<8x3xf32>
      %fb = fsdp.concat %b into @b_gather : (tensor<1xf32>) -> tensor<32xf32>
      %gb = fsdp.all_gather %fb of @b_gather
          : (tensor<32xf32>) -> tensor<4x32xf32>
      %wb = fsdp.unchunk %gb of @b_gather : (tensor<4x32xf32>) -> tensor<4xf32>
      return %wa, %wb : tensor<8x3xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    module {
      shard.grid @dp(shape = 4)
      fsdp.unit @u on @dp {
        fsdp.param @a : tensor<8x3xf32>
        fsdp.param @b : tensor<4xf32>
      }
      fsdp.bucket @u_gather gather @u[@a, @b] : f32 group 0
      func.func @gather(%arg0: tensor<2x3xf32>, %arg1: tensor<1xf32>) -> (tensor<8x3xf32>, tensor<4xf32>) {
        %0 = fsdp.concat %arg0, %arg1 into @u_gather : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<64xf32>
        %1 = fsdp.all_gather %0 of @u_gather : (tensor<64xf32>) -> tensor<4x64xf32>
        %2:2 = fsdp.unchunk %1 of @u_gather : (tensor<4x64xf32>) -> (tensor<8x3xf32>, tensor<4xf32>)
        return %2#0, %2#1 : tensor<8x3xf32>, tensor<4xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"scope", "scope", "std::string", /*default=*/"\"unit\"",
           "what may share a bucket: the parameters of one unit op (unit), or "
           "of all (global)">,
    ListOption<"maxBytes", "max-bytes", "int64_t",
               "largest packed tensor in bytes, for each bucket in turn">,
    ListOption<"maxElements", "max-elements", "int64_t",
               "the same in elements, for policies that count these">,
    Option<"gather", "gather", "std::string", /*default=*/"\"\"",
           "gathers of several dtypes: mix them (bytes, the default) or not "
           "(per-dtype)">,
    Option<"order", "order", "std::string", /*default=*/"\"\"",
           "order of members: declaration (registration, the default) or "
           "program (execution)">,
    Option<"policy", "policy", "std::string", /*default=*/"\"\"",
           "rules of another system instead of these">,
  ];
}

def FuseCastsPass : Pass<"fsdp-fuse-casts", "ModuleOp"> {
  let summary = "fold casts into concat, chunk_cat, split and unchunk";
  let description = [{
    Comes in: the local ops in value form, with `arith.extf` and `arith.truncf`
    before `concat` and `chunk_cat` or after `split` and `unchunk`. Gone
    afterwards: every such cast that the local op can do itself with the same
    roundings, and with it a tensor as large as the parameter.

    A cast A to B before `concat` or `chunk_cat` is folded if it is exact or if B
    is the member's wire dtype; one after `split` or `unchunk` if what the op does
    already is exact or nothing. `extf` and then `truncf` count as one cast.
    A cast in front of a local op that has another use is folded and stays for
    that use. What stays, each with a remark: a second rounding, a rounding mode
    or fast-math flags, a cast after a `split` that adds, a cast of a result that
    has other uses.

    No bit of any result changes.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @r reduce @u[@w] : f32
    func.func @widening(%g: tensor<8x3xbf16>) -> tensor<4x32xf32> {
      %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
      %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
      return %b : tensor<4x32xf32>
    }
    ```

    becomes

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @r reduce @u[@w] : f32
    func.func @widening(%g: tensor<8x3xbf16>) -> tensor<4x32xf32> {
      %b = fsdp.chunk_cat %g into @r : (tensor<8x3xbf16>) -> tensor<4x32xf32>
      return %b : tensor<4x32xf32>
    }
    ```
  }];
}

def PrintPlanPass : Pass<"fsdp-print-plan", "::mlir::ModuleOp"> {
  let summary = "print buckets, collectives, launches and bytes";
  let description = [{
    Prints to standard output, per unit, the buckets in the order of issue: their
    members with offsets and dtypes, sizes and padding, and how a reduction is
    carried out; then the numbers of collectives and launches (local ops), the
    bytes that local ops and the casts around them read and write on one rank,
    and the bytes of temporaries: tensors that only a cast makes and only local
    ops read, or the reverse. Reads stages *explicit*, *packed* and *buffered*,
    refuses *declared* and changes nothing.

    `format=json` prints the same for programs, with the decisions of the passes
    that ran before in the same pipeline, and the hash in which all ranks agree.

    ```mlir
    shard.grid @dp(shape = 2)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<4x3xf32>
    }
    fsdp.bucket @b reduce @u[@w] : f32 align 1
    func.func @reduce(%g: tensor<4x3xbf16>) -> tensor<2x3xf32> {
      %b = fsdp.chunk_cat %g into @b : (tensor<4x3xbf16>) -> tensor<2x6xf32>
      %r = fsdp.reduce_scatter avg %b of @b : (tensor<2x6xf32>) -> tensor<6xf32>
      %s = fsdp.split %r of @b : (tensor<6xf32>) -> tensor<2x3xf32>
      return %s : tensor<2x3xf32>
    }
    ```
    prints
    ```text
    unit u
      reduce b in f32, 1 member, align 1
        chunk_cat, reduce_scatter avg, split
        row 24 bytes, packed 48 bytes, 0 of them padding
        parameter  offset  elements  from  wire  to
        w               0         6  bf16  f32   f32

    total
      all-gathers            0
      reduce-scatters        1
      all-reduces            0
      launches               2
      bytes read            48
      bytes written         72
      bytes of temporaries   0
      bytes of padding       0
      plan hash 1fcb1dff830e3882
    ```
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"text\"",
           "text for people, json for programs">,
  ];
}

def VerifyStagePass : Pass<"fsdp-verify-stage", "::mlir::ModuleOp"> {
  let summary = "check the invariant of a stage";
  let description = [{
    Changes nothing, and fails with one error per violation. Runs at every
    border of a pipeline, so that a mistake is reported where it was made.

    | stage | what it requires |
    | --- | --- |
    | `input` | any of the first three stages, also side by side: no buffer form |
    | `declared` | no bucket, local op or collective |
    | `explicit` | no unit op; precision fully written on every parameter; one member per bucket; no cast fused into a local op |
    | `packed` | no unit op; precision fully written; no cast beside a local op that `fsdp-fuse-casts` would fold |
    | `buffered` | only buffer forms; precision fully written; a gather in place wherever `fsdp-gather-in-place` would make it one |

    Which ops a stage has, they say themselves, by `StagedOpInterface`: also those
    of other dialects.

    At every stage, no name is declared in two units, and the types of arguments
    and results fit their attributes `fsdp.shard`, `fsdp.full`, `fsdp.shard_grad`
    and `fsdp.full_grad`. From `explicit` on, the wire dtype of a reduction is
    the reduce dtype of each member, and no flat shards of two buckets are added.

    A module may spell out one unit, with buckets of several members, and declare
    another one. After fsdp-expand-units it is `stage=explicit` with `mixed`, which
    lets buckets have several members and fused casts.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    func.func @forward(%w: tensor<2x3xf32> {fsdp.shard = @u::@w})
        -> (tensor<8x3xf32> {fsdp.full = @u::@w}) {
      %f = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
      return %f : tensor<8x3xf32>
    }
    ```
    This one is refused, since the argument is not the shard that it is said to be:

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    func.func @forward(%w: tensor<8x3xf32> {fsdp.shard = @u::@w}) {
      return
    }
    ```
    prints
    ```text
    error: 'func.func' op argument 0 is 'tensor<8x3xf32>', but 'fsdp.shard' of @u::@w expects the shape of 'tensor<2x3xf32>' and a floating-point dtype
    note: parameter declared here
    ```
  }];
  let options = [
    Option<"stage", "stage", "::mlir::fsdp::Stage",
           "::mlir::fsdp::Stage::Input", "the stage to check",
           [{::llvm::cl::values(
               clEnumValN(::mlir::fsdp::Stage::Input, "input",
                          "declared, explicit or packed, also mixed"),
               clEnumValN(::mlir::fsdp::Stage::Declared, "declared",
                          "units and unit ops"),
               clEnumValN(::mlir::fsdp::Stage::Explicit, "explicit",
                          "one bucket per parameter, casts explicit"),
               clEnumValN(::mlir::fsdp::Stage::Packed, "packed",
                          "casts fused"),
               clEnumValN(::mlir::fsdp::Stage::Buffered, "buffered",
                          "buffer forms"))}]>,
    Option<"mixed", "mixed", "bool", "false",
           "stage explicit, with buckets of stage packed beside it">,
  ];
}

def EntriesToBuffersPass : Pass<"fsdp-entries-to-buffers", "::mlir::ModuleOp"> {
  let summary = "entries take and return buffers instead of tensors";
  let description = [{
    Before bufferization: the tensors that a function with `fsdp.entry` takes and
    returns become dense buffers, which `bufferization.to_tensor` and
    `bufferization.to_buffer` join to its body. The arguments are a launcher's, so
    nothing may write them. A function that the module itself calls is left alone.
    Bufferization does the same to the functions that are left, but compares each
    result with each argument.

    ```mlir
    func.func @f(%a: tensor<4xf32>, %n: index) -> tensor<4xf32>
        attributes {fsdp.entry = 2 : i64} {
      return %a : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    module {
      func.func @f(%arg0: memref<4xf32>, %arg1: index) -> memref<4xf32> attributes {fsdp.entry = 2 : i64} {
        %0 = bufferization.to_tensor %arg0 restrict : memref<4xf32> to tensor<4xf32>
        %1 = bufferization.to_buffer %0 read_only : tensor<4xf32> to memref<4xf32>
        return %1 : memref<4xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["bufferization::BufferizationDialect",
                           "memref::MemRefDialect"];
}

def FreeBuffersPass : Pass<"fsdp-free-buffers", "::mlir::ModuleOp"> {
  let summary = "buffers are freed after their last use";
  let description = [{
    After `fsdp-results-to-arguments`: a `memref.dealloc` after the last op that
    uses a buffer or a view of it, for each buffer whose uses are all in its own
    block or below and that nothing carries elsewhere. All others, of loops that
    carry buffers and of branches that choose between them, are left to upstream's
    buffer deallocation, which runs only if there are such buffers.

    ```mlir
    func.func @f(%a: memref<4xf32>, %r: memref<4xf32>) {
      %b = memref.alloc() : memref<4xf32>
      memref.copy %a, %b : memref<4xf32> to memref<4xf32>
      memref.copy %b, %r : memref<4xf32> to memref<4xf32>
      memref.copy %a, %r : memref<4xf32> to memref<4xf32>
      return
    }
    ```
    becomes
    ```mlir
    module {
      func.func @f(%arg0: memref<4xf32>, %arg1: memref<4xf32>) {
        %alloc = memref.alloc() : memref<4xf32>
        memref.copy %arg0, %alloc : memref<4xf32> to memref<4xf32>
        memref.copy %alloc, %arg1 : memref<4xf32> to memref<4xf32>
        memref.dealloc %alloc : memref<4xf32>
        memref.copy %arg0, %arg1 : memref<4xf32> to memref<4xf32>
        return
      }
    }
    ```
  }];
  let dependentDialects = ["memref::MemRefDialect"];
}

def ResultsToArgumentsPass
    : Pass<"fsdp-results-to-arguments", "::mlir::ModuleOp"> {
  let summary = "buffers that a function returns become arguments";
  let description = [{
    After bufferization, when nothing deallocates yet: every buffer that a function
    returns becomes an argument that it writes, after the others, with the
    result's attributes. A buffer that is allocated once and returned once is the
    argument itself; anything else is copied at the return. Calls allocate what
    they used to get.

    Refused: a returned buffer that is not dense or not of static shape.

    ```mlir
    func.func @f(%a: memref<4xf32>) -> memref<4xf32> {
      %r = memref.alloc() : memref<4xf32>
      memref.copy %a, %r : memref<4xf32> to memref<4xf32>
      return %r : memref<4xf32>
    }
    ```
    becomes
    ```mlir
    module {
      func.func @f(%arg0: memref<4xf32>, %arg1: memref<4xf32>) {
        memref.copy %arg0, %arg1 : memref<4xf32> to memref<4xf32>
        return
      }
    }
    ```
  }];
  let dependentDialects = ["memref::MemRefDialect"];
}

def SplitDeallocationsPass
    : Pass<"fsdp-split-deallocations", "::mlir::ModuleOp"> {
  let summary = "deallocations of several buffers become one for each";
  let description = [{
    Inside of upstream's buffer deallocation, before it is lowered: an op that
    frees several buffers, at the end of a loop that carries them, becomes one op
    per buffer, in the same order. A buffer that an earlier one may be, by another
    name, is freed only if it was not freed then. No memory is needed for that,
    host or device.

    ```mlir
    func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %own_a: i1, %own_b: i1,
                 %kept: memref<4xf32>) -> i1 {
      %own = bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>)
          if (%own_a, %own_b) retain (%kept : memref<4xf32>)
      return %own : i1
    }
    ```
    becomes
    ```mlir
    module {
      func.func @f(%arg0: memref<4xf32>, %arg1: memref<4xf32>, %arg2: i1, %arg3: i1, %arg4: memref<4xf32>) -> i1 {
        %false = arith.constant false
        %true = arith.constant true
        %0 = bufferization.dealloc (%arg0 : memref<4xf32>) if (%arg2) retain (%arg4 : memref<4xf32>)
        %intptr = memref.extract_aligned_pointer_as_index %arg1 : memref<4xf32> -> index
        %intptr_0 = memref.extract_aligned_pointer_as_index %arg0 : memref<4xf32> -> index
        %1 = arith.cmpi eq, %intptr_0, %intptr : index
        %2 = arith.andi %arg2, %1 : i1
        %3 = arith.xori %2, %true : i1
        %4 = arith.andi %arg3, %3 : i1
        %5 = bufferization.dealloc (%arg1 : memref<4xf32>) if (%4) retain (%arg4 : memref<4xf32>)
        %6 = arith.ori %0, %5 : i1
        return %6 : i1
      }
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "memref::MemRefDialect",
                           "bufferization::BufferizationDialect"];
}

def SealPass : Pass<"fsdp-seal", "::mlir::ModuleOp"> {
  let summary = "write down which plan was proved";
  let description = [{
    Comes in: a module at stage *explicit* or later. The pass writes the hash of
    its plan, the collectives in their order with all that ranks must agree in,
    as `fsdp.plan_hash` on the module. fsdp-declare-entries computes the hash
    again and refuses a module whose plan has changed since; the runtime compares
    it between ranks before the first run. A module without buckets has no plan,
    and loses a hash that it had; so does any module with `drop`. Changes no bit.

    ```mlir
    shard.grid @dp(shape = 2)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<4xf32>
    }
    fsdp.bucket @g gather @u[@w] : f32
    func.func @gather(%f: tensor<32xf32>) -> tensor<2x32xf32> {
      %g = fsdp.all_gather %f of @g : (tensor<32xf32>) -> tensor<2x32xf32>
      return %g : tensor<2x32xf32>
    }
    ```
    becomes
    ```mlir
    module attributes {fsdp.plan_hash = "0f36c0b547eda43f"} {
      shard.grid @dp(shape = 2)
      fsdp.unit @u on @dp {
        fsdp.param @w : tensor<4xf32>
      }
      fsdp.bucket @g gather @u[@w] : f32
      func.func @gather(%arg0: tensor<32xf32>) -> tensor<2x32xf32> {
        %0 = fsdp.all_gather %arg0 of @g : (tensor<32xf32>) -> tensor<2x32xf32>
        return %0 : tensor<2x32xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"drop", "drop", "bool", "false",
           "Remove the hash instead: the module is not proved">,
  ];
}

def VerifyCollectivesPass : Pass<"fsdp-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "prove that all ranks issue the same collectives in one order";
  let description = [{
    Comes in: a module at any stage; what is checked are `unshard` and
    `reduce_grads`, or the collectives in value or buffer form. The pass changes
    nothing. It proves that any two ranks issue the same sequence of collectives on every communicator
    that contains both, and that ranks never wait for each other in a circle,
    given that all ranks call the same entry functions in the same order.

    A collective's group are the axes of the grid on whose coordinates the ranks
    that meet in it differ: the shard axes for a gather or reduce-scatter, the
    replicate axes for an all-reduce, both for `reduce_grads`. Conditions and
    loop bounds around the collective, in its function and in all that call it,
    may depend on

    - constants, static sizes, arguments marked `fsdp.uniform`;
    - coordinates of axes outside the group and of axes of size 1;
    - what `arith`, `index`, `math`, `affine` and `tensor` ops compute from these.

    Refused are, with the op that decides and with where it comes from:

    - control flow that depends on a coordinate of the group, or on data: on
      loads, arguments that are not marked, external functions, undefined
      values, unknown ops, the rank's index on a grid of other size;
    - two communicators that different ranks first use in opposite orders,
      because of branches or loops that they take differently. Branches on one
      value are known to go one way; other conditions may both hold;
    - collectives in a region of an op that may run it in parallel or later, or
      about which nothing is known; in recursive functions; in loops of blocks
      with several entries.

    The pass knows the ops of `scf` and `affine` that run their regions one after the
    other, calls by `func.call`, and branches between blocks. Where a value comes
    from counts, not what arithmetic leaves of it: the linear index of a rank
    depends on all axes, also if it is divided. A collective in a
    group of one rank meets nobody and may be anywhere.

    In the example the trip count is the same on all ranks, and the condition is
    the same on all ranks of a shard group.

    ```mlir
    shard.grid @hsdp(shape = 2x4)
    fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
      fsdp.param @w : tensor<8x3xf32>
    }
    func.func @step(%w: tensor<2x3xf32>, %steps: index {fsdp.uniform}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %replica = shard.process_multi_index on @hsdp axes = [0] : index
      %first = arith.cmpi eq, %replica, %c0 : index
      scf.for %i = %c0 to %steps step %c1 {
        scf.if %first {
          %full = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
        }
      }
      return
    }
    ```
    Here the condition differs within a shard group:

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    func.func @step(%w: tensor<2x3xf32>) {
      %c0 = arith.constant 0 : index
      %rank = shard.process_linear_index on @dp : index
      %first = arith.cmpi eq, %rank, %c0 : index
      scf.if %first {
        %full = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
      }
      return
    }
    ```
    prints
    ```text
    error: 'fsdp.unshard' op of unit 'u' is under control flow that depends on the rank's coordinate on axis 0 of grid 'dp', expected the same on all ranks of its group, axis 0 of grid 'dp'
    note: 'scf.if' decides here
    note: it comes from this 'shard.process_linear_index'
    ```
  }];
}

#endif // FSDP_TRANSFORMS_PASSES
