//===- Passes.td - passes that make an artefact -----------*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_TARGET_PASSES
#define FSDP_TARGET_PASSES

include "mlir/Pass/PassBase.td"

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

    Refused: a module whose plan is not the one that `fsdp-seal` wrote down (one
    without a seal was not proved, and passes), units on different grids, an
    argument or result that does not have the shape that its `fsdp.shard`, `fsdp.full`, `fsdp.shard_grad` or
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
    becomes
    ```mlir
    module {
      shard.grid @dp(shape = 4)
      fsdp.unit @u on @dp {
        fsdp.param @w : tensor<8x3xf32>
      }
      func.func @f(%arg0: tensor<2x3xf32> {bufferization.writable = false, fsdp.shard = @u::@w}) -> tensor<2x3xf32> attributes {fsdp.entry = 1 : i64} {
        return %arg0 : tensor<2x3xf32>
      }
      llvm.mlir.global external constant @fsdprt_artefact_abi(3 : i32) {addr_space = 0 : i32} : i32
      llvm.mlir.global external constant @fsdprt_artefact_manifest("{...\00") {addr_space = 0 : i32}
    }
    ```
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "target that the manifest names">,
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
    becomes
    ```mlir
    module attributes {gpu.container_module} {
      gpu.binary @fsdp_kernels  [#gpu.object<#nvvm.target<chip = "sm_90", features = "+ptx80">, properties = {...}, assembly = "...">]
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
    becomes
    ```mlir
    module {
      llvm.mlir.global internal constant @fsdp_kernel_driver(12000 : i32) {addr_space = 0 : i32, alignment = 16 : i64} : i32
      llvm.mlir.global internal constant @fsdp_kernel_image_bytes(4 : i64) {addr_space = 0 : i32, alignment = 16 : i64} : i64
      llvm.mlir.global internal constant @fsdp_kernel_image("...\00") {addr_space = 0 : i32, alignment = 16 : i64}
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
    This one is refused:

    ```mlir
    func.func @loads(%a: memref<4xf32>, %i: index) -> f32 {
      %x = memref.load %a[%i] : memref<4xf32>
      return %x : f32
    }
    ```
    prints
    ```text
    error: 'memref.load' op has no lowering to cuda: it runs on the host, but the buffer is the device's
    ```
  }];
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
    This one is refused:

    ```mlir
    llvm.func @f(%x: f32) -> f32 {
      %y = arith.addf %x, %x : f32
      llvm.return %y : f32
    }
    ```
    prints
    ```text
    error: 'arith.addf' op has no lowering to the cpu
    ```
  }];
  let options = [
    Option<"input", "input", "bool", "false",
           "look through the input of fsdp-to-cpu instead of its output">,
    Option<"kernels", "kernels", "bool", "false",
           "the input is for a GPU, or for its kernels emulated">,
  ];
}

#endif // FSDP_TARGET_PASSES
