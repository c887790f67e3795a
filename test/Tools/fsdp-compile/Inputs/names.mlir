shard.grid @dp(shape = 1)
fsdp.unit @u on @dp {
  fsdp.param @"blocks/*/kernel" : tensor<2xf32>
  fsdp.param @"*/ \\\22??/\0A//\C3\A4" : tensor<4xf32>
}
func.func @f(%w: tensor<2xf32> {fsdp.shard = @u::@"blocks/*/kernel"},
             %g: tensor<4xf32> {fsdp.full_grad = @u::@"*/ \\\22??/\0A//\C3\A4"},
             %h: tensor<4xf32> {fsdp.full_grad = @u::@"*/ \\\22??/\0A//\C3\A4"},
             %i: index {fsdp.uniform})
    -> (tensor<2xf32> {fsdp.shard = @u::@"blocks/*/kernel"}) {
  return %w : tensor<2xf32>
}
func.func @"step.0"(%x: tensor<1xf32>) -> tensor<1xf32> {
  %c = arith.constant dense<2.0> : tensor<1xf32>
  %y = arith.mulf %x, %c : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @step_0(%x: tensor<1xf32>) -> tensor<1xf32> {
  %c = arith.constant dense<1.0> : tensor<1xf32>
  %y = arith.mulf %x, %c : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @"step-0"(%x: tensor<1xf32>) -> tensor<1xf32> {
  %c = arith.constant dense<3.0> : tensor<1xf32>
  %y = arith.mulf %x, %c : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @"a \22b\22 */\0A\\"(%x: tensor<1xf32>) -> tensor<1xf32> {
  %c = arith.constant dense<4.0> : tensor<1xf32>
  %y = arith.mulf %x, %c : tensor<1xf32>
  return %y : tensor<1xf32>
}
func.func @"\C3\A4"(%x: tensor<1xf32>) -> tensor<1xf32> {
  %c = arith.constant dense<5.0> : tensor<1xf32>
  %y = arith.mulf %x, %c : tensor<1xf32>
  return %y : tensor<1xf32>
}
