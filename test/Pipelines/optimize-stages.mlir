// Modules that are, in part or as a whole, past stage declared already.
//
// RUN: split-file %s %t
// RUN: fsdp-opt %t/packed.mlir --fsdp-optimize=opt-level=0 -o %t/0.mlir
// RUN: fsdp-opt %t/packed.mlir --fsdp-optimize -o %t/2.mlir
// RUN: fsdp-opt %t/packed.mlir --fsdp-verify-collectives --fsdp-seal -o %t/same.mlir
// RUN: diff %t/same.mlir %t/0.mlir
// RUN: diff %t/same.mlir %t/2.mlir
// RUN: fsdp-opt %t/mixed.mlir --fsdp-optimize=opt-level=0 | FileCheck %s --check-prefix=MIXED
// RUN: fsdp-opt %t/mixed.mlir --fsdp-optimize --fsdp-optimize=opt-level=0 --fsdp-optimize | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %t/buffered.mlir --fsdp-optimize 2>&1 | FileCheck %s --check-prefix=BUFFERED
// RUN: not fsdp-opt %t/mixed.mlir --fsdp-optimize=opt-level=1 2>&1 | FileCheck %s --check-prefix=LEVEL

//--- packed.mlir
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32> precision <param = bf16, reduce = f32, grad = f32>
  fsdp.param @b : tensor<6xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@a, @b] : bf16
func.func @forward(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<4xbf16>, tensor<6xbf16>) {
  %f = fsdp.concat %a, %b into @g : (tensor<2xf32>, tensor<3xf32>) -> tensor<128xbf16>
  %p = fsdp.all_gather %f of @g : (tensor<128xbf16>) -> tensor<2x128xbf16>
  %w:2 = fsdp.unchunk %p of @g : (tensor<2x128xbf16>) -> (tensor<4xbf16>, tensor<6xbf16>)
  return %w#0, %w#1 : tensor<4xbf16>, tensor<6xbf16>
}

// The gather is declared; the reduction is written out, since only so can it
// keep a partial sum.
//
// MIXED-LABEL:    func.func @step(
// MIXED-COUNT-2:    fsdp.all_gather
// MIXED-NOT:        fsdp.all_gather
// MIXED:            fsdp.chunk_cat {{.+}} into @r : (tensor<4xbf16>, tensor<6xbf16>)
// MIXED:            fsdp.reduce_scatter
// MIXED:            arith.addf
// TWICE-LABEL:    func.func @step(
// TWICE-COUNT-1:    fsdp.all_gather
// TWICE-NOT:        fsdp.all_gather
// TWICE:            fsdp.chunk_cat {{.+}} into @r : (tensor<4xbf16>, tensor<6xbf16>)

//--- mixed.mlir
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<6xf32>
}
fsdp.bucket @r reduce @u[@a, @b] : f32
func.func @step(%a: tensor<2xf32>, %b: tensor<3xf32>, %partial: tensor<64xf32>) -> tensor<64xf32> {
  %w:2 = fsdp.unshard @u(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> (tensor<4xbf16>, tensor<6xbf16>)
  %p = fsdp.chunk_cat %w#0, %w#1 into @r : (tensor<4xbf16>, tensor<6xbf16>) -> tensor<2x64xf32>
  %s = fsdp.reduce_scatter avg %p of @r : (tensor<2x64xf32>) -> tensor<64xf32>
  %t = arith.addf %partial, %s : tensor<64xf32>
  return %t : tensor<64xf32>
}

// BUFFERED: 'fsdp.concat' op on bucket 'g' is not allowed at stage input

//--- buffered.mlir
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
}
fsdp.bucket @g gather @u[@a] : f32
func.func @f(%a: memref<2xf32>, %f: memref<32xf32>) {
  fsdp.concat %a into @g outs(%f : memref<32xf32>) : (memref<2xf32>) -> ()
  return
}

// LEVEL: opt-level
