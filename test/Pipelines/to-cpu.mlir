// Lifetimes and copies of the buffered form, which the pipeline prints on its
// way, and what comes out at its end.
//
// RUN: fsdp-opt %s --fsdp-to-cpu --mlir-disable-threading --mlir-print-ir-before=convert-fsdp-to-tiles 2>&1 >/dev/null | FileCheck %s --check-prefix=BUFFERED
// RUN: fsdp-opt %s --fsdp-to-cpu | FileCheck %s

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp precision <param = bf16, reduce = f32> shard_axes [1] replicate_axes [0] {
  fsdp.param @norm : tensor<10xf32> precision <param = f32, reduce = f32, grad = f32>
  fsdp.param @wq : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@norm, @wq] : bytes
fsdp.bucket @r reduce @u[@norm, @wq] : f32

// One buffer, the gathered one; the results are written where they belong, and
// a buffer dies at its last use.
// BUFFERED-LABEL: func.func @forward(
// BUFFERED-SAME:      %[[N:[^:]+]]: memref<3xf32> {{{[^}]*}}}, %[[Q:[^:]+]]: memref<2x3xf32> {{{[^}]*}}}, %[[FN:[^:]+]]: memref<10xf32> {{{[^}]*}}}, %[[FQ:[^:]+]]: memref<8x3xbf16>
// BUFFERED-NEXT:    %[[G:.+]] = memref.alloc() {alignment = 128 : i64} : memref<4x256xi8>
// BUFFERED-NEXT:    %[[R:.+]] = shard.process_multi_index on @hsdp axes = [1]
// BUFFERED-NEXT:    %[[ROW:.+]] = memref.subview %[[G]][%[[R]], 0] [1, 256] [1, 1]
// BUFFERED-NEXT:    fsdp.concat %[[N]], %[[Q]] into @g outs(%[[ROW]]
// BUFFERED-NEXT:    fsdp.all_gather %[[ROW]] of @g outs(%[[G]]
// BUFFERED-NEXT:    fsdp.unchunk %[[G]] of @g outs(%[[FN]], %[[FQ]]
// BUFFERED-NEXT:    memref.dealloc %[[G]]
// BUFFERED-NEXT:    return
func.func @forward(%n: tensor<3xf32> {fsdp.shard = @u::@norm}, %q: tensor<2x3xf32> {fsdp.shard = @u::@wq})
    -> (tensor<10xf32> {fsdp.full = @u::@norm}, tensor<8x3xbf16> {fsdp.full = @u::@wq}) {
  %f = fsdp.concat %n, %q into @g : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<256xi8>
  %g = fsdp.all_gather %f of @g : (tensor<256xi8>) -> tensor<4x256xi8>
  %w:2 = fsdp.unchunk %g of @g : (tensor<4x256xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
}

// At most two buffers live at once.
// BUFFERED-LABEL: func.func @backward(
// BUFFERED-SAME:      %[[GN:[^:]+]]: memref<10xf32> {{{[^}]*}}}, %[[GQ:[^:]+]]: memref<8x3xbf16> {{{[^}]*}}}, %[[SN:[^:]+]]: memref<3xf32> {{{[^}]*}}}, %[[SQ:[^:]+]]: memref<2x3xf32>
// BUFFERED-NEXT:    %[[B:.+]] = memref.alloc() {alignment = 128 : i64} : memref<4x64xf32>
// BUFFERED-NEXT:    fsdp.chunk_cat %[[GN]], %[[GQ]] into @r outs(%[[B]]
// BUFFERED-NEXT:    %[[F:.+]] = memref.alloc() {alignment = 128 : i64} : memref<64xf32>
// BUFFERED-NEXT:    fsdp.reduce_scatter avg %[[B]] of @r outs(%[[F]]
// BUFFERED-NEXT:    memref.dealloc %[[B]]
// BUFFERED-NEXT:    %[[A:.+]] = memref.alloc() {alignment = 128 : i64} : memref<64xf32>
// BUFFERED-NEXT:    fsdp.all_reduce avg %[[F]] of @r outs(%[[A]]
// BUFFERED-NEXT:    memref.dealloc %[[F]]
// BUFFERED-NEXT:    fsdp.split %[[A]] of @r outs(%[[SN]], %[[SQ]]
// BUFFERED-NEXT:    memref.dealloc %[[A]]
// BUFFERED-NEXT:    return
func.func @backward(%gn: tensor<10xf32> {fsdp.full_grad = @u::@norm}, %gq: tensor<8x3xbf16> {fsdp.full_grad = @u::@wq})
    -> (tensor<3xf32> {fsdp.shard_grad = @u::@norm}, tensor<2x3xf32> {fsdp.shard_grad = @u::@wq}) {
  %b = fsdp.chunk_cat %gn, %gq into @r : (tensor<10xf32>, tensor<8x3xbf16>) -> tensor<4x64xf32>
  %r = fsdp.reduce_scatter avg %b of @r : (tensor<4x64xf32>) -> tensor<64xf32>
  %a = fsdp.all_reduce avg %r of @r : (tensor<64xf32>) -> tensor<64xf32>
  %s:2 = fsdp.split %a of @r : (tensor<64xf32>) -> (tensor<3xf32>, tensor<2x3xf32>)
  return %s#0, %s#1 : tensor<3xf32>, tensor<2x3xf32>
}

// Ordinary ops around ours: control flow, a loop over the ranks' number, dtypes
// that the machine does not have.
func.func @ordinary(%a: tensor<4x6xbf16>, %b: tensor<4x6xbf16>) -> (tensor<4x6xbf16>, tensor<6x4xf32>) {
  %rank = shard.process_linear_index on @hsdp : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sum = scf.for %i = %zero to %rank step %one iter_args(%acc = %a) -> tensor<4x6xbf16> {
    %next = arith.addf %acc, %b : tensor<4x6xbf16>
    scf.yield %next : tensor<4x6xbf16>
  }
  %e = math.exp %sum : tensor<4x6xbf16>
  %x = arith.extf %e : tensor<4x6xbf16> to tensor<4x6xf32>
  %init = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%init : tensor<6x4xf32>) permutation = [1, 0]
  return %e, %t : tensor<4x6xbf16>, tensor<6x4xf32>
}

// CHECK-NOT: fsdp.
// CHECK-NOT: shard.
// CHECK-NOT: unrealized_conversion_cast
// CHECK-DAG: llvm.func @fsdprt_entry_forward(%{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr) -> i32
// CHECK-DAG: llvm.func @fsdprt_entry_backward(
// CHECK-DAG: llvm.func @fsdprt_entry_ordinary(
// CHECK-DAG: llvm.mlir.global external constant @fsdprt_artefact_abi(3 : i32)
// CHECK-DAG: llvm.mlir.global external constant @fsdprt_artefact_manifest("{{{.*}}\00")
