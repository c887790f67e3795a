shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<40x1048576xf32>
  fsdp.param @b : tensor<40x1048576xf32>
}
func.func @forward(%a: tensor<10x1048576xf32> {fsdp.shard = @u::@a}, %b: tensor<10x1048576xf32> {fsdp.shard = @u::@b})
    -> (tensor<40x1048576xf32> {fsdp.full = @u::@a}, tensor<40x1048576xf32> {fsdp.full = @u::@b}) {
  %f:2 = fsdp.unshard @u(%a, %b) : (tensor<10x1048576xf32>, tensor<10x1048576xf32>) -> (tensor<40x1048576xf32>, tensor<40x1048576xf32>)
  return %f#0, %f#1 : tensor<40x1048576xf32>, tensor<40x1048576xf32>
}
