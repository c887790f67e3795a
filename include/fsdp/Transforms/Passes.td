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

def FuseCastsPass : Pass<"fsdp-fuse-casts", "ModuleOp"> {
  let summary = "fold casts into concat, chunk_cat, split and unchunk";
  let description = [{
    Comes in: the local ops in value form, with `arith.extf` and `arith.truncf`
    in front of `concat` and `chunk_cat` or behind `split` and `unchunk`. Gone
    afterwards: every such cast that the local op can do itself with the same
    roundings, and with it a tensor as large as the parameter.

    A cast A to B before `concat` or `chunk_cat` is folded if it is exact or if B
    is the member's wire dtype; one after `split` or `unchunk` if what the op does
    already is exact or nothing. `extf` and then `truncf` count as one cast.
    A cast in front of a local op that has another use is folded and stays for
    that use. What stays, each with a remark: a second rounding, a rounding mode
    or fast-math flags, a cast behind a `split` that adds, a cast of a result that
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

#endif // FSDP_TRANSFORMS_PASSES
