// One violation per check, in the stage that forbids it.
//
// RUN: split-file %s %t
// RUN: fsdp-opt %t/input.mlir --fsdp-verify-stage --split-input-file --verify-diagnostics
// RUN: fsdp-opt %t/declared.mlir --fsdp-verify-stage=stage=declared --split-input-file --verify-diagnostics
// RUN: fsdp-opt %t/explicit.mlir --fsdp-verify-stage=stage=explicit --split-input-file --verify-diagnostics
// RUN: fsdp-opt %t/packed.mlir --fsdp-verify-stage=stage=packed --split-input-file --verify-diagnostics
// RUN: fsdp-opt %t/buffered.mlir --fsdp-verify-stage=stage=buffered --split-input-file --verify-diagnostics

//--- input.mlir
// negative_name_in_two_units
shard.grid @dp(shape = 4)
fsdp.unit @a on @dp {
  // expected-note @below {{declared here first}}
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.unit @b on @dp {
  // expected-error @below {{parameter 'w' is declared in two units, 'a' and 'b'}}
  fsdp.param @w : tensor<4xf32>
}

// -----
// negative_buffer_form
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<8x3xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%g: memref<8x3xf32>, %b: memref<4x32xf32>) {
  // expected-error @below {{'fsdp.chunk_cat' op on bucket 'b' is not allowed at stage input}}
  // expected-note @below {{buffer forms come later}}
  fsdp.chunk_cat %g into @b outs(%b : memref<4x32xf32>) : (memref<8x3xf32>) -> ()
  return
}

// -----
// negative_unknown_parameter
// expected-error @below {{argument 0 is 'fsdp.shard' of the unknown parameter @u::@w}}
func.func private @f(tensor<2x3xf32> {fsdp.shard = @u::@w})

// -----
// negative_shape_of_shard
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{argument 1 is 'tensor<8x3xf32>', but 'fsdp.shard' of @u::@w expects the shape of 'tensor<2x3xf32>' and a floating-point dtype}}
func.func private @f(i32, tensor<8x3xf32> {fsdp.shard = @u::@w})

// -----
// negative_shape_of_full
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{result 0 is 'tensor<?x3xf32>', but 'fsdp.full' of @u::@w expects the shape of 'tensor<8x3xf32>'}}
func.func private @f() -> (tensor<?x3xf32> {fsdp.full = @u::@w})

// -----
// negative_shape_of_shard_grad
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{result 0 is 'memref<3x3xf32>', but 'fsdp.shard_grad' of @u::@w expects the shape of 'tensor<2x3xf32>'}}
func.func private @f() -> (memref<3x3xf32> {fsdp.shard_grad = @u::@w})

// -----
// negative_dtype_of_full_grad
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<8x3xf32>
}
// expected-error @below {{argument 0 is 'tensor<8x3xi32>', but 'fsdp.full_grad' of @u::@w expects the shape of 'tensor<8x3xf32>' and a floating-point dtype}}
func.func private @f(tensor<8x3xi32> {fsdp.full_grad = @u::@w})

// -----
// negative_not_a_tensor
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<4xf32>
}
// expected-error @below {{argument 0 is 'vector<4xf32>', but 'fsdp.full' of @u::@w expects the shape of 'tensor<4xf32>'}}
func.func private @f(vector<4xf32> {fsdp.full = @u::@w})

// -----
// negative_dtype_of_opaque
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @ids : tensor<8xi64> frozen
}
// expected-error @below {{argument 0 is 'tensor<2xi32>', but 'fsdp.shard' of @u::@ids expects the shape of 'tensor<2xi64>' and that dtype}}
func.func private @f(tensor<2xi32> {fsdp.shard = @u::@ids})

// -----
// negative_gradient_of_opaque
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @ids : tensor<8xi64> frozen
}
// expected-error @below {{argument 0 is 'tensor<8xi64>', but 'fsdp.full_grad' of @u::@ids expects a parameter with a gradient, not storage of 'i64'}}
func.func private @f(tensor<8xi64> {fsdp.full_grad = @u::@ids})

// -----
// negative_two_roles
shard.grid @dp(shape = 1)
fsdp.unit @u on @dp { fsdp.param @w : tensor<8x3xf32> }
// expected-error @below {{argument 0 is both 'fsdp.shard' and 'fsdp.full', expected one of them}}
func.func private @f(tensor<8x3xf32> {fsdp.shard = @u::@w, fsdp.full = @u::@w})

