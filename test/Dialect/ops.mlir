// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --emit-bytecode | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

// Every op in every spelling of its clauses; value and buffer form.

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

// CHECK:      module attributes {fsdp.profile = "stable"}
module attributes {fsdp.profile = "stable"} {

shard.grid @dp(shape = 4)
shard.grid @hsdp(shape = 2x4)

// CHECK:      fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
// CHECK-NEXT:   fsdp.param @norm : tensor<10xf32> precision <param = f32>
// CHECK-NEXT:   fsdp.param @wq : tensor<8x3xf32>
// CHECK-NEXT:   fsdp.param @wv : tensor<3x8xf32> shard_dim 1
// CHECK-NEXT:   fsdp.param @table : tensor<16x2xbf16> frozen
// CHECK-NEXT:   fsdp.param @ids : tensor<16x2xi64> shard_dim 0 precision <param = i64> frozen
// CHECK-NEXT:   fsdp.param @none : tensor<0x5xf64> precision <grad = f64>
// CHECK-NEXT:   fsdp.param @codes : tensor<5xi8> frozen
// CHECK-NEXT: }
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm  : tensor<10xf32> precision <param = f32>
  fsdp.param @wq    : tensor<8x3xf32>
  fsdp.param @wv    : tensor<3x8xf32> shard_dim 1
  fsdp.param @table : tensor<16x2xbf16> frozen
  fsdp.param @ids   : tensor<16x2xi64> shard_dim 0 precision <param = i64> frozen
  fsdp.param @none  : tensor<0x5xf64> precision <grad = f64>
  fsdp.param @codes : tensor<5xi8> frozen
}

// Names are those of the model, in quotes only where the grammar needs them.
// CHECK:      fsdp.unit @layers.0 on @hsdp precision <param = bf16, reduce = f32, grad = f32> shard_axes [1] replicate_axes [0] reduction avg divide_factor 3.000000e+00 attributes {fsdp.profile = "per_param"} {
// CHECK-NEXT:   fsdp.param @layers.0.attn.wq : tensor<8xf32> precision <param = f16, reduce = f64, grad = bf16> frozen
// CHECK-NEXT:   fsdp.param @"a-b" : tensor<8xf32>
fsdp.unit @layers.0 on @hsdp precision <param = bf16, reduce = f32, grad = f32>
    shard_axes [1] replicate_axes [0] reduction avg divide_factor 3.0
    attributes {fsdp.profile = "per_param"} {
  fsdp.param @layers.0.attn.wq : tensor<8xf32>
      precision <param = f16, reduce = f64, grad = bf16> frozen
  fsdp.param @"a-b" : tensor<8xf32>
}

// CHECK:      fsdp.unit @replicas on @hsdp shard_axes [] replicate_axes [0, 1] reduction sum {
fsdp.unit @replicas on @hsdp shard_axes [] replicate_axes [0, 1] reduction sum {
  fsdp.param @r : tensor<1xf32>
}

// CHECK:      fsdp.unit @layer1 on @dp {
fsdp.unit @layer1 on @dp {
  fsdp.param @x : tensor<4xf32>
}

// CHECK:      fsdp.bucket @g gather @layer0[@norm, @wq, @wv, @table, @ids, @none, @codes] : bytes{{$}}
fsdp.bucket @g gather @layer0[@norm, @wq, @wv, @table, @ids, @none, @codes] : bytes
// Members of several units; neighbours of one unit share brackets.
// CHECK:      fsdp.bucket @r reduce @layer0[@norm, @wq], @layer1[@x], @layer0[@wv] : f32 align 1 group 7
fsdp.bucket @r reduce @layer0[@norm], @layer0[@wq], @layer1[@x], @layer0[@wv] : f32 align 1 group 7
// CHECK:      fsdp.bucket @h reduce @layers.0[@"a-b"] : bf16
fsdp.bucket @h reduce @layers.0[@"a-b"] : bf16

