// RUN: fsdp-opt %s --fsdp-to-cpu --split-input-file --verify-diagnostics

func.func @unknown_op(%a: tensor<4xf32>, %i: index) {
  // expected-error @below {{'foreign.op' op has no lowering to the cpu}}
  "foreign.op"(%i) : (index) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
func.func @declared(%w: tensor<2x3xf32>) -> tensor<8x3xf32> {
  // expected-error @below {{'fsdp.unshard' op}}
  %f = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  return %f : tensor<8x3xf32>
}
