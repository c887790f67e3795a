// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// One case per message, under the label of the constraint in FsdpOps.td.

//===----------------------------------------------------------------------===//
// fsdp.unshard
//===----------------------------------------------------------------------===//

// unshard C1
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{names the unknown unit @u}}
  %0 = fsdp.unshard @u(%a) : (tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

// unshard C1: a unit that stands behind its user in one block is verified later.
%a = "test.make"() : () -> tensor<1xf32>
// expected-error @below {{names the unit @u, whose grid or axes are not valid}}
%0 = fsdp.unshard @u(%a) : (tensor<1xf32>) -> tensor<4xf32>
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unshard C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @x : tensor<4xf32>
}
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{expects 2 operands and results for unit 'u', but got 1 and 2}}
  %0:2 = fsdp.unshard @u(%a) : (tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// unshard C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{expects 1 operands and results for unit 'u', but got 1 and 0}}
  fsdp.unshard @u(%a) : (tensor<1xf32>) -> ()
  return
}

// -----

// unshard C3: 10 over 4 ranks is 3, padding included.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{declared here}}
  fsdp.param @w : tensor<10xf32>
}
func.func @f(%a: tensor<2xf32>) {
  // expected-error @below {{operand for parameter 'w' of unit 'u' is 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %0 = fsdp.unshard @u(%a) : (tensor<2xf32>) -> tensor<10xf32>
  return
}

// -----

// unshard C3: the operand is of the storage dtype, not of the param dtype.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16> {
  // expected-note @below {{declared here}}
  fsdp.param @w : tensor<4xf32>
}
func.func @f(%a: tensor<1xbf16>) {
  // expected-error @below {{operand for parameter 'w' of unit 'u' is 'tensor<1xbf16>', expected 'tensor<1xf32>'}}
  %0 = fsdp.unshard @u(%a) : (tensor<1xbf16>) -> tensor<4xbf16>
  return
}

// -----

// unshard C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16> {
  // expected-note @below {{declared here}}
  fsdp.param @w : tensor<4xf32>
}
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{result for parameter 'w' of unit 'u' is 'tensor<4xf32>', expected 'tensor<4xbf16>'}}
  %0 = fsdp.unshard @u(%a) : (tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// fsdp.reduce_grads
//===----------------------------------------------------------------------===//

// reduce_grads C1
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{names the unknown unit @u}}
  %0 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{names 'v', but unit 'u' has no parameter of that name}}
  %0 = fsdp.reduce_grads @u[@v](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C1: a parameter of another unit
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.unit @v on @dp { fsdp.param @x : tensor<4xf32> }
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{names 'x', but unit 'u' has no parameter of that name}}
  %0 = "fsdp.reduce_grads"(%g) <{unit = @u, params = [@v::@x]}> : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{names parameter 'w' of unit 'u' twice}}
  %0:2 = fsdp.reduce_grads @u[@w, @w](%g, %g) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  return
}

// -----

// reduce_grads C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  // expected-note @below {{declared here}}
  fsdp.param @base : tensor<4xf32> frozen
}
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{names parameter 'base' of unit 'u', which is frozen and has no gradient}}
  %0 = fsdp.reduce_grads @u[@base](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{expects 1 operands and results for unit 'u', but got 2 and 1}}
  %0 = fsdp.reduce_grads @u[@w](%g, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C4
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  // expected-note @below {{declared here}}
  fsdp.param @w : tensor<5x2xf32>
}
func.func @f(%g: tensor<3x2xf32>) {
  // expected-error @below {{gradient for parameter 'w' of unit 'u' is 'tensor<3x2xf32>', expected 'tensor<5x2xf32>'}}
  %0 = fsdp.reduce_grads @u[@w](%g) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

// reduce_grads C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
func.func @f(%g: tensor<4xi32>) {
  // expected-error @below {{gradient for parameter 'w' of unit 'u' is 'tensor<4xi32>', expected a floating-point dtype: f16, bf16, f32 or f64}}
  %0 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xi32>) -> tensor<1xf32>
  return
}

// -----

// reduce_grads C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <grad = f64> {
  // expected-note @below {{declared here}}
  fsdp.param @w : tensor<4xf32>
}
func.func @f(%g: tensor<4xf32>) {
  // expected-error @below {{result for parameter 'w' of unit 'u' is 'tensor<1xf32>', expected 'tensor<1xf64>'}}
  %0 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// The local ops and the collectives: C1 to C3 are shared
//===----------------------------------------------------------------------===//

// C1
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{uses the unknown bucket @b}}
  %0 = fsdp.concat %a into @b : (tensor<1xf32>) -> tensor<32xf32>
  return
}

// -----

