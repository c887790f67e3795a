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
  }];
  let dependentDialects = ["arith::ArithDialect", "memref::MemRefDialect"];
}

#endif // FSDP_TRANSFORMS_PASSES
