shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<268435456xf32>
}
func.func @number(%a: tensor<268435456xf32>) -> tensor<268435456xf32> {
  %c = arith.constant dense<1.5> : tensor<268435456xf32>
  %d = arith.addf %a, %c : tensor<268435456xf32>
  return %d : tensor<268435456xf32>
}
func.func @returned() -> tensor<268435456xf64> {
  %c = arith.constant dense<1.5> : tensor<268435456xf64>
  return %c : tensor<268435456xf64>
}
func.func @gradient() -> (tensor<134217728xf32> {fsdp.shard_grad = @u::@w}) {
  %c = arith.constant dense<2.25> : tensor<268435456xf32>
  %s = fsdp.reduce_grads @u[@w](%c) : (tensor<268435456xf32>) -> tensor<134217728xf32>
  return %s : tensor<134217728xf32>
}
