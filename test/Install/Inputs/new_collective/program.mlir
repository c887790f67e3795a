shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @start(%s: tensor<2x3xf32>) -> tensor<8x3xf32> {
  %f = fsdp.concat %s into @b : (tensor<2x3xf32>) -> tensor<32xf32>
  %g = fsdp.all_gather %f of @b : (tensor<32xf32>) -> tensor<4x32xf32>
  %r = test.broadcast_rows %g of @b : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %w = fsdp.unchunk %r of @b : (tensor<4x32xf32>) -> tensor<8x3xf32>
  return %w : tensor<8x3xf32>
}
