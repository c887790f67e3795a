// RUN: fsdp-opt %s --fsdp-form-buckets --verify-diagnostics

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @buffers(%w: memref<2x3xf32>, %f: memref<32xf32>) {
  // expected-error @below {{'fsdp.concat' op on bucket @b is in its buffer form, expected tensors: fsdp-form-buckets runs before bufferization}}
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  return
}
