// RUN: fsdp-opt %s --split-input-file --convert-fsdp-to-tiles --verify-diagnostics

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
}
fsdp.bucket @b reduce @u[@w] : f32
func.func @tensors(%g: tensor<4x3xf32>) -> tensor<2x32xf32> {
  // expected-error @below {{is on tensors, expected the buffer form: run one-shot-bufferize first}}
  %b = fsdp.chunk_cat %g into @b : (tensor<4x3xf32>) -> tensor<2x32xf32>
  return %b : tensor<2x32xf32>
}

// -----

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4294967298xbf16>
}
fsdp.bucket @b reduce @u[@w] : bf16
func.func @share_too_large(%g: memref<4294967298xbf16>, %b: memref<2x2147483712xbf16>) {
  // expected-error @below {{cannot be lowered: member 'w' of bucket @b is too large: its share of a rank, in elements that are copied, reaches 2^31}}
  fsdp.chunk_cat %g into @b outs(%b : memref<2x2147483712xbf16>) : (memref<4294967298xbf16>) -> ()
  return
}

// -----

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4294967292xbf16>
  fsdp.param @v : tensor<40000xbf16>
}
fsdp.bucket @b reduce @u[@w, @v] : bf16
func.func @offset_too_large(%g: memref<4294967292xbf16>, %v: memref<40000xbf16>, %b: memref<2x2147503680xbf16>) {
  // expected-error @below {{cannot be lowered: member 'v' of bucket @b is too large: its offset in the row, in granules, reaches 2^31}}
  fsdp.chunk_cat %g, %v into @b outs(%b : memref<2x2147503680xbf16>) : (memref<4294967292xbf16>, memref<40000xbf16>) -> ()
  return
}