//--- declared.mlir
// negative_bucket_at_declared
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<8x3xf32> }
// expected-error @below {{'fsdp.bucket' op on bucket 'b' is not allowed at stage declared}}
// expected-note @below {{buckets come later, from fsdp-expand-units}}
fsdp.bucket @b reduce @u[@w] : f32

// -----
// negative_collective_at_declared
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<8x3xf32> }
// expected-error @below {{'fsdp.bucket' op on bucket 'b' is not allowed at stage declared}}
// expected-note @below {{buckets come later}}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%b: tensor<4x32xf32>) -> tensor<32xf32> {
  // expected-error @below {{'fsdp.reduce_scatter' op on bucket 'b' is not allowed at stage declared}}
  // expected-note @below {{buckets come later}}
  %r = fsdp.reduce_scatter avg %b of @b : (tensor<4x32xf32>) -> tensor<32xf32>
  return %r : tensor<32xf32>
}

//--- explicit.mlir
// negative_unit_op_at_explicit
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
func.func @f(%s: tensor<2x3xf32>, %g: tensor<8x3xf32>) -> (tensor<8x3xf32>, tensor<2x3xf32>) {
  // expected-error @below {{'fsdp.unshard' op on unit 'u' is not allowed at stage explicit}}
  // expected-note @below {{fsdp-expand-units should have replaced it}}
  %w = fsdp.unshard @u(%s) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  // expected-error @below {{'fsdp.reduce_grads' op on unit 'u' is not allowed at stage explicit}}
  // expected-note @below {{fsdp-expand-units should have replaced it}}
  %r = fsdp.reduce_grads @u[@w](%g) : (tensor<8x3xf32>) -> tensor<2x3xf32>
  return %w, %r : tensor<8x3xf32>, tensor<2x3xf32>
}

// -----
// negative_precision_not_written
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32, grad = f32> {
  // expected-error @below {{parameter 'a' of unit 'u' has no param dtype, expected <param, reduce, grad> at stage explicit}}
  // expected-note @below {{fsdp-resolve-precision writes it}}
  fsdp.param @a : tensor<8x3xf32>
  // expected-error @below {{parameter 'b' of unit 'u' has no reduce dtype, expected <param, reduce, grad> at stage explicit}}
  // expected-note @below {{fsdp-resolve-precision writes it}}
  fsdp.param @b : tensor<8x3xf32> precision <param = bf16, grad = f32>
  // expected-error @below {{parameter 'c' of unit 'u' has no param dtype, expected <param> at stage explicit}}
  // expected-note @below {{fsdp-resolve-precision writes it}}
  fsdp.param @c : tensor<8xi64> frozen
  // expected-error @below {{parameter 'd' of unit 'u' has a reduce dtype, expected <param> at stage explicit}}
  // expected-note @below {{fsdp-resolve-precision writes it}}
  fsdp.param @d : tensor<8xi64> precision <param = i64, reduce = f32> frozen
}

// -----
// negative_two_members, negative_other_reduce_dtype
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
  // expected-note @below {{parameter declared here}}
  fsdp.param @b : tensor<8x3xf32> precision <param = bf16, reduce = bf16, grad = f32>
}
// expected-error @below {{bucket 'r' has 2 members, expected 1 at stage explicit}}
// expected-error @below {{bucket 'r' reduces in 'f32', but its member 'b' has the reduce dtype 'bf16'}}
fsdp.bucket @r reduce @u[@a, @b] : f32

// -----
// negative_fused_operand, negative_fused_result
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @r reduce @u[@w] : f32
func.func @f(%g: tensor<8x3xbf16>) -> tensor<2x3xbf16> {
  // expected-error @below {{casts member 'w' of bucket 'r' between 'tensor<8x3xbf16>' and the wire dtype 'f32', but at stage explicit casts are ops of their own}}
  %b = fsdp.chunk_cat %g into @r : (tensor<8x3xbf16>) -> tensor<4x32xf32>
  %r = fsdp.reduce_scatter avg %b of @r : (tensor<4x32xf32>) -> tensor<32xf32>
  // expected-error @below {{casts member 'w' of bucket 'r' between 'tensor<2x3xbf16>' and the wire dtype 'f32'}}
  %s = fsdp.split %r of @r : (tensor<32xf32>) -> tensor<2x3xbf16>
  return %s : tensor<2x3xbf16>
}

