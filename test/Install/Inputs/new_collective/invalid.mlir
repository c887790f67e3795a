// The shape that the bucket's layout asks for.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w] : f32
func.func @negative_shape(%g: tensor<4x16xf32>) {
  // expected-error @below {{has the packed tensor 'tensor<4x16xf32>' for bucket @b, expected the shape and element type of 'tensor<4x32xf32>'}}
  %r = test.broadcast_rows %g of @b : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

// One form.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @negative_mixed_forms(%g: tensor<4x32xf32>, %o: memref<4x32xf32>) {
  // expected-error @below {{has the type 'tensor<4x32xf32>', expected a memref beside outs}}
  test.broadcast_rows %g of @b outs(%o : memref<4x32xf32>) : (tensor<4x32xf32>) -> ()
  return
}

// -----

// Ranks of one replica group that do not all come to it.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @negative_replica_decides(%g: tensor<4x32xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %replica = shard.process_multi_index on @hsdp axes = [0] : index
  %first = arith.cmpi eq, %replica, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{of bucket 'b' is under control flow that depends on the rank's coordinate on axis 0 of grid 'hsdp', expected the same on all ranks of its group, axis 0 of grid 'hsdp'}}
    %r = test.broadcast_rows %g of @b : (tensor<4x32xf32>) -> tensor<4x32xf32>
  }
  return
}

// -----

// The ranks that meet differ on the replicate axis alone.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @shard_decides(%g: tensor<4x32xf32>) {
  %c0 = arith.constant 0 : index
  %shard = shard.process_multi_index on @hsdp axes = [1] : index
  %first = arith.cmpi eq, %shard, %c0 : index
  scf.if %first {
    %r = test.broadcast_rows %g of @b : (tensor<4x32xf32>) -> tensor<4x32xf32>
  }
  return
}

// -----

// A kind that reduces, and nothing that says how.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @r reduce @u[@w] : f32
func.func @negative_no_reduction(%f: tensor<32xf32>) {
  // expected-error @below {{on bucket @r reduces and has no reduction, expected one}}
  %r = test.bare_reduce %f of @r : (tensor<32xf32>) -> tensor<32xf32>
  return
}
