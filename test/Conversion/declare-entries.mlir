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
// expected-note @below {{make the function private if no launcher calls it}}
// expected-warning @below {{function 'negative_scalar_result' cannot be an entry: result 0 is 'index', expected a tensor of static shape, of i1, f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f8E4M3FN, f8E5M2, f8E8M0FNU, f6E2M3FN, f6E3M2FN or f4E2M1FN}}
func.func @negative_scalar_result(%x: index) -> index {
  return %x : index
}

// CHECK-LABEL: func.func @negative_dynamic(
// CHECK-NOT:     fsdp.entry
// expected-note @below {{make the function private if no launcher calls it}}
// expected-warning @below {{function 'negative_dynamic' cannot be an entry: argument 0 is 'tensor<?xf32>', expected a scalar or a tensor of static shape}}
func.func @negative_dynamic(%x: tensor<?xf32>) {
  return
}

// CHECK-LABEL: func.func private @negative_private(
// CHECK-NOT:     fsdp.entry
func.func private @negative_private(%x: tensor<3xf32>) {
  return
}

// CHECK: llvm.mlir.global external constant @fsdprt_artefact_abi(3 : i32)
// CHECK: llvm.mlir.global external constant @fsdprt_artefact_manifest("
// CHECK-SAME: {\22abi\22:3,\22target\22:\22cpu\22,\22ranks\22:8,\22grid\22:[2,4],\22plan_hash\22:\22{{[0-9a-f]+}}\22,
// CHECK-SAME: \22units\22:[{\22name\22:\22u\22,\22shard_axes\22:[1],\22replicate_axes\22:[0]}],
// CHECK-SAME: \22entries\22:[{\22name\22:\22entry\22,
// CHECK-SAME: \22args\22:[{\22name\22:\22w\22,\22role\22:\22shard\22,\22param\22:\22w\22,\22unit\22:\22u\22,\22full_type\22:\22tensor<3x8xf32>\22,\22shard_dim\22:1,\22type\22:\22tensor<3x2xf32>\22},
// CHECK-SAME: {\22name\22:\22arg1\22,\22role\22:\22value\22,\22type\22:\22tensor<7xi32>\22}],
// CHECK-SAME: \22results\22:[{\22name\22:\22w\22,\22role\22:\22full\22,\22param\22:\22w\22,\22unit\22:\22u\22,\22full_type\22:\22tensor<3x8xbf16>\22,\22shard_dim\22:1,\22type\22:\22tensor<3x8xbf16>\22},
// CHECK-SAME: {\22name\22:\22result1\22,\22role\22:\22value\22,\22type\22:\22tensor<7xi32>\22}]},
// CHECK-SAME: {\22name\22:\22scalar\22,\22args\22:[{\22name\22:\22arg0\22,\22role\22:\22value\22,\22type\22:\22index\22,\22uniform\22:true},
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
func.func private @negative_index_on_another_grid() -> index {
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

// -----

// No tensor of an entry has the name of another. A parameter keeps its own; as an
// argument it is one tensor, in shards or full.
shard.grid @a(shape = 2)
fsdp.unit @u on @a {
  fsdp.param @x : tensor<4xf32>
  fsdp.param @x.grad : tensor<4xf32>
  fsdp.param @arg7 : tensor<4xf32>
  fsdp.param @"w#1" : tensor<4xf32>
  fsdp.param @w : tensor<4xf32>
}
// CHECK-LABEL: func.func @names(
func.func @names(%0: tensor<4xf32> {fsdp.full_grad = @u::@x}, %1: tensor<4xf32> {fsdp.full_grad = @u::@x},
                 %2: tensor<2xf32> {fsdp.shard = @u::@x.grad}, %3: tensor<2xf32> {fsdp.shard_grad = @u::@x.grad},
                 %4: tensor<2xf32> {fsdp.shard = @u::@w}, %5: tensor<4xf32> {fsdp.full = @u::@w},
                 %6: tensor<2xf32> {fsdp.shard = @u::@w}, %7: tensor<4xf32>, %8: tensor<4xf32>)
    -> (tensor<2xf32> {fsdp.shard = @u::@w}, tensor<4xf32> {fsdp.full = @u::@w}, tensor<2xf32> {fsdp.shard_grad = @u::@x}) {
  return %4, %5, %2 : tensor<2xf32>, tensor<4xf32>, tensor<2xf32>
}
// CHECK:      \22args\22:[{\22name\22:\22x.grad#1\22,\22role\22:\22full_grad\22,\22param\22:\22x\22
// CHECK-SAME: {\22name\22:\22x.grad#2\22,\22role\22:\22full_grad\22,\22param\22:\22x\22
// CHECK-SAME: {\22name\22:\22x.grad\22,\22role\22:\22shard\22,\22param\22:\22x.grad\22
// CHECK-SAME: {\22name\22:\22x.grad.grad\22,\22role\22:\22shard_grad\22,\22param\22:\22x.grad\22
// CHECK-SAME: {\22name\22:\22w\22,\22role\22:\22shard\22
// CHECK-SAME: {\22name\22:\22w\22,\22role\22:\22full\22
// CHECK-SAME: {\22name\22:\22w#2\22,\22role\22:\22shard\22
// CHECK-SAME: {\22name\22:\22arg7#1\22,\22role\22:\22value\22
// CHECK-SAME: {\22name\22:\22arg8\22,\22role\22:\22value\22
// CHECK-SAME: \22results\22:[{\22name\22:\22w\22,\22role\22:\22shard\22
// CHECK-SAME: {\22name\22:\22w#2\22,\22role\22:\22full\22
// CHECK-SAME: {\22name\22:\22x.grad#1\22,\22role\22:\22shard_grad\22

// -----

shard.grid @a(shape = 4)
fsdp.unit @u on @a {
  fsdp.param @w : tensor<8x3xf32>
}
// expected-note @below {{make the function private if no launcher calls it}}
// expected-error @below {{function 'negative_marked' cannot be an entry: argument 1 is 'tensor<4xindex>', expected a scalar or a tensor of static shape}}
func.func @negative_marked(%w: tensor<2x3xf32> {fsdp.shard = @u::@w}, %i: tensor<4xindex>) {
  return
}
// expected-note @below {{make the function private if no launcher calls it}}
// expected-error @below {{function 'negative_marked_result' cannot be an entry: result 1 is 'f32', expected a tensor of static shape}}
func.func @negative_marked_result(%w: tensor<2x3xf32>, %x: f32) -> (tensor<2x3xf32> {fsdp.shard = @u::@w}, f32) {
  return %w, %x : tensor<2x3xf32>, f32
}
// expected-note @below {{make the function private if no launcher calls it}}
// expected-error @below {{function 'negative_uniform' cannot be an entry: argument 0 is 'i5'}}
func.func @negative_uniform(%x: i5 {fsdp.uniform}) {
  return
}

// -----

// Shards differ between ranks, whatever is promised; not if one rank has all.
shard.grid @a(shape = 2x1)
fsdp.unit @u on @a shard_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.unit @v on @a shard_axes [1] {
  fsdp.param @x : tensor<8x3xf32>
}
func.func @uniform_shard_of_one_rank(%x: tensor<8x3xf32> {fsdp.shard = @v::@x, fsdp.uniform}) {
  return
}
// expected-error @below {{says that argument 0 is the shard of @u::@w and fsdp.uniform, but each of 2 ranks has another shard}}
func.func @negative_uniform_shard(%w: tensor<4x3xf32> {fsdp.shard = @u::@w, fsdp.uniform}) {
  return
}

// -----

// The format of files has this name for itself. A gradient is called
// __metadata__.grad there.

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  // expected-error @below {{'__metadata__' is result 0 of entry 'read', but a safetensors file has no tensor of this name: expected another one}}
  fsdp.param @__metadata__ : tensor<4xf32>
}
func.func @reduce(%g: tensor<4xf32> {fsdp.full_grad = @u::@__metadata__}) -> tensor<4xf32> {
  return %g : tensor<4xf32>
}
func.func @read(%a: tensor<4xf32>) -> (tensor<4xf32> {fsdp.full = @u::@__metadata__}) {
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{function 'step@2' cannot be an entry: a linker does not take the character '@' in its name}}
func.func @"step@2"() {
  return
}
// expected-error @below {{cannot be an entry: a linker does not take the character zero in its name}}
func.func @"step\002"() {
  return
}
// expected-error @below {{function '' cannot be an entry: it has no name}}
func.func @""() {
  return
}
func.func private @"no entry@all"() {
  return
}
