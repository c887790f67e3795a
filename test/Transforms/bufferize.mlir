// RUN: fsdp-opt %s --split-input-file --pass-pipeline='builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map})' | FileCheck %s

// Each op gets a new buffer per result and reads its operands.
shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @norm : tensor<10xf32>
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.bucket @g gather @u[@norm, @wq] : f32
fsdp.bucket @r reduce @u[@norm, @wq] : f32

// CHECK-LABEL: func.func @gather(
// CHECK-SAME:      %[[N:.+]]: memref<3xf32>, %[[Q:.+]]: memref<2x3xf32>)
// CHECK:         %[[FLAT:.+]] = memref.alloc() {{.*}}: memref<64xf32>
// CHECK:         fsdp.concat %[[N]], %[[Q]] into @g outs(%[[FLAT]] : memref<64xf32>) : (memref<3xf32>, memref<2x3xf32>) -> ()
// CHECK:         %[[ROWS:.+]] = memref.alloc() {{.*}}: memref<4x64xf32>
// CHECK:         fsdp.all_gather %[[FLAT]] of @g outs(%[[ROWS]] : memref<4x64xf32>) : (memref<64xf32>) -> ()
// CHECK:         %[[FN:.+]] = memref.alloc() {{.*}}: memref<10xf32>
// CHECK:         %[[FQ:.+]] = memref.alloc() {{.*}}: memref<8x3xbf16>
// CHECK:         fsdp.unchunk %[[ROWS]] of @g outs(%[[FN]], %[[FQ]] : memref<10xf32>, memref<8x3xbf16>) : (memref<4x64xf32>) -> ()
// CHECK:         return %[[FN]], %[[FQ]]
func.func @gather(%n: tensor<3xf32>, %q: tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>) {
  %f = fsdp.concat %n, %q into @g : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<64xf32>
  %g = fsdp.all_gather %f of @g : (tensor<64xf32>) -> tensor<4x64xf32>
  %w:2 = fsdp.unchunk %g of @g : (tensor<4x64xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
}

// Attributes stay, and an added shard is read.
// CHECK-LABEL: func.func @reduce(
// CHECK-SAME:      %[[N:.+]]: memref<10xf32>, %[[Q:.+]]: memref<8x3xbf16>, %[[ON:.+]]: memref<3xf32>, %[[OQ:.+]]: memref<2x3xf32>)
// CHECK:         fsdp.chunk_cat %[[N]], %[[Q]] into @r divide 2.{{.*}} outs(%[[ROWS:.+]] : memref<4x64xf32>)
// CHECK:         fsdp.reduce_scatter premul 2.5{{.*}} accumulate f32 %[[ROWS]] of @r outs(%[[FLAT:.+]] : memref<64xf32>)
// CHECK:         fsdp.all_reduce avg %[[FLAT]] of @r outs(%[[SUM:.+]] : memref<64xf32>)
// CHECK:         fsdp.split %[[SUM]] of @r divide 3.{{.*}} add(%[[ON]], %[[OQ]] : memref<3xf32>, memref<2x3xf32>) outs(%{{.+}}, %{{.+}} : memref<3xf32>, memref<2x3xf32>)
func.func @reduce(%n: tensor<10xf32>, %q: tensor<8x3xbf16>, %on: tensor<3xf32>, %oq: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>) {
  %b = fsdp.chunk_cat %n, %q into @r divide 2.0 : (tensor<10xf32>, tensor<8x3xbf16>) -> tensor<4x64xf32>
  %r = fsdp.reduce_scatter premul 2.5 accumulate f32 %b of @r : (tensor<4x64xf32>) -> tensor<64xf32>
  %a = fsdp.all_reduce avg %r of @r : (tensor<64xf32>) -> tensor<64xf32>
  %s:2 = fsdp.split %a of @r divide 3.0 add(%on, %oq : tensor<3xf32>, tensor<2x3xf32>) : (tensor<64xf32>) -> (tensor<3xf32>, tensor<2x3xf32>)
  return %s#0, %s#1 : tensor<3xf32>, tensor<2x3xf32>
}

// -----

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// The operand is read: a write to its tensor goes to a copy.
// CHECK-LABEL: func.func @operand_is_read(
// CHECK-SAME:      %[[A:[^:]+]]: memref<2x3xf32>,
// CHECK:         %[[COPY:.+]] = memref.alloc() {{.*}}: memref<2x3xf32>
// CHECK-NOT:     memref.copy
// CHECK:         linalg.fill ins(%{{.+}} : f32) outs(%[[COPY]] : memref<2x3xf32>)
// CHECK:         fsdp.concat %[[A]] into @b
func.func @operand_is_read(%a: tensor<2x3xf32>, %x: f32) -> (tensor<32xf32>, tensor<2x3xf32>) {
  %z = linalg.fill ins(%x : f32) outs(%a : tensor<2x3xf32>) -> tensor<2x3xf32>
  %f = fsdp.concat %a into @b : (tensor<2x3xf32>) -> tensor<32xf32>
  return %f, %z : tensor<32xf32>, tensor<2x3xf32>
}

// A view with gaps is copied: the lowered op sees nothing but a pointer.
// CHECK-LABEL: func.func @strided_view(
// CHECK:         %[[VIEW:.+]] = memref.subview
// CHECK:         %[[DENSE:.+]] = memref.alloc() {{.*}}: memref<2x3xf32>
// CHECK:         memref.copy %[[VIEW]], %[[DENSE]]
// CHECK:         fsdp.concat %[[DENSE]] into @b
func.func @strided_view(%a: tensor<2x5xf32>) -> tensor<32xf32> {
  %v = tensor.extract_slice %a[0, 1] [2, 3] [1, 1] : tensor<2x5xf32> to tensor<2x3xf32>
  %f = fsdp.concat %v into @b : (tensor<2x3xf32>) -> tensor<32xf32>
  return %f : tensor<32xf32>
}

// What our ops allocate is dense, also where a branch hands it on.
// CHECK-LABEL: func.func @branch(
// CHECK:         scf.if %{{.+}} -> (memref<32xf32>)
func.func @branch(%c: i1, %a: tensor<2x3xf32>) -> tensor<32xf32> {
  %r = scf.if %c -> tensor<32xf32> {
    %x = fsdp.concat %a into @b : (tensor<2x3xf32>) -> tensor<32xf32>
    scf.yield %x : tensor<32xf32>
  } else {
    %y = fsdp.concat %a into @b : (tensor<2x3xf32>) -> tensor<32xf32>
    scf.yield %y : tensor<32xf32>
  }
  return %r : tensor<32xf32>
}