//--- packed.mlir
// negative_cast_before_local_op, negative_cast_after_local_op
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @r reduce @u[@w] : f32
func.func @f(%g: tensor<8x3xbf16>, %r: tensor<32xf32>) -> (tensor<4x32xf32>, tensor<8x3xf32>, tensor<2x3xbf16>) {
  // expected-note @below {{fsdp-fuse-casts would fold this cast}}
  %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  // expected-error @below {{'fsdp.chunk_cat' op is beside 'arith.extf' of member 'w' of bucket 'r', but at stage packed no cast is left that can be folded into a local op}}
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  // expected-error @below {{'fsdp.split' op is beside 'arith.truncf' of member 'w' of bucket 'r'}}
  %s = fsdp.split %r of @r : (tensor<32xf32>) -> tensor<2x3xf32>
  // expected-note @below {{fsdp-fuse-casts would fold this cast}}
  %t = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %b, %w, %t : tensor<4x32xf32>, tensor<8x3xf32>, tensor<2x3xbf16>
}

// -----
// negative_sum_of_two_buckets
shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @a reduce @u[@w] : f32
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%x: tensor<4x32xf32>, %y: tensor<4x32xf32>, %z: tensor<32xf32>) -> tensor<32xf32> {
  %0 = fsdp.reduce_scatter avg %x of @a : (tensor<4x32xf32>) -> tensor<32xf32>
  %1 = fsdp.reduce_scatter avg %y of @b : (tensor<4x32xf32>) -> tensor<32xf32>
  %2 = arith.addf %0, %z : tensor<32xf32>
  %3 = fsdp.all_reduce avg %1 of @b : (tensor<32xf32>) -> tensor<32xf32>
  // expected-error @below {{'arith.addf' op adds flat shards of two buckets, @a and @b, expected a partial sum of the same bucket}}
  %4 = arith.addf %2, %3 : tensor<32xf32>
  return %4 : tensor<32xf32>
}

// -----
// negative_unit_op_at_packed, negative_buffer_form_at_packed
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @r reduce @u[@w] : f32
func.func @f(%s: tensor<2x3xf32>, %g: memref<8x3xf32>, %b: memref<4x32xf32>) -> tensor<8x3xf32> {
  // expected-error @below {{'fsdp.unshard' op on unit 'u' is not allowed at stage packed}}
  // expected-note @below {{fsdp-expand-units should have replaced it}}
  %w = fsdp.unshard @u(%s) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  // expected-error @below {{'fsdp.chunk_cat' op on bucket 'r' is not allowed at stage packed}}
  // expected-note @below {{buffer forms come later}}
  fsdp.chunk_cat %g into @r outs(%b : memref<4x32xf32>) : (memref<8x3xf32>) -> ()
  return %w : tensor<8x3xf32>
}

//--- buffered.mlir
// negative_value_form_at_buffered, negative_unit_op_at_buffered
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@w] : f32
func.func @f(%s: tensor<2x3xf32>) -> (tensor<32xf32>, tensor<8x3xf32>) {
  // expected-error @below {{'fsdp.concat' op on bucket 'g' is not allowed at stage buffered}}
  // expected-note @below {{it works on tensors: bufferization should have replaced it}}
  %f = fsdp.concat %s into @g : (tensor<2x3xf32>) -> tensor<32xf32>
  // expected-error @below {{'fsdp.unshard' op on unit 'u' is not allowed at stage buffered}}
  // expected-note @below {{fsdp-expand-units should have replaced it}}
  %w = fsdp.unshard @u(%s) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  return %f, %w : tensor<32xf32>, tensor<8x3xf32>
}

// -----
// negative_gather_from_other_buffer
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@w] : f32
func.func @f(%s: memref<2x3xf32>, %g: memref<4x32xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %s into @g outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  // expected-error @below {{'fsdp.all_gather' op on bucket 'g' reads a packed buffer of its own, expected this rank's row of its output at stage buffered}}
  // expected-note @below {{fsdp-gather-in-place would pack it there}}
  fsdp.all_gather %f of @g outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  return
}
