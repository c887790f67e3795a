shard.grid @g(shape = 2x2)
fsdp.unit @all on @g { fsdp.param @w : tensor<8xf32> }
fsdp.unit @columns on @g shard_axes [0] { fsdp.param @v : tensor<4xf32> }
func.func @step(%s: tensor<2xf32> {fsdp.shard = @all::@w},
                %t: tensor<2xf32> {fsdp.shard = @columns::@v})
    -> (tensor<8xf32> {fsdp.full = @all::@w},
        tensor<4xf32> {fsdp.full = @columns::@v}) {
  %c0 = arith.constant 0 : index
  %row = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %row, %c0 : index
  %r:2 = scf.if %first -> (tensor<8xf32>, tensor<4xf32>) {
    %w = fsdp.unshard @all(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %v = fsdp.unshard @columns(%t) : (tensor<2xf32>) -> tensor<4xf32>
    scf.yield %w, %v : tensor<8xf32>, tensor<4xf32>
  } else {
    %v = fsdp.unshard @columns(%t) : (tensor<2xf32>) -> tensor<4xf32>
    %w = fsdp.unshard @all(%s) : (tensor<2xf32>) -> tensor<8xf32>
    scf.yield %w, %v : tensor<8xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<4xf32>
}
