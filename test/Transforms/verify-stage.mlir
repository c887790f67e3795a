// Modules that are at the stage they say, and go through unchanged.
//
// RUN: split-file %s %t
// RUN: fsdp-opt %t/declared.mlir --fsdp-verify-stage | FileCheck %s --check-prefix=DECLARED
// RUN: fsdp-opt %t/declared.mlir --fsdp-verify-stage=stage=declared
// RUN: fsdp-opt %t/explicit.mlir --fsdp-verify-stage
// RUN: fsdp-opt %t/explicit.mlir --fsdp-verify-stage=stage=explicit | FileCheck %s --check-prefix=EXPLICIT
// RUN: fsdp-opt %t/packed.mlir --fsdp-verify-stage
// RUN: fsdp-opt %t/packed.mlir --fsdp-verify-stage=stage=packed | FileCheck %s --check-prefix=PACKED
// RUN: fsdp-opt %t/buffered.mlir --fsdp-verify-stage=stage=buffered | FileCheck %s --check-prefix=BUFFERED
//
// Beside units that are declared, others may be packed already.
// RUN: fsdp-opt %t/packed.mlir --fsdp-verify-stage='stage=explicit mixed'
// RUN: not fsdp-opt %t/packed.mlir --fsdp-verify-stage=stage=explicit 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: bucket 'g' has 3 members, expected 1 at stage explicit

//--- declared.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16> {
  fsdp.param @wq : tensor<8x3xf32>
  fsdp.param @odd : tensor<5x10xf32> shard_dim 1
  fsdp.param @ids : tensor<8xi64> frozen
}
// Shards and gradients may have any floating-point dtype; memrefs have no
// other rule than tensors.
// DECLARED: func.func @forward
func.func @forward(
    %q: tensor<2x3xf32> {fsdp.shard = @u::@wq},
    %o: tensor<5x3xf32> {fsdp.shard = @u::@odd},
    %i: tensor<2xi64> {fsdp.shard = @u::@ids},
    %x: tensor<7xi1>)
    -> (tensor<8x3xbf16> {fsdp.full = @u::@wq}, tensor<5x10xbf16> {fsdp.full = @u::@odd},
        tensor<8xi64> {fsdp.full = @u::@ids}) {
  %w:3 = fsdp.unshard @u(%q, %o, %i) : (tensor<2x3xf32>, tensor<5x3xf32>, tensor<2xi64>)
      -> (tensor<8x3xbf16>, tensor<5x10xbf16>, tensor<8xi64>)
  return %w#0, %w#1, %w#2 : tensor<8x3xbf16>, tensor<5x10xbf16>, tensor<8xi64>
}
func.func private @backward(
    tensor<8x3xbf16> {fsdp.full_grad = @u::@wq}, memref<5x10xf16> {fsdp.full_grad = @u::@odd})
    -> (tensor<2x3xf32> {fsdp.shard_grad = @u::@wq}, memref<5x3xf64> {fsdp.shard_grad = @u::@odd})

//--- explicit.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @wq : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
  fsdp.param @ids : tensor<8xi64> precision <param = i64> frozen
}
fsdp.bucket @g gather @u[@wq] : bf16
fsdp.bucket @i gather @u[@ids] : bytes
fsdp.bucket @r reduce @u[@wq] : f32
// EXPLICIT: func.func @all
func.func @all(%q: tensor<2x3xf32>, %i: tensor<2xi64>, %g: tensor<8x3xbf16>, %partial: tensor<32xf32>)
    -> (tensor<8x3xbf16>, tensor<8xi64>, tensor<2x3xf32>) {
  %c = arith.truncf %q : tensor<2x3xf32> to tensor<2x3xbf16>
  %0 = fsdp.concat %c into @g : (tensor<2x3xbf16>) -> tensor<64xbf16>
  %1 = fsdp.all_gather %0 of @g : (tensor<64xbf16>) -> tensor<4x64xbf16>
  %2 = fsdp.unchunk %1 of @g : (tensor<4x64xbf16>) -> tensor<8x3xbf16>
  %3 = fsdp.concat %i into @i : (tensor<2xi64>) -> tensor<128xi8>
  %4 = fsdp.all_gather %3 of @i : (tensor<128xi8>) -> tensor<4x128xi8>
  %5 = fsdp.unchunk %4 of @i : (tensor<4x128xi8>) -> tensor<8xi64>
  %d = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  %6 = fsdp.chunk_cat %d into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  %7 = fsdp.reduce_scatter avg %6 of @r : (tensor<4x32xf32>) -> tensor<32xf32>
  // A partial of the same bucket, one from outside, and ordinary additions.
  %8 = fsdp.reduce_scatter avg %6 of @r : (tensor<4x32xf32>) -> tensor<32xf32>
  %9 = arith.addf %7, %8 : tensor<32xf32>
  %10 = arith.addf %9, %partial : tensor<32xf32>
  %11 = arith.addf %10, %7 : tensor<32xf32>
  %12 = arith.addf %partial, %partial : tensor<32xf32>
  %s = fsdp.split %11 of @r : (tensor<32xf32>) -> tensor<2x3xf32>
  return %2, %5, %s : tensor<8x3xbf16>, tensor<8xi64>, tensor<2x3xf32>
}

