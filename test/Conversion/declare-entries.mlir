// RUN: fsdp-opt %s --fsdp-declare-entries --split-input-file --verify-diagnostics | FileCheck %s

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<3x8xf32> shard_dim 1 precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @b gather @u[@w] : bf16

// CHECK-LABEL: func.func @entry(
// CHECK-SAME:      tensor<3x2xf32> {bufferization.writable = false, fsdp.shard = @u::@w}
// CHECK-SAME:      attributes {fsdp.entry = 2 : i64}
func.func @entry(%w: tensor<3x2xf32> {fsdp.shard = @u::@w}, %x: tensor<7xi32>) -> (tensor<3x8xbf16> {fsdp.full = @u::@w}, tensor<7xi32>) {
  %f = fsdp.concat %w into @b : (tensor<3x2xf32>) -> tensor<64xbf16>
  %g = fsdp.all_gather %f of @b : (tensor<64xbf16>) -> tensor<4x64xbf16>
  %r = fsdp.unchunk %g of @b : (tensor<4x64xbf16>) -> tensor<3x8xbf16>
  return %r, %x : tensor<3x8xbf16>, tensor<7xi32>
}

// CHECK-LABEL: func.func @scalar(
// CHECK-SAME:      %{{.+}}: index {fsdp.uniform}, %{{.+}}: i1) attributes {fsdp.entry = 2 : i64}
func.func @scalar(%x: index {fsdp.uniform}, %y: i1) {
  return
}

// CHECK-LABEL: func.func @negative_scalar_result(
// CHECK-NOT:     fsdp.entry
func.func @negative_scalar_result(%x: index) -> index {
  return %x : index
}

// CHECK-LABEL: func.func @negative_dynamic(
// CHECK-NOT:     fsdp.entry
func.func @negative_dynamic(%x: tensor<?xf32>) {
  return
}

// CHECK-LABEL: func.func private @negative_private(
// CHECK-NOT:     fsdp.entry
func.func private @negative_private(%x: tensor<3xf32>) {
  return
}

// CHECK: llvm.mlir.global external constant @fsdprt_artefact_abi(1 : i32)
// CHECK: llvm.mlir.global external constant @fsdprt_artefact_manifest("
// CHECK-SAME: {\22abi\22:1,\22target\22:\22cpu\22,\22ranks\22:8,\22grid\22:[2,4],\22plan_hash\22:\22{{[0-9a-f]+}}\22,
// CHECK-SAME: \22units\22:[{\22name\22:\22u\22,\22shard_axes\22:[1],\22replicate_axes\22:[0]}],
// CHECK-SAME: \22entries\22:[{\22name\22:\22entry\22,
// CHECK-SAME: \22args\22:[{\22name\22:\22w\22,\22role\22:\22shard\22,\22unit\22:\22u\22,\22full_type\22:\22tensor<3x8xf32>\22,\22shard_dim\22:1,\22type\22:\22tensor<3x2xf32>\22},
// CHECK-SAME: {\22name\22:\22arg1\22,\22role\22:\22value\22,\22type\22:\22tensor<7xi32>\22}],
// CHECK-SAME: \22results\22:[{\22name\22:\22w\22,\22role\22:\22full\22,\22unit\22:\22u\22,\22full_type\22:\22tensor<3x8xbf16>\22,\22shard_dim\22:1,\22type\22:\22tensor<3x8xbf16>\22},
// CHECK-SAME: {\22name\22:\22result1\22,\22role\22:\22value\22,\22type\22:\22tensor<7xi32>\22}]},
// CHECK-SAME: {\22name\22:\22scalar\22,\22args\22:[{\22name\22:\22arg0\22,\22role\22:\22value\22,\22type\22:\22index\22},
// CHECK-SAME: {\22name\22:\22arg1\22,\22role\22:\22value\22,\22type\22:\22i1\22}],\22results\22:[]}],
// CHECK-SAME: \22buckets\22:[{
// CHECK-SAME: \22name\22:\22b\22
// CHECK-SAME: \00")

// -----

shard.grid @a(shape = 4)
shard.grid @b(shape = 2)
// expected-note @below {{the other one is used here}}
fsdp.unit @u on @a {
  fsdp.param @w : tensor<3x8xf32>
}
// expected-error @below {{is for ranks in a grid of 2, but the module has another grid: expected one}}
fsdp.unit @v on @b {
  fsdp.param @x : tensor<3x8xf32>
}

// -----

// The runtime knows the rank's place on one grid.
shard.grid @a(shape = 4)
shard.grid @b(shape = 2x2)
// expected-note @below {{the other one is used here}}
fsdp.unit @u on @a {
  fsdp.param @w : tensor<3x8xf32>
}
func.func @negative_index_on_another_grid() -> index {
  // expected-error @below {{is for ranks in a grid of 2x2, but the module has another grid: expected one}}
  %i = shard.process_multi_index on @b axes = [1] : index
  return %i : index
}

// -----

shard.grid @a(shape = 4)
fsdp.unit @u on @a {
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{says that argument 0 is the shard of @u::@w, expected the shape of 'tensor<2x3xf32>', but it is 'tensor<8x3xf32>'}}
func.func @negative_shape(%w: tensor<8x3xf32> {fsdp.shard = @u::@w}) {
  return
}

// -----

shard.grid @a(shape = 4)
fsdp.unit @u on @a {
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{names the unknown parameter @u::@x on result 0}}
func.func @negative_unknown(%w: tensor<2x3xf32>) -> (tensor<2x3xf32> {fsdp.shard = @u::@x}) {
  return %w : tensor<2x3xf32>
}

// -----

// expected-error @below {{has the name 'fsdprt_artefact_manifest', which belongs to the artefact}}
func.func @fsdprt_artefact_manifest() {
  return
}
