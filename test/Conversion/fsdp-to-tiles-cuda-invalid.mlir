// RUN: fsdp-opt %s --convert-fsdp-to-tiles=target=cuda --verify-diagnostics
// RUN: fsdp-opt %s --convert-fsdp-to-tiles=target=emulate --verify-diagnostics

shard.grid @dp(shape = 65536)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<65536xf32>
}
fsdp.bucket @b reduce @u[@w] : f32 align 4
func.func @too_many_rows(%g: memref<65536xf32>, %b: memref<65536x1xf32>) {
  // expected-error @below {{cannot be lowered: bucket @b has 65536 rows, but a grid of blocks at most 65535}}
  fsdp.chunk_cat %g into @b outs(%b : memref<65536x1xf32>) : (memref<65536xf32>) -> ()
  return
}
