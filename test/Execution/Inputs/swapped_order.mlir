shard.grid @dp(shape = 2)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<4xf32> }
fsdp.unit @b on @dp { fsdp.param @wb : tensor<6xf32> }
func.func @step(%s: tensor<2xf32> {fsdp.shard = @a::@wa},
                %t: tensor<3xf32> {fsdp.shard = @b::@wb})
    -> (tensor<4xf32> {fsdp.full = @a::@wa}, tensor<6xf32> {fsdp.full = @b::@wb}) {
  %c0 = arith.constant 0 : index
  %rank = shard.process_linear_index on @dp : index
  %first = arith.cmpi eq, %rank, %c0 : index
  %r:2 = scf.if %first -> (tensor<4xf32>, tensor<6xf32>) {
    %b = fsdp.unshard @b(%t) : (tensor<3xf32>) -> tensor<6xf32>
    %a = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    scf.yield %a, %b : tensor<4xf32>, tensor<6xf32>
  } else {
    %a = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %b = fsdp.unshard @b(%t) : (tensor<3xf32>) -> tensor<6xf32>
    scf.yield %a, %b : tensor<4xf32>, tensor<6xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<6xf32>
}
