shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
func.func @f(%w: tensor<2x3xf32> {fsdp.shard = @u::@w}, %uniform: i1 {fsdp.uniform}) -> tensor<8x3xf32> {
  %rank = shard.process_linear_index on @dp : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %rank, %zero : index
  %r = scf.if %first -> tensor<8x3xf32> {
    %f = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
    scf.yield %f : tensor<8x3xf32>
  } else {
    %x = arith.constant dense<1.0> : tensor<8x3xf32>
    scf.yield %x : tensor<8x3xf32>
  }
  return %r : tensor<8x3xf32>
}
