//===- Passes.td - passes from buffers to calls and loops --*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_PASSES
#define FSDP_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ExpandFloatsPass : Pass<"fsdp-expand-floats"> {
  let summary = "write out the arithmetic that LLVM would get wrong on the CPU";
  let description = [{
    Replaces every `arith.extf` and `arith.truncf` between f16, bf16, f32 and f64
    that the CPU has no instruction for by integer arithmetic with the same bits:
    one rounding, to nearest even, NaN as a class. Every other `arith` or `math` op
    on f16 or bf16 works in f32, and its result is rounded. Integers of up to 32
    bits go through f64. Of two zeros, `maxnumf` and `minnumf` choose like
    `maximumf` and `minimumf`. Tensors are left alone.

    A cast with another rounding mode, a cast from or to another dtype, and one
    from a wider integer to 16 bits are refused.

    ```mlir
    func.func @f(%x: f32) -> bf16 {
      %y = arith.truncf %x : f32 to bf16
      return %y : bf16
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect"];
}

def FsdpToTilesPass : Pass<"convert-fsdp-to-tiles", "::mlir::ModuleOp"> {
  let summary = "lower local ops to loops over tiles";
  let description = [{
    Takes the buffer forms of `concat`, `chunk_cat`, `unchunk` and `split`. Each
    becomes a table of tiles (about 4096 elements of one row of one segment,
    `lib/Conversion/TilePlan.h`) and code that walks the table:

    - `target=cpu`: a call of a function with one contiguous vector loop per tile,
      with cast and division on the way. Ops with the same pairs of dtypes,
      direction and divisor share that function, so the code's size does not grow
      with the number of parameters;
    - `target=cuda`: a `gpu.launch_func` of a kernel of its own, in the module's
      one `gpu.module`. The members' addresses travel by value in the kernel's
      parameters: the first argument of the launch points to an array of them.
      An op with more than 4090 addresses becomes several launches;
    - `target=emulate`: the same kernel as a function of the host that runs all
      blocks and threads one after the other.

    docs/Kernels.md describes both codes.

    Afterwards no local op is left. A member's share or row offset of 2^31
    granules or more is refused, and so are more than 65535 rows in a kernel. No bit of any result changes: a value is cast
    and divided once, with the rounding of the op.

    ```mlir
    shard.grid @dp(shape = 2)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<5x3xf32>
    }
    fsdp.bucket @b reduce @u[@w] : f32
    func.func @pack(%g: memref<5x3xbf16>, %b: memref<2x32xf32>) {
      fsdp.chunk_cat %g into @b outs(%b : memref<2x32xf32>)
          : (memref<5x3xbf16>) -> ()
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [
    Option<"target", "target", "::mlir::fsdp::TileTarget",
           "::mlir::fsdp::TileTarget::Cpu", "where the tiles run",
           [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::TileTarget::Cpu, "cpu",
                        "one vector loop per tile"),
             clEnumValN(::mlir::fsdp::TileTarget::Cuda, "cuda",
                        "one kernel per op"),
             clEnumValN(::mlir::fsdp::TileTarget::Emulate, "emulate",
                        "the kernel's body on the host"))}]>,
    Option<"chip", "chip", "std::string", "\"sm_90\"",
           "chip that the kernels are for (target=cuda)">,
    Option<"features", "features", "std::string", "",
           "version of PTX, +ptx80 or later; by default the oldest one that "
           "knows the chip and has room for the kernels' parameters "
           "(target=cuda)">,
    Option<"printPlan", "print-plan", "bool", "false",
           "print the tiles of every op to the standard error">,
  ];
}