// C1: a symbol that is no bucket
shard.grid @dp(shape = 4)
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{uses the unknown bucket @dp}}
  %0 = fsdp.reduce_scatter sum %a of @dp : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// C1: a bucket that stands behind its user in one block is verified later.
%a = "test.make"() : () -> tensor<32xf32>
// expected-error @below {{uses bucket @b, which is not valid}}
%0 = fsdp.all_gather %a of @b : (tensor<32xf32>) -> tensor<4x32xf32>
fsdp.bucket @b gather @u[@w] : f32

// -----

// C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{uses the reduce bucket @b, expected a gather bucket}}
  %0 = fsdp.all_gather %a of @b : (tensor<32xf32>) -> tensor<4x32xf32>
  return
}

// -----

// C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{uses the gather bucket @b, expected a reduce bucket}}
  %0 = fsdp.chunk_cat %a into @b : (tensor<4xf32>) -> tensor<4x32xf32>
  return
}

// -----

// concat C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @x : tensor<4xf32>
}
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w, @x] : f32
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{expects 2 tensors for the members of bucket @b, but got 1}}
  %0 = fsdp.concat %a into @b : (tensor<1xf32>) -> tensor<64xf32>
  return
}

// -----

// concat C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<10xf32>
}
fsdp.bucket @b gather @u[@w] : bf16
func.func @f(%a: tensor<2xf32>) {
  // expected-error @below {{has 'tensor<2xf32>' for member 'w' of bucket @b, expected the shape of 'tensor<3xbf16>' and a floating-point dtype}}
  %0 = fsdp.concat %a into @b : (tensor<2xf32>) -> tensor<64xbf16>
  return
}

// -----

// concat C2: what is opaque is not cast.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @ids : tensor<4xi64> frozen
}
fsdp.bucket @b gather @u[@ids] : bytes
func.func @f(%a: tensor<1xi32>) {
  // expected-error @below {{has 'tensor<1xi32>' for member 'ids' of bucket @b, expected the shape of 'tensor<1xi64>' and that dtype}}
  %0 = fsdp.concat %a into @b : (tensor<1xi32>) -> tensor<128xi8>
  return
}

// -----

// concat C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{has the flat shard 'tensor<1xf32>' for bucket @b, expected the shape and element type of 'tensor<32xf32>'}}
  %0 = fsdp.concat %a into @b : (tensor<1xf32>) -> tensor<1xf32>
  return
}

// -----

// chunk_cat C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<10xf32>
}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<10xi32>) {
  // expected-error @below {{has 'tensor<10xi32>' for member 'w' of bucket @b, expected the shape of 'tensor<10xf32>' and a floating-point dtype}}
  %0 = fsdp.chunk_cat %a into @b : (tensor<10xi32>) -> tensor<4x32xf32>
  return
}

// -----

// chunk_cat C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b reduce @u[@w] : bf16
func.func @f(%a: tensor<10xf32>) {
  // expected-error @below {{has the packed tensor 'tensor<4x64xf32>' for bucket @b, expected the shape and element type of 'tensor<4x64xbf16>'}}
  %0 = fsdp.chunk_cat %a into @b : (tensor<10xf32>) -> tensor<4x64xf32>
  return
}

// -----

// chunk_cat C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<10xf32>) {
  // expected-error @below {{on bucket @b has divide 0, expected a positive finite number}}
  %0 = fsdp.chunk_cat %a into @b divide 0.0 : (tensor<10xf32>) -> tensor<4x32xf32>
  return
}

// -----

// unchunk C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<2x32xf32>) {
  // expected-error @below {{has the packed tensor 'tensor<2x32xf32>' for bucket @b, expected the shape and element type of 'tensor<4x32xf32>'}}
  %0 = fsdp.unchunk %a of @b : (tensor<2x32xf32>) -> tensor<10xf32>
  return
}

// -----

// unchunk C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<10xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{has 'tensor<12xf32>' for member 'w' of bucket @b, expected the shape of 'tensor<10xf32>' and a floating-point dtype}}
  %0 = fsdp.unchunk %a of @b : (tensor<4x32xf32>) -> tensor<12xf32>
  return
}

// -----

// split C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{has the flat shard 'tensor<3xf32>' for bucket @b, expected the shape and element type of 'tensor<32xf32>'}}
  %0 = fsdp.split %a of @b : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

// split C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{parameter declared here}}
  fsdp.param @w : tensor<10xf32>
}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{has 'tensor<10xf32>' for member 'w' of bucket @b, expected the shape of 'tensor<3xf32>' and a floating-point dtype}}
  %0 = fsdp.split %a of @b : (tensor<32xf32>) -> tensor<10xf32>
  return
}

// -----

// split C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{on bucket @b has divide -3, expected a positive finite number}}
  %0 = fsdp.split %a of @b divide -3.0 : (tensor<32xf32>) -> tensor<3xf32>
  return
}