//===----------------------------------------------------------------------===//
// Unit ops
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @unit_ops(
// CHECK-SAME:    %[[N:[^:]+]]: tensor<3xf32> {fsdp.shard = @layer0::@norm}
// CHECK-SAME:    index {fsdp.uniform}
// CHECK-SAME:    -> (tensor<10xf32> {fsdp.full = @layer0::@norm}, tensor<8x3xbf16>, tensor<1xf32> {fsdp.shard_grad = @layer1::@x})
// CHECK-NEXT:    %[[W:.+]]:7 = fsdp.unshard @layer0(%[[N]], %{{.+}}) : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xbf16>, tensor<4x2xi64>, tensor<0x5xf64>, tensor<2xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xbf16>, tensor<16x2xi64>, tensor<0x5xbf16>, tensor<5xi8>)
// CHECK-NEXT:    %[[S:.+]] = fsdp.reduce_grads @layer1[@x](%{{.+}}) : (tensor<4xf16>) -> tensor<1xf32>
// CHECK-NEXT:    fsdp.reduce_grads @layer1[]() : () -> ()
// CHECK-NEXT:    return
// CANONICAL-LABEL: func.func @unit_ops(
// CANONICAL-NEXT:  fsdp.unshard
// CANONICAL-NEXT:  fsdp.reduce_grads @layer1[@x]
// CANONICAL-NEXT:  return
func.func @unit_ops(%n: tensor<3xf32> {fsdp.shard = @layer0::@norm}, %q: tensor<2x3xf32>, %v: tensor<3x2xf32>,
                    %t: tensor<4x2xbf16>, %i: tensor<4x2xi64>, %o: tensor<0x5xf64>, %c: tensor<2xi8>,
                    %g: tensor<4xf16> {fsdp.full_grad = @layer1::@x}, %k: index {fsdp.uniform})
    -> (tensor<10xf32> {fsdp.full = @layer0::@norm}, tensor<8x3xbf16>, tensor<1xf32> {fsdp.shard_grad = @layer1::@x}) {
  %w:7 = fsdp.unshard @layer0(%n, %q, %v, %t, %i, %o, %c)
      : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xbf16>, tensor<4x2xi64>, tensor<0x5xf64>, tensor<2xi8>)
      -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xbf16>, tensor<16x2xi64>, tensor<0x5xbf16>, tensor<5xi8>)
  %s = fsdp.reduce_grads @layer1[@x](%g) : (tensor<4xf16>) -> tensor<1xf32>
  fsdp.reduce_grads @layer1[]() : () -> ()
  return %w#0, %w#1, %s : tensor<10xf32>, tensor<8x3xbf16>, tensor<1xf32>
}

//===----------------------------------------------------------------------===//
// Value forms
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @gather(
// CHECK-NEXT:    %[[F:.+]] = fsdp.concat %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} into @g : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf64>, tensor<4x2xbf16>, tensor<4x2xi64>, tensor<0x5xf64>, tensor<2xi8>) -> tensor<768xi8>
// CHECK-NEXT:    %[[P:.+]] = fsdp.all_gather %[[F]] of @g : (tensor<768xi8>) -> tensor<4x768xi8>
// CHECK-NEXT:    %[[W:.+]]:7 = fsdp.unchunk %[[P]] of @g : (tensor<4x768xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xf32>, tensor<16x2xbf16>, tensor<16x2xi64>, tensor<0x5xbf16>, tensor<5xi8>)
// CANONICAL-LABEL: func.func @gather(
// CANONICAL-NEXT:  fsdp.concat
// CANONICAL-NEXT:  fsdp.all_gather
// CANONICAL-NEXT:  fsdp.unchunk
func.func @gather(%n: tensor<3xf32>, %q: tensor<2x3xf32>, %v: tensor<3x2xf64>,
                  %t: tensor<4x2xbf16>, %i: tensor<4x2xi64>, %o: tensor<0x5xf64>, %c: tensor<2xi8>) -> tensor<3x8xf32> {
  %f = fsdp.concat %n, %q, %v, %t, %i, %o, %c into @g
      : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf64>, tensor<4x2xbf16>, tensor<4x2xi64>, tensor<0x5xf64>, tensor<2xi8>) -> tensor<768xi8>
  %p = fsdp.all_gather %f of @g : (tensor<768xi8>) -> tensor<4x768xi8>
  %w:7 = fsdp.unchunk %p of @g : (tensor<4x768xi8>)
      -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xf32>, tensor<16x2xbf16>, tensor<16x2xi64>, tensor<0x5xbf16>, tensor<5xi8>)
  return %w#2 : tensor<3x8xf32>
}