def FsdpToRuntimePass : Pass<"convert-fsdp-to-runtime", "::mlir::ModuleOp"> {
  let summary = "collectives and buffers become calls of the runtime";
  let description = [{
    On the buffer forms, after `convert-fsdp-to-tiles`. Collectives,
    `memref.alloc`, `memref.dealloc`, `shard.process_linear_index` and
    `shard.process_multi_index` become calls of the functions of
    `RuntimeFunctions.def`. A function that reaches the runtime gets the context as
    its first argument and a status as its last result. Its second argument is a
    table of the addresses of its dense buffers. A function with `fsdp.entry`
    becomes the exported `fsdprt_entry_<name>` that a launcher calls, with one
    table of arguments and one of results.
    Units, buckets and grids are gone afterwards.

    With `device-memory`, buffers need not be the process' own: copies between dense
    buffers become calls too, and a constant is used where the device has it.

    A local op, a value form or a unit op that is left is refused. Nothing checks
    the statuses yet: `fsdp-propagate-status` does.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    fsdp.bucket @b gather @u[@w] : f32
    func.func @gather(%f: memref<32xf32>, %g: memref<4x32xf32>)
        attributes {fsdp.entry = 1 : i64} {
      fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>)
          : (memref<32xf32>) -> ()
      return
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect",
                           "LLVM::LLVMDialect", "memref::MemRefDialect"];
  let options = [
    Option<"deviceMemory", "device-memory", "bool", "false",
           "buffers are a device's: copies and constants are the runtime's">,
  ];
}

def ShareLoopsPass : Pass<"fsdp-share-loops", "::mlir::ModuleOp"> {
  let summary = "equal element-wise loops become calls of one function";
  let description = [{
    Before `convert-fsdp-to-runtime`, for the CPU. Each element-wise
    `linalg.generic` on dense buffers of static shape that does the same as at
    least `min-loops - 1` others becomes a call of one function, which takes the
    addresses and the number of elements. The code for the casts of level 0 then
    does not grow with the number of parameters.

    ```mlir
    func.func @f(%a: memref<8x3xf32>, %b: memref<8x3xbf16>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                       affine_map<(i, j) -> (i, j)>],
                      iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<8x3xf32>) outs(%b : memref<8x3xbf16>) {
      ^bb0(%x: f32, %y: bf16):
        %z = arith.truncf %x : f32 to bf16
        linalg.yield %z : bf16
      }
      return
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect",
                           "linalg::LinalgDialect", "LLVM::LLVMDialect",
                           "memref::MemRefDialect"];
  let options = [
    Option<"minLoops", "min-loops", "int64_t", "16",
           "how many equal loops are worth a function">,
  ];
}

def SplitFunctionsPass : Pass<"fsdp-split-functions", "::mlir::ModuleOp"> {
  let summary = "long blocks become functions of bounded size";
  let description = [{
    Cuts the ops of a block in a `func.func` that holds more than `2 * max-ops` ops
    into functions of about `max-ops`, and calls them one after the other. What
    one of them computes and another needs goes through memory in the frame of
    the function; constants are repeated. Before `fsdp-propagate-status`, since a
    function with early returns has more than one block. LLVM's time is then
    linear in the number of ops.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %y = arith.addf %x, %x : f32
      return %y : f32
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect",
                           "LLVM::LLVMDialect"];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "256",
           "ops of a part, those in its regions included">,
  ];
}

def PropagateStatusPass : Pass<"fsdp-propagate-status", "::mlir::ModuleOp"> {
  let summary = "return early where a call has failed";
  let description = [{
    After `convert-fsdp-to-runtime` and `convert-scf-to-cf`: behind each call of a
    function whose last result is a status (`fsdp.status`), the caller returns that
    status at once unless it is 0. A call that stands in a region, where nothing
    can return, is refused.

    ```mlir
    func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})
    func.func @f(%context: !llvm.ptr, %a: !llvm.ptr, %b: !llvm.ptr)
        -> (i32 {fsdp.status}) {
      %s = call @fsdprtFree(%context, %a) : (!llvm.ptr, !llvm.ptr) -> i32
      %t = call @fsdprtFree(%context, %b) : (!llvm.ptr, !llvm.ptr) -> i32
      %zero = arith.constant 0 : i32
      return %zero : i32
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "cf::ControlFlowDialect",
                           "ub::UBDialect"];
}

def CollapseLoopsPass : Pass<"fsdp-collapse-loops"> {
  let summary = "element-wise ops on dense buffers get one dimension";
  let description = [{
    A `linalg.generic` on buffers that maps every element of dense buffers of one
    shape to the element at the same place works on their one-dimensional views:
    one loop, which LLVM turns into full vectors whatever the last dimension is. A
    `memref.copy` between strided buffers becomes a `linalg.generic`, since its own
    lowering calls a library that artefacts do not have.

    ```mlir
    func.func @f(%a: memref<8x3xf32>, %b: memref<8x3xbf16>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                       affine_map<(i, j) -> (i, j)>],
                      iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<8x3xf32>) outs(%b : memref<8x3xbf16>) {
      ^bb0(%x: f32, %y: bf16):
        %z = arith.truncf %x : f32 to bf16
        linalg.yield %z : bf16
      }
      return
    }
    ```
  }];
  let dependentDialects = ["linalg::LinalgDialect", "memref::MemRefDialect"];
}

def DeclareEntriesPass : Pass<"fsdp-declare-entries", "::mlir::ModuleOp"> {
  let summary = "mark the functions that a launcher calls, write the manifest";
  let description = [{
    On values. An entry is a public function whose results are tensors of static
    shape and of a dtype that files have, and whose arguments are such tensors or
    scalars. It gets `fsdp.entry`, and its tensors are marked as not writable: they
    belong to the launcher. The
    manifest of all entries, units and buckets and the version of the runtime's
    interface become constants that an artefact exports.

    The manifest gives each tensor the name that it has in files, reports and
    fills: a parameter its own, its gradient `NAME.grad`, other values `argN` and
    `resultN`. A name that is taken is numbered, `NAME#1`, `NAME#2` and so on, in
    the order of the signature; parameters come first, so that they keep theirs.
    Of the arguments the shard of a parameter and the full parameter are one
    tensor.

    Refused: units on different grids, an argument or result that does not have
    the shape that its `fsdp.shard`, `fsdp.full`, `fsdp.shard_grad` or
    `fsdp.full_grad` promises, and a public function with such a mark, or with
    `fsdp.uniform`, that cannot be an entry. Without marks that is a warning.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xf32>
    }
    func.func @f(%w: tensor<2x3xf32> {fsdp.shard = @u::@w}) -> tensor<2x3xf32> {
      return %w : tensor<2x3xf32>
    }
    ```
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "target that the manifest names">,
  ];
}

def PackStoragePass : Pass<"fsdp-pack-storage", "::mlir::ModuleOp"> {
  let summary = "write tensors of elements of less than a byte as bytes";
  let description = [{
    On values, after `fsdp-declare-entries`, so that the manifest keeps the dtypes.
    Two elements of f4E2M1FN share a byte, four of f6E2M3FN or f6E3M2FN three
    bytes; every tensor of them, and the parameters, become tensors of `i8` with
    rows of as many bytes. No offset of a bucket changes.

    Refused: an op outside of fsdp, func, scf and cf that works on such a tensor,
    and a tensor whose rows are no whole bytes.

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x6xf4E2M1FN> frozen
    }
    func.func @f(%w: tensor<2x6xf4E2M1FN>) -> tensor<8x6xf4E2M1FN> {
      %full = fsdp.unshard @u(%w) : (tensor<2x6xf4E2M1FN>) -> tensor<8x6xf4E2M1FN>
      return %full : tensor<8x6xf4E2M1FN>
    }
    ```

    becomes

    ```mlir
    shard.grid @dp(shape = 4)
    fsdp.unit @u on @dp {
      fsdp.param @w : tensor<8x3xi8> frozen
    }
    func.func @f(%arg0: tensor<2x3xi8>) -> tensor<8x3xi8> {
      %0 = fsdp.unshard @u(%arg0) : (tensor<2x3xi8>) -> tensor<8x3xi8>
      return %0 : tensor<8x3xi8>
    }
    ```
  }];
}

