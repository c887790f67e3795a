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
    becomes
    ```mlir
    module {
      // ...
      func.func @pack(%arg0: memref<5x3xbf16>, %arg1: memref<2x32xf32>) {
        // ...
        %7 = llvm.mlir.addressof @b_chunk_cat_tiles : !llvm.ptr
        // ...
        llvm.call @fsdp_pack_bf16_f32(%0, %4, %6, %8, %c1_i64_1, %c2_i64, %c128_i64, %c4_i64, %true) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i1) -> ()
        return
      }
      llvm.func internal @fsdp_pack_bf16_f32(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr {llvm.noalias}, %arg3: !llvm.ptr, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: i64, %arg8: i1) attributes {no_inline, passthrough = ["no-builtins"]} {
        // ...
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
    becomes
    ```mlir
    module attributes {gpu.container_module} {
      func.func @f(%arg0: memref<8x3xf32>, %arg1: memref<8x3xbf16>) {
        // ...
        gpu.launch_func  @fsdp_kernels::@elementwise_truncf_bf16 blocks in (%c1_2, %c1_3, %c1) threads in (%c256, %c1, %c1)  args(%0 : !llvm.ptr, %10 : !llvm.ptr<1>)
        return
      }
      gpu.module @fsdp_kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx80">] {
        llvm.func @elementwise_truncf_bf16(%arg0: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<3 x i64>, nvvm.grid_constant}, %arg1: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>} {
        // ...
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
    becomes
    ```mlir
    module {
      func.func private @fsdprtRunCollectives(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})
      llvm.mlir.global internal constant @fsdp_collective() {addr_space = 0 : i32} : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)> {
        %0 = llvm.mlir.undef : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        %1 = llvm.mlir.constant(dense<[56, 0, 2, 0, 0, 1]> : tensor<6xi32>) : !llvm.array<6 x i32>
        %2 = llvm.insertvalue %1, %0[0] : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        %3 = llvm.mlir.constant(32 : i64) : i64
        %4 = llvm.insertvalue %3, %2[1] : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        %5 = llvm.mlir.constant(0.000000e+00 : f64) : f64
        %6 = llvm.insertvalue %5, %4[2] : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        %7 = llvm.mlir.addressof @fsdp_bucket_name : !llvm.ptr
        %8 = llvm.insertvalue %7, %6[3] : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        %9 = llvm.mlir.addressof @fsdp_axes : !llvm.ptr
        %10 = llvm.insertvalue %9, %8[4] : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
        llvm.return %10 : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
      }
      llvm.mlir.global internal constant @fsdp_axes(dense<0> : tensor<1xi32>) {addr_space = 0 : i32} : !llvm.array<1 x i32>
      llvm.mlir.global internal constant @fsdp_bucket_name("b\00") {addr_space = 0 : i32}
      func.func @fsdprt_entry_gather(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> (i32 {fsdp.status}) {
        %c3_i64 = arith.constant 3 : i64
        %0 = llvm.alloca %c3_i64 x !llvm.ptr : (i64) -> !llvm.ptr
        %1 = llvm.getelementptr %arg1[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
        %3 = llvm.getelementptr %arg2[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        %4 = llvm.load %3 : !llvm.ptr -> !llvm.ptr
        %5 = llvm.mlir.addressof @fsdp_collective : !llvm.ptr
        %6 = llvm.getelementptr %0[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        llvm.store %5, %6 : !llvm.ptr, !llvm.ptr
        %7 = llvm.getelementptr %0[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        llvm.store %2, %7 : !llvm.ptr, !llvm.ptr
        %8 = llvm.getelementptr %0[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
        llvm.store %4, %8 : !llvm.ptr, !llvm.ptr
        %c1_i32 = arith.constant 1 : i32
        %9 = call @fsdprtRunCollectives(%arg0, %6, %c1_i32, %7, %8) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
        %c0_i32 = arith.constant 0 : i32
        return %c0_i32 : i32
      }
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
