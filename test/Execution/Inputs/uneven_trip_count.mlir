shard.grid @dp(shape = 2)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<4xf32> }
func.func @step(%g: tensor<4xf32> {fsdp.full_grad = @a::@wa},
                %zero: tensor<2xf32> {fsdp.shard_grad = @a::@wa})
    -> (tensor<2xf32> {fsdp.shard_grad = @a::@wa}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rank = shard.process_linear_index on @dp : index
  %n = arith.addi %rank, %c1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> tensor<2xf32> {
    %s = fsdp.reduce_grads @a[@wa](%g) : (tensor<4xf32>) -> tensor<2xf32>
    %next = arith.addf %sum, %s : tensor<2xf32>
    scf.yield %next : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
