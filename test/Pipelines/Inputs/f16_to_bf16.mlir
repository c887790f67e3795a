// Stored in f16, computed in bf16, reduced in f16 and kept in bf16.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f16, grad = bf16> {
  fsdp.param @a : tensor<4xf16>
  fsdp.param @b : tensor<3x5xf16> shard_dim 1
}
func.func @forward(%a: tensor<2xf16>, %b: tensor<3x3xf16>) -> (tensor<4xbf16>, tensor<3x5xbf16>) {
  %w:2 = fsdp.unshard @u(%a, %b) : (tensor<2xf16>, tensor<3x3xf16>) -> (tensor<4xbf16>, tensor<3x5xbf16>)
  return %w#0, %w#1 : tensor<4xbf16>, tensor<3x5xbf16>
}
func.func @backward(%a: tensor<4xbf16>, %b: tensor<3x5xbf16>) -> (tensor<2xbf16>, tensor<3x3xbf16>) {
  %s:2 = fsdp.reduce_grads @u[@a, @b](%a, %b) : (tensor<4xbf16>, tensor<3x5xbf16>) -> (tensor<2xbf16>, tensor<3x3xbf16>)
  return %s#0, %s#1 : tensor<2xbf16>, tensor<3x3xbf16>
}
