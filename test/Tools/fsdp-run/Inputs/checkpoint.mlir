// A scalar, a matrix that 3 ranks share unevenly, a vector that some ranks have
// nothing of, and one cut along its second dimension.
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp {
  fsdp.param @scale : tensor<1xf32>
  fsdp.param @w : tensor<7x2xf32>
  fsdp.param @short : tensor<2xf64>
  fsdp.param @wide : tensor<3x5xf32> shard_dim 1
}
func.func @gather(%s: tensor<1xf32> {fsdp.shard = @u::@scale}, %w: tensor<3x2xf32> {fsdp.shard = @u::@w},
                  %v: tensor<1xf64> {fsdp.shard = @u::@short}, %d: tensor<3x2xf32> {fsdp.shard = @u::@wide})
  -> (tensor<1xf32> {fsdp.full = @u::@scale}, tensor<7x2xf32> {fsdp.full = @u::@w},
      tensor<2xf64> {fsdp.full = @u::@short}, tensor<3x5xf32> {fsdp.full = @u::@wide}) {
  %f:4 = fsdp.unshard @u(%s, %w, %v, %d) : (tensor<1xf32>, tensor<3x2xf32>, tensor<1xf64>, tensor<3x2xf32>)
    -> (tensor<1xf32>, tensor<7x2xf32>, tensor<2xf64>, tensor<3x5xf32>)
  return %f#0, %f#1, %f#2, %f#3 : tensor<1xf32>, tensor<7x2xf32>, tensor<2xf64>, tensor<3x5xf32>
}