//--- packed.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @norm : tensor<10xf32> precision <param = f32, reduce = f32, grad = f32>
  fsdp.param @wq : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
  fsdp.param @ids : tensor<8xi64> precision <param = i64> frozen
}
fsdp.bucket @g gather @u[@norm, @wq, @ids] : bytes
fsdp.bucket @r reduce @u[@norm, @wq] : f32
// PACKED: func.func @all
func.func @all(%n: tensor<3xf32>, %q: tensor<2x3xf32>, %i: tensor<2xi64>, %gn: tensor<10xf32>, %gq: tensor<8x3xf32>)
    -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<8xi64>, tensor<3xf32>, tensor<2x3xbf16>, tensor<2x3xf32>) {
  %0 = fsdp.concat %n, %q, %i into @g : (tensor<3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> tensor<384xi8>
  %1 = fsdp.all_gather %0 of @g : (tensor<384xi8>) -> tensor<4x384xi8>
  %2:3 = fsdp.unchunk %1 of @g : (tensor<4x384xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<8xi64>)
  // Casts that cannot be folded may stay.
  %c = arith.truncf %gq : tensor<8x3xf32> to tensor<8x3xbf16>
  %3 = fsdp.chunk_cat %gn, %c into @r : (tensor<10xf32>, tensor<8x3xbf16>) -> tensor<4x64xf32>
  %4 = fsdp.reduce_scatter avg %3 of @r : (tensor<4x64xf32>) -> tensor<64xf32>
  %5:2 = fsdp.split %4 of @r : (tensor<64xf32>) -> (tensor<3xf32>, tensor<2x3xf32>)
  %6 = arith.truncf %5#1 : tensor<2x3xf32> to tensor<2x3xbf16>
  return %2#0, %2#1, %2#2, %5#0, %6, %5#1
      : tensor<10xf32>, tensor<8x3xbf16>, tensor<8xi64>, tensor<3xf32>, tensor<2x3xbf16>, tensor<2x3xf32>
}

//--- buffered.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @wq : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@wq] : bf16
// BUFFERED: func.func @in_place
func.func @in_place(%q: memref<2x3xf32> {fsdp.shard = @u::@wq}, %w: memref<8x3xbf16> {fsdp.full = @u::@wq}) {
  %g = memref.alloc() : memref<4x64xbf16>
  %r = shard.process_multi_index on @dp : index
  %slot = memref.subview %g[%r, 0] [1, 64] [1, 1] : memref<4x64xbf16> to memref<64xbf16, strided<[1], offset: ?>>
  fsdp.concat %q into @g outs(%slot : memref<64xbf16, strided<[1], offset: ?>>) : (memref<2x3xf32>) -> ()
  fsdp.all_gather %slot of @g outs(%g : memref<4x64xbf16>) : (memref<64xbf16, strided<[1], offset: ?>>) -> ()
  fsdp.unchunk %g of @g outs(%w : memref<8x3xbf16>) : (memref<4x64xbf16>) -> ()
  return
}
// The caller packed it.
func.func @from_outside(%flat: memref<64xbf16>, %g: memref<4x64xbf16>) {
  fsdp.all_gather %flat of @g outs(%g : memref<4x64xbf16>) : (memref<64xbf16>) -> ()
  return
}
// Two gathers of one flat shard cannot both own it.
func.func @read_twice(%q: memref<2x3xf32>, %g: memref<4x64xbf16>, %h: memref<4x64xbf16>) {
  %flat = memref.alloc() : memref<64xbf16>
  fsdp.concat %q into @g outs(%flat : memref<64xbf16>) : (memref<2x3xf32>) -> ()
  fsdp.all_gather %flat of @g outs(%g : memref<4x64xbf16>) : (memref<64xbf16>) -> ()
  fsdp.all_gather %flat of @g outs(%h : memref<4x64xbf16>) : (memref<64xbf16>) -> ()
  return
}