def Bf16MemoryPass : Pass<"fsdp-bf16-memory"> {
  let summary = "load and store bf16 as integers";
  let description = [{
    On the LLVM dialect: loads and stores of bf16, or of vectors of them, become
    loads and stores of i16, and parts of such vectors are taken out as i16. Functions
    with a body take i16 from their callers. No bit changes; LLVM then keeps loops over casts in vectors, and calls no
    function of a compiler's library.

    ```mlir
    llvm.func @f(%x: bf16, %p: !llvm.ptr) {
      llvm.store %x, %p : bf16, !llvm.ptr
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
}

def VerifyLoweredPass : Pass<"fsdp-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "refuse what has no lowering to LLVM";
  let description = [{
    Fails with one error at the first op that is not of the LLVM dialect, or, with
    `input`, that none of the passes of `fsdp-to-cpu` takes; with `kernels`, none of
    those that make kernels: on tensors there are ops of fsdp, elementwise
    arithmetic of `arith` or in a `linalg` op, fills, copies, views, and control
    flow that the host decides. Reads only.

    ```mlir
    llvm.func @f() {
      llvm.return
    }
    ```
  }];
  let options = [
    Option<"input", "input", "bool", "false",
           "look through the input of fsdp-to-cpu instead of its output">,
    Option<"kernels", "kernels", "bool", "false",
           "the input is for a GPU, or for its kernels emulated">,
  ];
}

def SerializeKernelsPass
    : Pass<"fsdp-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "compile the kernels to PTX or to machine code";
  let description = [{
    Runs `gpu-module-to-binary`: every `gpu.module` becomes a `gpu.binary` of the
    same name, and no kernel is left. Upstream's pass reports an error where there
    is no CUDA toolkit, although PTX needs none, and goes on; this one says
    nothing then. All other errors are upstream's.

    ```mlir
    module attributes {gpu.container_module} {
      gpu.module @fsdp_kernels [#nvvm.target<chip = "sm_90", features = "+ptx80">] {
        llvm.func @nothing() attributes {gpu.kernel, nvvm.kernel} {
          llvm.return
        }
      }
    }
    ```
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"isa\"",
           "isa: PTX; bin: machine code; fatbin: both">,
    Option<"toolkit", "toolkit", "std::string", /*default=*/"\"\"",
           "the CUDA toolkit with ptxas and fatbinary; else upstream's search">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect"];
}

def EmbedKernelsPass : Pass<"fsdp-embed-kernels", "::mlir::ModuleOp"> {
  let summary = "make the compiled kernels a constant of the module";
  let description = [{
    Takes a module whose `gpu.module` has become a `gpu.binary` with one object.
    Its bytes become the constant `fsdp_kernel_image`, and their number
    `fsdp_kernel_image_bytes`, to which the launches refer. PTX gets a final
    zero. `fsdp_kernel_driver` becomes the least version of the driver that takes
    them, which the manifest, if there is one, says too: the first that knows the
    version of PTX, and, where there is machine code, that of the major version
    of the toolkit. Afterwards there is no `gpu.binary` left. More than one binary
    or object is refused.

    ```mlir
    module attributes {gpu.container_module} {
      gpu.binary @fsdp_kernels [#gpu.object<#nvvm.target<chip = "sm_90">, assembly = "...">]
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"toolkit", "toolkit", "std::string", "",
           "path of the CUDA toolkit that made machine code">,
  ];
}

def VerifyDeviceMemoryPass
    : Pass<"fsdp-verify-device-memory", "::mlir::ModuleOp"> {
  let summary = "refuse host code that touches the device's memory";
  let description = [{
    After `convert-elementwise-to-kernels` all buffers are the device's. Fails at the
    first op outside of kernels that reads or writes one, or that makes one that is
    not the runtime's. Collectives, launches and the copies that are left take
    buffers and do not touch them. Reads only.

    ```mlir
    func.func @allocates() {
      %b = memref.alloc() : memref<4xf32>
      memref.dealloc %b : memref<4xf32>
      return
    }
    ```
  }];
}

def FuseElementwisePass : Pass<"fsdp-fuse-elementwise"> {
  let summary = "splats as scalars or fills, chains of elementwise ops as one";
  let description = [{
    On tensors, after `convert-elementwise-to-linalg`. In a `linalg` op whose loops
    are all parallel, an operand of equal elements (a constant, a `tensor.splat`, a
    fill) becomes a scalar, and the elementwise op that computes an operand for it
    alone moves into it, as long as that reads no more than 8 tensors. Afterwards
    no constant tensor of equal elements is left: where it is needed as a tensor, it
    is filled. An op that overwrites a tensor does so in the place of an operand of
    its type, if it has one: best one that nobody else needs.

    No bit changes, and nothing but such ops, constants and fills.

    ```mlir
    func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
      %c = arith.constant dense<1.5> : tensor<8xf32>
      %empty = tensor.empty() : tensor<8xf32>
      %d = linalg.map { arith.addf } ins(%a, %c : tensor<8xf32>, tensor<8xf32>)
          outs(%empty : tensor<8xf32>)
      return %d : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ElementwiseToKernelsPass
    : Pass<"convert-elementwise-to-kernels", "::mlir::ModuleOp"> {
  let summary = "elementwise ops on buffers become kernels";
  let description = [{
    Every `linalg` op on buffers becomes a `gpu.launch_func` of a kernel in the
    module's one `gpu.module`, or, with `target=emulate`, a call of the same kernel
    as a function of the host. So does a `memref.copy` of a strided buffer; others
    are left for `convert-fsdp-to-runtime`. Ops that compute the same share a kernel.
    docs/Kernels.md describes it.

    An op that is not elementwise, or whose body has no kernel, is refused, as
    `fsdp-verify-lowered` does before buffers exist. No bit of any result changes.

    ```mlir
    func.func @f(%a: memref<8x3xf32>, %b: memref<8x3xbf16>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                       affine_map<(i, j) -> (i, j)>],
                      iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<8x3xf32>) outs(%b : memref<8x3xbf16>) {
      ^bb0(%x: f32, %y: bf16):
        %z = arith.truncf %x : f32 to bf16
        linalg.yield %z : bf16
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [
    Option<"target", "target", "::mlir::fsdp::TileTarget",
           "::mlir::fsdp::TileTarget::Cuda", "where the kernels run",
           [{::llvm::cl::values(
             clEnumValN(::mlir::fsdp::TileTarget::Cuda, "cuda", "on a GPU"),
             clEnumValN(::mlir::fsdp::TileTarget::Emulate, "emulate",
                        "on the host, thread by thread"))}]>,
    Option<"chip", "chip", "std::string", "\"sm_90\"",
           "chip that the kernels are for (target=cuda)">,
    Option<"features", "features", "std::string", "",
           "version of PTX, +ptx80 or later; by default the oldest one that "
           "knows the chip (target=cuda)">,
  ];
}

#endif // FSDP_CONVERSION_PASSES
