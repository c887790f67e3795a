// Two replicas of two shards. The second replica has other values, which nobody
// sees behind the broadcast.
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<5x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @start(%s: tensor<3x3xf32> {fsdp.shard = @u::@w})
    -> (tensor<5x3xf32> {fsdp.full = @u::@w}) {
  %replica = shard.process_multi_index on @hsdp axes = [0] : index
  %word = arith.index_cast %replica : index to i32
  %number = arith.sitofp %word : i32 to f32
  %wrong = tensor.splat %number : tensor<3x3xf32>
  %own = arith.addf %s, %wrong : tensor<3x3xf32>
  %f = fsdp.concat %own into @b : (tensor<3x3xf32>) -> tensor<32xf32>
  %g = fsdp.all_gather %f of @b : (tensor<32xf32>) -> tensor<2x32xf32>
  %r = test.broadcast_rows %g of @b : (tensor<2x32xf32>) -> tensor<2x32xf32>
  %w = fsdp.unchunk %r of @b : (tensor<2x32xf32>) -> tensor<5x3xf32>
  return %w : tensor<5x3xf32>
}
