shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}
func.func @forward(%n: tensor<3xf32> {fsdp.shard = @layer0::@norm}, %q: tensor<2x3xf32> {fsdp.shard = @layer0::@wq})
    -> (tensor<10xf32> {fsdp.full = @layer0::@norm}, tensor<8x3xbf16> {fsdp.full = @layer0::@wq}) {
  %w:2 = fsdp.unshard @layer0(%n, %q) : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
}
func.func @backward(%n: tensor<10xf32> {fsdp.full_grad = @layer0::@norm}, %q: tensor<8x3xbf16> {fsdp.full_grad = @layer0::@wq})
    -> (tensor<3xf32> {fsdp.shard_grad = @layer0::@norm}, tensor<2x3xf32> {fsdp.shard_grad = @layer0::@wq}) {
  %s:2 = fsdp.reduce_grads @layer0[@norm, @wq](%n, %q) : (tensor<10xf32>, tensor<8x3xbf16>) -> (tensor<3xf32>, tensor<2x3xf32>)
  return %s#0, %s#1 : tensor<3xf32>, tensor<2x3xf32>
}
