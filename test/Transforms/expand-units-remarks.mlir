// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --fsdp-expand-units \
// RUN:   --remarks-filter=fsdp --remark-policy=all --verify-diagnostics -o /dev/null

shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
  fsdp.param @c : tensor<4xf32>
}
func.func @step(%a: tensor<2xf32>, %g: tensor<4xf32>) {
  // expected-remark @below {{[Passed] ExpandUnits | Category:fsdp | Reason="one collective per parameter", all_gathers=3, names=u}}
  %w:3 = fsdp.unshard @u(%a, %a, %a) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // expected-remark @below {{[Passed] ExpandUnits | Category:fsdp | Reason="one collective per parameter", all_reduces=1, names=u, reduce_scatters=1}}
  // expected-remark @below {{[Passed] ExpandUnits | Category:fsdp | Reason="no gradient: in no collective", names="a,c"}}
  %s = fsdp.reduce_grads @u[@b](%g) : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

// The mean is biased where its multiplier is not exact in 16 bits: one remark
// per unit, however many reductions it has. Wide wires and powers of two have
// none, and a sum with a factor divides exactly.

shard.grid @dp(shape = 3)
shard.grid @hsdp(shape = 3x4)
// expected-remark @below {{[Missed] ExpandUnits | Category:fsdp | Reason="the mean is biased by +0.2 %, 1/3 is not exact in bf16: 'average=after' or 'reduction sum divide_factor 3' divides exactly", names=mean}}
fsdp.unit @mean on @dp {
  fsdp.param @p0 : tensor<3xf32>
  fsdp.param @p1 : tensor<3xbf16>
  fsdp.param @p2 : tensor<3xbf16>
}
// expected-remark @below {{biased by +0.2 %, 1/3 is not exact in bf16: 'average=after' or 'reduction sum divide_factor 12'}}
fsdp.unit @replicas on @hsdp replicate_axes [0] { fsdp.param @p3 : tensor<4xbf16> }
// expected-remark @below {{biased by -0.098 %, 1/5.5 is not exact in bf16: 'average=after' or 'reduction sum divide_factor 5.5'}}
fsdp.unit @factor on @dp divide_factor 5.5 { fsdp.param @p4 : tensor<3xbf16> }
fsdp.unit @exact on @dp reduction sum divide_factor 3.0 { fsdp.param @p5 : tensor<3xbf16> }
fsdp.unit @power on @dp divide_factor 0.25 { fsdp.param @p6 : tensor<3xbf16> }
func.func @step(%f: tensor<3xf32>, %b: tensor<3xbf16>, %d: tensor<4xbf16>) {
  // expected-remark @below {{reduce_scatters=3}}
  fsdp.reduce_grads @mean[@p1, @p2, @p0](%b, %b, %f) : (tensor<3xbf16>, tensor<3xbf16>, tensor<3xf32>) -> (tensor<1xbf16>, tensor<1xbf16>, tensor<1xf32>)
  // expected-remark @below {{reduce_scatters=1}}
  // expected-remark @below {{no gradient}}
  fsdp.reduce_grads @mean[@p2](%b) : (tensor<3xbf16>) -> tensor<1xbf16>
  // expected-remark @below {{all_reduces=1}}
  fsdp.reduce_grads @replicas[@p3](%d) : (tensor<4xbf16>) -> tensor<1xbf16>
  // expected-remark @below {{reduce_scatters=1}}
  fsdp.reduce_grads @factor[@p4](%b) : (tensor<3xbf16>) -> tensor<1xbf16>
  // expected-remark @below {{reduce_scatters=1}}
  fsdp.reduce_grads @exact[@p5](%b) : (tensor<3xbf16>) -> tensor<1xbf16>
  // expected-remark @below {{reduce_scatters=1}}
  fsdp.reduce_grads @power[@p6](%b) : (tensor<3xbf16>) -> tensor<1xbf16>
  return
}
