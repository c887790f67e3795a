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

def ExpandCastsPass : Pass<"fsdp-expand-casts"> {
  let summary = "write out the casts that LLVM would get wrong on the CPU";
  let description = [{
    Replaces every `arith.extf` and `arith.truncf` between f16, bf16, f32 and f64
    that the CPU has no instruction for by integer arithmetic with the same bits:
    one rounding, to nearest even, NaN as a class. A cast with another rounding
    mode is refused.

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
    becomes a table of tiles (at most 4096 elements of one row of one segment,
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

    Afterwards no local op is left. A member's share or row offset of 2^31
    granules or more is refused. No bit of any result changes: a value is cast
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
    Option<"features", "features", "std::string", "\"+ptx80\"",
           "features of the code generator (target=cuda)">,
    Option<"printPlan", "print-plan", "bool", "false",
           "print the tiles of every op to the standard error">,
  ];
}

#endif // FSDP_CONVERSION_PASSES