// -----

// split C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>, %old: tensor<3xf32>) {
  // expected-error @below {{on bucket @b adds 2 tensors, expected 1}}
  %0 = fsdp.split %a of @b add(%old, %old : tensor<3xf32>, tensor<3xf32>) : (tensor<32xf32>) -> tensor<3xf32>
  return
}

// -----

// split C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>, %old: tensor<3xbf16>) {
  // expected-error @below {{on bucket @b adds 'tensor<3xbf16>' to member 0, expected 'tensor<3xf32>'}}
  %0 = fsdp.split %a of @b add(%old : tensor<3xbf16>) : (tensor<32xf32>) -> tensor<3xf32>
  return
}

// -----

// all_gather C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{has the packed tensor 'tensor<128xf32>' for bucket @b, expected the shape and element type of 'tensor<4x32xf32>'}}
  %0 = fsdp.all_gather %a of @b : (tensor<32xf32>) -> tensor<128xf32>
  return
}

// -----

// reduce_scatter C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{has the flat shard 'tensor<32xf64>' for bucket @b, expected the shape and element type of 'tensor<32xf32>'}}
  %0 = fsdp.reduce_scatter sum %a of @b : (tensor<4x32xf32>) -> tensor<32xf64>
  return
}

// -----

// reduce_scatter C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{on bucket @b has premul 0, expected a positive finite number}}
  %0 = fsdp.reduce_scatter premul 0.0 %a of @b : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// reduce_scatter C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{on bucket @b has the reduction premul without a multiplier: expected premul with one, or another without}}
  %0 = "fsdp.reduce_scatter"(%a) <{bucket = @b, reduction = 2 : i32}> : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// reduce_scatter C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{on bucket @b has the reduction avg with a multiplier: expected premul with one, or another without}}
  %0 = "fsdp.reduce_scatter"(%a) <{bucket = @b, reduction = 1 : i32, multiplier = 0.5 : f64}> : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// reduce_scatter C3
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{expected 'sum', 'avg' or 'premul', but got 'max'}}
  %0 = fsdp.reduce_scatter max %a of @b : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// reduce_scatter C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{on bucket @b accumulates in 'f64', expected f32}}
  %0 = fsdp.reduce_scatter sum accumulate f64 %a of @b : (tensor<4x32xf32>) -> tensor<32xf32>
  return
}

// -----

// all_reduce C2
shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp replicate_axes [0] { fsdp.param @w : tensor<10xf32> }
// expected-note @below {{bucket declared here}}
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<4x32xf32>) {
  // expected-error @below {{has the flat shard 'tensor<4x32xf32>' for bucket @b, expected the shape and element type of 'tensor<32xf32>'}}
  %0 = fsdp.all_reduce sum %a of @b : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return
}

// -----

// all_reduce C3
shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp replicate_axes [0] { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{on bucket @b has premul -0.5, expected a positive finite number}}
  %0 = fsdp.all_reduce premul -0.5 %a of @b : (tensor<32xf32>) -> tensor<32xf32>
  return
}

// -----

// all_reduce C4
shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp replicate_axes [0] { fsdp.param @w : tensor<10xf32> }
fsdp.bucket @b reduce @u[@w] : f32
func.func @f(%a: tensor<32xf32>) {
  // expected-error @below {{on bucket @b accumulates in 'bf16', expected f32}}
  %0 = fsdp.all_reduce sum accumulate bf16 %a of @b : (tensor<32xf32>) -> tensor<32xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{on bucket @b has neither results nor outs}}
  fsdp.concat %a into @b : (tensor<1xf32>) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: memref<1xf32>, %f: memref<32xf32>) {
  // expected-error @below {{on bucket @b has results and outs, expected one of them}}
  %0 = fsdp.concat %a into @b outs(%f : memref<32xf32>) : (memref<1xf32>) -> memref<32xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<1xf32>, %f: memref<32xf32>) {
  // expected-error @below {{on bucket @b has the type 'tensor<1xf32>', expected a memref beside outs}}
  fsdp.concat %a into @b outs(%f : memref<32xf32>) : (tensor<1xf32>) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: memref<1xf32>) {
  // expected-error @below {{on bucket @b has the type 'memref<1xf32>', expected a tensor beside results}}
  %0 = fsdp.concat %a into @b : (memref<1xf32>) -> tensor<32xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @b gather @u[@w] : f32
func.func @f(%a: tensor<?xf32>) {
  // expected-error @below {{operand #0 must be variadic of tensor or memref of static shape, but got 'tensor<?xf32>'}}
  %0 = fsdp.concat %a into @b : (tensor<?xf32>) -> tensor<32xf32>
  return
}
