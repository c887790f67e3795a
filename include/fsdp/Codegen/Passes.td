//===- Passes.td - passes on loops, floats and functions --*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_PASSES
#define FSDP_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

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

def FuseElementwisePass : Pass<"fsdp-fuse-elementwise"> {
  let summary = "splats as scalars or fills, chains of elementwise ops as one";
  let description = [{
    On tensors, after `convert-elementwise-to-linalg`. In a `linalg` op whose loops
    are all parallel, an operand of equal elements (a constant, a `tensor.splat`, a
    fill) becomes a scalar, and the elementwise op that computes an operand for it
    alone moves into it, as long as that reads no more than 8 tensors. Afterwards
    no constant tensor of equal elements is left: where it is needed as a tensor, it
    is filled. An op that overwrites a tensor does so in the place of an operand of
    its type, if it has one, and preferably of one that nobody else needs.

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
    becomes
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    #map1 = affine_map<(d0) -> ()>
    module {
      func.func @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
        %cst = arith.constant 1.500000e+00 : f32
        %0 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel"]} ins(%arg0, %cst : tensor<8xf32>, f32) outs(%arg0 : tensor<8xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %1 = arith.addf %in, %in_0 : f32
          linalg.yield %1 : f32
        } -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
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
    becomes
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @f(%arg0: memref<8x3xf32>, %arg1: memref<8x3xbf16>) {
        %collapse_shape = memref.collapse_shape %arg0 [[0, 1]] : memref<8x3xf32> into memref<24xf32>
        %collapse_shape_0 = memref.collapse_shape %arg1 [[0, 1]] : memref<8x3xbf16> into memref<24xbf16>
        linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%collapse_shape : memref<24xf32>) outs(%collapse_shape_0 : memref<24xbf16>) {
        ^bb0(%in: f32, %out: bf16):
          %0 = arith.truncf %in : f32 to bf16
          linalg.yield %0 : bf16
        }
        return
      }
    }
    ```
  }];
  let dependentDialects = ["linalg::LinalgDialect", "memref::MemRefDialect"];
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
    // with min-loops=1
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
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @f(%arg0: memref<8x3xf32>, %arg1: memref<8x3xbf16>) {
        %intptr = memref.extract_aligned_pointer_as_index %arg0 : memref<8x3xf32> -> index
        %0 = arith.index_cast %intptr : index to i64
        %1 = llvm.inttoptr %0 : i64 to !llvm.ptr
        %intptr_0 = memref.extract_aligned_pointer_as_index %arg1 : memref<8x3xbf16> -> index
        %2 = arith.index_cast %intptr_0 : index to i64
        %3 = llvm.inttoptr %2 : i64 to !llvm.ptr
        %c24 = arith.constant 24 : index
        call @fsdp_loop(%1, %3, %c24) : (!llvm.ptr, !llvm.ptr, index) -> ()
        return
      }
      func.func private @fsdp_loop(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: index) attributes {passthrough = ["noinline"]} {
        // ...
        linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%8 : memref<?xf32>) outs(%16 : memref<?xbf16>) {
        ^bb0(%in: f32, %out: bf16):
          %17 = arith.truncf %in : f32 to bf16
          linalg.yield %17 : bf16
        }
        return
      }
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
    // with max-ops=4
    func.func @f(%x: f32) -> f32 {
      %a = arith.addf %x, %x : f32
      %b = arith.mulf %a, %x : f32
      %c = arith.mulf %b, %x : f32
      %d = arith.mulf %c, %x : f32
      %e = arith.mulf %d, %x : f32
      %f = arith.mulf %e, %x : f32
      %g = arith.mulf %f, %x : f32
      %h = arith.mulf %g, %a : f32
      %i = arith.mulf %h, %x : f32
      return %i : f32
    }
    ```
    becomes
    ```mlir
    module {
      func.func @f(%arg0: f32) -> f32 {
        // ...
        %0 = llvm.alloca %c16_i64 x i8 {alignment = 64 : i64} : (i64) -> !llvm.ptr
        // ...
        call @f_part(%0) : (!llvm.ptr) -> ()
        call @f_part_0(%0) : (!llvm.ptr) -> ()
        // ...
        %4 = arith.mulf %3, %arg0 : f32
        return %4 : f32
      }
      func.func private @f_part_0(%arg0: !llvm.ptr) attributes {passthrough = ["noinline", "optnone"]} {
        // ...
        %4 = arith.mulf %1, %3 : f32
        %5 = arith.mulf %4, %3 : f32
        %6 = arith.mulf %5, %3 : f32
        // ...
        %9 = arith.mulf %6, %8 : f32
        // ...
        return
      }
      func.func private @f_part(%arg0: !llvm.ptr) attributes {passthrough = ["noinline", "optnone"]} {
        // ...
        %2 = arith.addf %1, %1 : f32
        // ...
        %4 = arith.mulf %2, %1 : f32
        %5 = arith.mulf %4, %1 : f32
        %6 = arith.mulf %5, %1 : f32
        // ...
        return
      }
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
    After `convert-fsdp-to-runtime` and `convert-scf-to-cf`: after each call of a
    function whose last result is a status (`fsdp.status`), the caller returns that
    status at once unless it is 0. A call in a region, where nothing
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
    becomes
    ```mlir
    module {
      func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> i32
      func.func @f(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> i32 {
        %0 = call @fsdprtFree(%arg0, %arg1) : (!llvm.ptr, !llvm.ptr) -> i32
        %c0_i32 = arith.constant 0 : i32
        %1 = arith.cmpi ne, %0, %c0_i32 : i32
        cf.cond_br %1, ^bb3(%0 : i32), ^bb1
      ^bb1:  // pred: ^bb0
        %2 = call @fsdprtFree(%arg0, %arg2) : (!llvm.ptr, !llvm.ptr) -> i32
        %c0_i32_0 = arith.constant 0 : i32
        %3 = arith.cmpi ne, %2, %c0_i32_0 : i32
        cf.cond_br %3, ^bb3(%2 : i32), ^bb2
      ^bb2:  // pred: ^bb1
        %c0_i32_1 = arith.constant 0 : i32
        return %c0_i32_1 : i32
      ^bb3(%4: i32):  // 2 preds: ^bb0, ^bb1
        return %4 : i32
      }
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "cf::ControlFlowDialect",
                           "ub::UBDialect"];
}

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
    becomes
    ```mlir
    module {
      func.func @f(%arg0: f32) -> bf16 {
        %0 = arith.bitcast %arg0 : f32 to i32
        %c16_i32 = arith.constant 16 : i32
        %1 = arith.shrui %0, %c16_i32 : i32
        %c1_i32 = arith.constant 1 : i32
        %2 = arith.andi %1, %c1_i32 : i32
        %c32767_i32 = arith.constant 32767 : i32
        %3 = arith.addi %0, %c32767_i32 : i32
        %4 = arith.addi %3, %2 : i32
        %c16_i32_0 = arith.constant 16 : i32
        %5 = arith.shrui %4, %c16_i32_0 : i32
        %c2147483647_i32 = arith.constant 2147483647 : i32
        %6 = arith.andi %0, %c2147483647_i32 : i32
        %c2139095040_i32 = arith.constant 2139095040 : i32
        %7 = arith.cmpi ugt, %6, %c2139095040_i32 : i32
        %c32767_i32_1 = arith.constant 32767 : i32
        %8 = arith.extsi %7 : i1 to i32
        %9 = arith.andi %8, %c32767_i32_1 : i32
        %10 = arith.ori %5, %9 : i32
        %11 = arith.trunci %10 : i32 to i16
        %12 = arith.bitcast %11 : i16 to bf16
        return %12 : bf16
      }
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect"];
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
    becomes
    ```mlir
    module {
      llvm.func @f(%arg0: i16, %arg1: !llvm.ptr) {
        %0 = llvm.bitcast %arg0 : i16 to bf16
        %1 = llvm.bitcast %0 : bf16 to i16
        llvm.store %1, %arg1 : i16, !llvm.ptr
        llvm.return
      }
    }
    ```
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
}

#endif // FSDP_CODEGEN_PASSES
