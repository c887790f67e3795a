//===- Passes.td - passes that leave the dialect ----------*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_PASSES
#define FSDP_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def FsdpToTilesPass : Pass<"convert-fsdp-to-tiles", "::mlir::ModuleOp"> {
  let summary = "lower local ops to loops over tiles";
  let description = [{
    Takes the buffer forms of `concat`, `chunk_cat`, `unchunk` and `split`. Each
    becomes a table of tiles (about 4096 elements of one row of one segment,
    `include/fsdp/Codegen/TilePlan.h`) and code that walks the table:

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

#endif // FSDP_CONVERSION_PASSES
