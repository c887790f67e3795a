// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --verify-diagnostics

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  // expected-error @below {{parameter 'ids' of 'i64' is never cast, but asks for the param dtype 'f32', expected no param dtype of its own}}
  fsdp.param @ids : tensor<4xi64> precision <param = f32> frozen
}
// Every unit that is refused says so.
fsdp.unit @v on @dp {
  // expected-error @below {{parameter 'codes' of 'i8' is never cast, but asks for the reduce dtype 'f32'}}
  fsdp.param @codes : tensor<4xi8> precision <reduce = f32> frozen
}
fsdp.unit @x on @dp {
  // expected-error @below {{parameter 'scale' of 'f8E5M2' is never cast, but asks for the grad dtype 'f32'}}
  fsdp.param @scale : tensor<4xf8E5M2> precision <param = f8E5M2, grad = f32> frozen
}

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{profile 'stable' wants a uniform storage dtype in unit 'layer3', but its trainable parameters have 2}}
fsdp.unit @layer3 on @dp precision <param = bf16, reduce = f32> attributes {fsdp.profile = "stable"} {
  // expected-note @below {{'bf16': 'wq', 'wk'}}
  fsdp.param @wq : tensor<4xbf16>
  // expected-note @below {{'f32': 'a_log'}}
  fsdp.param @a_log : tensor<4xf32>
  fsdp.param @wk : tensor<4xbf16>
  fsdp.param @base : tensor<4xf64> frozen
}

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{wants a uniform param dtype in unit 'u'}}
fsdp.unit @u on @dp precision <param = bf16> attributes {fsdp.profile = "stable"} {
  // expected-note @below {{'bf16': 'w'}}
  fsdp.param @w : tensor<4xf32>
  // expected-note @below {{'f32': 'norm'}}
  fsdp.param @norm : tensor<4xf32> precision <param = f32>
}

// -----

// Of all that differs the first is named: storage, param, reduce, grad.
shard.grid @dp(shape = 4)
// expected-error @below {{wants a uniform reduce dtype in unit 'u'}}
fsdp.unit @u on @dp precision <reduce = f32> attributes {fsdp.profile = "stable"} {
  // expected-note @below {{'f32': 'w'}}
  fsdp.param @w : tensor<4xf32>
  // expected-note @below {{'bf16': 'gate'}}
  fsdp.param @gate : tensor<4xf32> precision <reduce = bf16, grad = f64>
}

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{wants a uniform grad dtype in unit 'u'}}
fsdp.unit @u on @dp attributes {fsdp.profile = "stable"} {
  // expected-note @below {{'bf16': 'w'}}
  fsdp.param @w : tensor<4xbf16>
  // expected-note @below {{'f32': 'kept'}}
  fsdp.param @kept : tensor<4xbf16> precision <grad = f32>
}

// -----

module attributes {fsdp.profile = "grad_dtype"} {
  shard.grid @dp(shape = 4)
  fsdp.unit @u on @dp precision <param = bf16> {
    fsdp.param @w : tensor<4xf32>
    fsdp.param @ok : tensor<4xf32> precision <param = f32>
    // expected-error @below {{parameter 'norm' asks for the param dtype 'f16', but profile 'grad_dtype' allows 'f32' and 'bf16'}}
    fsdp.param @norm : tensor<4xf32> precision <param = f16>
    fsdp.param @frozen : tensor<4xf32> precision <param = f16> frozen
  }
  fsdp.unit @v on @dp {
    // expected-error @below {{parameter 'x' asks for the param dtype 'bf16', but profile 'grad_dtype' allows 'f32'}}
    fsdp.param @x : tensor<4xf32> precision <param = bf16>
  }
}

// -----

module attributes {fsdp.profile = "grad_dtype"} {
  shard.grid @dp(shape = 4)
  fsdp.unit @u on @dp {
    fsdp.param @w : tensor<4xf32>
    // expected-error @below {{parameter 'norm' asks for the reduce dtype 'bf16', but profile 'grad_dtype' reduces unit 'u' in 'f32'}}
    fsdp.param @norm : tensor<4xf32> precision <reduce = bf16>
    fsdp.param @frozen : tensor<4xf32> precision <reduce = bf16> frozen
  }
}
