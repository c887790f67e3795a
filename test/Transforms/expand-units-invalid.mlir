// RUN: fsdp-opt %s --split-input-file --fsdp-expand-units --verify-diagnostics
// RUN: not fsdp-opt %s --fsdp-expand-units=align=3 2>&1 | FileCheck %s --check-prefix=ALIGN
// RUN: not fsdp-opt %s --fsdp-expand-units=align=8192 2>&1 | FileCheck %s --check-prefix=ALIGN8K

// ALIGN: option align is 3, expected a power of two from 1 to 4096
// ALIGN8K: option align is 8192, expected a power of two from 1 to 4096

module {
  shard.grid @dp(shape = 2)
  // expected-error @below {{unit 'u' is not resolved: run fsdp-resolve-precision before fsdp-expand-units}}
  fsdp.unit @u on @dp {
    fsdp.param @done : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>
    // expected-note @below {{parameter 'w' lacks dtypes}}
    fsdp.param @w : tensor<4xf32> precision <param = f32, reduce = f32>
  }
  // expected-error @below {{unit 'v' is not resolved}}
  fsdp.unit @v on @dp {
    // expected-note @below {{parameter 'ids' lacks dtypes}}
    fsdp.param @ids : tensor<4xi64> frozen
  }
}

// -----

// A factor must be a divisor in the dtype in which the wire divides.

module {
  shard.grid @dp(shape = 2)
  // expected-error @below {{unit 'huge' has the divide factor 1.000000e+300 : f64, which is no positive finite number when it divides in 'f32'}}
  fsdp.unit @huge on @dp divide_factor 1.0e300 {
    fsdp.param @a : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>
  }
  // expected-error @below {{unit 'tiny' has the divide factor 1.000000e-300 : f64, which is no positive finite number when it divides in 'f16'}}
  fsdp.unit @tiny on @dp divide_factor 1.0e-300 {
    fsdp.param @b : tensor<4xf32> precision <param = f32, reduce = f16, grad = f32>
  }
  fsdp.unit @wide on @dp divide_factor 1.0e300 {
    fsdp.param @c : tensor<4xf64> precision <param = f64, reduce = f64, grad = f64>
    fsdp.param @not_reduced : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>
  }
  func.func @step(%f: tensor<4xf32>, %d: tensor<4xf64>) {
    fsdp.reduce_grads @huge[@a](%f) : (tensor<4xf32>) -> tensor<2xf32>
    fsdp.reduce_grads @tiny[@b](%f) : (tensor<4xf32>) -> tensor<2xf32>
    fsdp.reduce_grads @wide[@c](%d) : (tensor<4xf64>) -> tensor<2xf64>
    return
  }
}

// -----

// What each rank holds is small enough to be counted, a bucket of it is not.

module {
  shard.grid @dp(shape = 1)
  fsdp.unit @u on @dp {
    // expected-note @below {{it is 'tensor<1152921504606846976xf32>'}}
    fsdp.param @w : tensor<1152921504606846976xf32> precision <param = f32, reduce = f32, grad = f32>
  }
  func.func @gather(%s: tensor<1152921504606846976xf32>) -> tensor<1152921504606846976xf32> {
    // expected-error @below {{moves parameter 'w' of unit 'u' in 'f32' over 1 ranks, but such a bucket is too large: expected fewer than 2^62 bytes}}
    %f = fsdp.unshard @u(%s) : (tensor<1152921504606846976xf32>) -> tensor<1152921504606846976xf32>
    return %f : tensor<1152921504606846976xf32>
  }
}

// -----

// The wire of the reduction is wider than that of the gather.

module {
  shard.grid @dp(shape = 1)
  fsdp.unit @u on @dp {
    // expected-note @below {{it is 'tensor<576460752303423488xbf16>'}}
    fsdp.param @w : tensor<576460752303423488xbf16> precision <param = bf16, reduce = f64, grad = bf16>
  }
  func.func @both(%s: tensor<576460752303423488xbf16>) -> tensor<576460752303423488xbf16> {
    %f = fsdp.unshard @u(%s) : (tensor<576460752303423488xbf16>) -> tensor<576460752303423488xbf16>
    // expected-error @below {{moves parameter 'w' of unit 'u' in 'f64' over 1 ranks, but such a bucket is too large}}
    %g = fsdp.reduce_grads @u[@w](%f) : (tensor<576460752303423488xbf16>) -> tensor<576460752303423488xbf16>
    return %g : tensor<576460752303423488xbf16>
  }
}

// -----

// One element per rank, and many ranks: padded it is too large.

module {
  shard.grid @dp(shape = 1048576)
  fsdp.unit @u on @dp {
    // expected-note @below {{it is 'tensor<4398046511104x1xf32>'}}
    fsdp.param @w : tensor<4398046511104x1xf32> shard_dim 1 precision <param = f32, reduce = f32, grad = f32>
  }
  func.func @gather(%s: tensor<4398046511104x1xf32>) -> tensor<4398046511104x1xf32> {
    // expected-error @below {{over 1048576 ranks, but such a bucket is too large: expected fewer than 2^62 bytes}}
    %f = fsdp.unshard @u(%s) : (tensor<4398046511104x1xf32>) -> tensor<4398046511104x1xf32>
    return %f : tensor<4398046511104x1xf32>
  }
}