// CHECK-LABEL: func.func @reduce(
// CHECK-NEXT:    %[[P:.+]] = fsdp.chunk_cat %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} into @r divide 2.000000e+00 : (tensor<10xf32>, tensor<8x3xbf16>, tensor<4xf16>, tensor<3x8xf64>) -> tensor<4x16xf32>
// CHECK-NEXT:    %[[F:.+]] = fsdp.reduce_scatter premul 2.500000e-01 accumulate f32 %[[P]] of @r : (tensor<4x16xf32>) -> tensor<16xf32>
// CHECK-NEXT:    %[[S:.+]]:4 = fsdp.split %[[F]] of @r divide 1.500000e+00 add(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<3xf32>, tensor<2x3xbf16>, tensor<1xf32>, tensor<3x2xf32>) : (tensor<16xf32>) -> (tensor<3xf32>, tensor<2x3xbf16>, tensor<1xf32>, tensor<3x2xf32>)
// CANONICAL-LABEL: func.func @reduce(
// CANONICAL-NEXT:  fsdp.chunk_cat
// CANONICAL-NEXT:  fsdp.reduce_scatter
// CANONICAL-NEXT:  fsdp.split
func.func @reduce(%n: tensor<10xf32>, %q: tensor<8x3xbf16>, %x: tensor<4xf16>, %v: tensor<3x8xf64>,
                  %on: tensor<3xf32>, %oq: tensor<2x3xbf16>, %ox: tensor<1xf32>, %ov: tensor<3x2xf32>) -> tensor<3xf32> {
  %p = fsdp.chunk_cat %n, %q, %x, %v into @r divide 2.0
      : (tensor<10xf32>, tensor<8x3xbf16>, tensor<4xf16>, tensor<3x8xf64>) -> tensor<4x16xf32>
  %f = fsdp.reduce_scatter premul 0.25 accumulate f32 %p of @r : (tensor<4x16xf32>) -> tensor<16xf32>
  %s:4 = fsdp.split %f of @r divide 1.5 add(%on, %oq, %ox, %ov : tensor<3xf32>, tensor<2x3xbf16>, tensor<1xf32>, tensor<3x2xf32>)
      : (tensor<16xf32>) -> (tensor<3xf32>, tensor<2x3xbf16>, tensor<1xf32>, tensor<3x2xf32>)
  return %s#0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @hybrid(
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter sum %{{.+}} of @h : (tensor<4x64xbf16>) -> tensor<64xbf16>
// CHECK-NEXT:    %[[A:.+]] = fsdp.all_reduce avg accumulate f32 %[[R]] of @h : (tensor<64xbf16>) -> tensor<64xbf16>
// CHECK-NEXT:    %[[B:.+]] = fsdp.all_reduce premul 5.000000e-01 %[[A]] of @h : (tensor<64xbf16>) -> tensor<64xbf16>
// CHECK-NEXT:    fsdp.split %[[B]] of @h : (tensor<64xbf16>) -> tensor<2xf32>
func.func @hybrid(%p: tensor<4x64xbf16>) -> tensor<2xf32> {
  %r = fsdp.reduce_scatter sum %p of @h : (tensor<4x64xbf16>) -> tensor<64xbf16>
  %a = fsdp.all_reduce avg accumulate f32 %r of @h : (tensor<64xbf16>) -> tensor<64xbf16>
  %b = fsdp.all_reduce premul 0.5 %a of @h : (tensor<64xbf16>) -> tensor<64xbf16>
  %s = fsdp.split %b of @h : (tensor<64xbf16>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}

//===----------------------------------------------------------------------===//
// Buffer forms
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @buffers(
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @h divide 2.000000e+00 outs(%{{.+}} : memref<4x64xbf16>) : (memref<8xf32>) -> ()
// CHECK-NEXT:    fsdp.reduce_scatter avg %{{.+}} of @h outs(%{{.+}} : memref<64xbf16>) : (memref<4x64xbf16>) -> ()
// CHECK-NEXT:    fsdp.all_reduce sum %{{.+}} of @h outs(%{{.+}} : memref<64xbf16>) : (memref<64xbf16>) -> ()
// CHECK-NEXT:    fsdp.split %{{.+}} of @h divide 3.000000e+00 add(%{{.+}} : memref<2xf32>) outs(%{{.+}} : memref<2xf32>) : (memref<64xbf16>) -> ()
// CHECK-NEXT:    fsdp.concat %{{.+}}, %{{.+}} into @g2 outs(%{{.+}} : memref<32xi8>) : (memref<1xf32>, memref<3xf32, strided<[2], offset: ?>>) -> ()
// CHECK-NEXT:    fsdp.all_gather %{{.+}} of @g2 outs(%{{.+}} : memref<4x32xi8>) : (memref<32xi8>) -> ()
// CHECK-NEXT:    fsdp.unchunk %{{.+}} of @g2 outs(%{{.+}}, %{{.+}} : memref<4xf32>, memref<10xf32>) : (memref<4x32xi8>) -> ()
// CHECK-NEXT:    return
fsdp.bucket @g2 gather @layer1[@x], @layer0[@norm] : bytes align 16
func.func @buffers(%g: memref<8xf32>, %p: memref<4x64xbf16>, %f: memref<64xbf16>, %s: memref<2xf32>,
                   %x: memref<1xf32>, %n: memref<3xf32, strided<[2], offset: ?>>, %flat: memref<32xi8>,
                   %packed: memref<4x32xi8>, %fx: memref<4xf32>, %fn: memref<10xf32>) {
  fsdp.chunk_cat %g into @h divide 2.0 outs(%p : memref<4x64xbf16>) : (memref<8xf32>) -> ()
  fsdp.reduce_scatter avg %p of @h outs(%f : memref<64xbf16>) : (memref<4x64xbf16>) -> ()
  fsdp.all_reduce sum %f of @h outs(%f : memref<64xbf16>) : (memref<64xbf16>) -> ()
  fsdp.split %f of @h divide 3.0 add(%s : memref<2xf32>) outs(%s : memref<2xf32>) : (memref<64xbf16>) -> ()
  fsdp.concat %x, %n into @g2 outs(%flat : memref<32xi8>) : (memref<1xf32>, memref<3xf32, strided<[2], offset: ?>>) -> ()
  fsdp.all_gather %flat of @g2 outs(%packed : memref<4x32xi8>) : (memref<32xi8>) -> ()
  fsdp.unchunk %packed of @g2 outs(%fx, %fn : memref<4xf32>, memref<10xf32>) : (memref<4x32xi8>) -> ()
  return
}
}
