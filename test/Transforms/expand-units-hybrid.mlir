// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --fsdp-expand-units | FileCheck %s --implicit-check-not="{{(into|of) @[^ ]+ divide}}"

// Replicate axes: an all_reduce between reduce_scatter and split. The mean is
// 1/W in the first collective and 1/H in the second; a factor divides once.

// CHECK-LABEL: func.func @mean(
// CHECK:         %[[B:.+]] = fsdp.chunk_cat %{{.+}} into @p0_reduce_f32 : (tensor<8xf32>) -> tensor<4x32xf32>
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter avg %[[B]] of @p0_reduce_f32
// CHECK-NEXT:    %[[A:.+]] = fsdp.all_reduce avg %[[R]] of @p0_reduce_f32 : (tensor<32xf32>) -> tensor<32xf32>
// CHECK-NEXT:    %[[S:.+]] = fsdp.split %[[A]] of @p0_reduce_f32
// CHECK-NEXT:    return %[[S]]
// CHECK-LABEL: func.func @factor_w(
// CHECK:         reduce_scatter avg
// CHECK-NEXT:    all_reduce sum
// CHECK-LABEL: func.func @factor_n(
// CHECK:         reduce_scatter premul 1.250000e-01 %
// CHECK-NEXT:    all_reduce sum
// CHECK-LABEL: func.func @sum_factor(
// CHECK:         reduce_scatter sum
// CHECK-NEXT:    all_reduce sum
// CHECK-NEXT:    split {{.+}} divide 3.000000e+00 :
// CHECK-LABEL: func.func @mean_f16(
// CHECK:         chunk_cat {{.+}} divide 4.000000e+00 :
// CHECK-NEXT:    reduce_scatter sum
// CHECK-NEXT:    all_reduce sum
// CHECK-NEXT:    split {{.+}} divide 2.000000e+00 :
shard.grid @hsdp(shape = 2x4)
fsdp.unit @mean_u on @hsdp shard_axes [1] replicate_axes [0] { fsdp.param @p0 : tensor<8xf32> }
fsdp.unit @factor_w_u on @hsdp replicate_axes [0] divide_factor 4.0 { fsdp.param @p1 : tensor<8xf32> }
fsdp.unit @factor_n_u on @hsdp replicate_axes [0] divide_factor 8.0 { fsdp.param @p2 : tensor<8xf32> }
fsdp.unit @sum_factor_u on @hsdp replicate_axes [0] reduction sum divide_factor 3.0 { fsdp.param @p3 : tensor<8xf32> }
fsdp.unit @mean_f16_u on @hsdp replicate_axes [0] { fsdp.param @p4 : tensor<8xf16> }
func.func @mean(%g: tensor<8xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @mean_u[@p0](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @factor_w(%g: tensor<8xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @factor_w_u[@p1](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @factor_n(%g: tensor<8xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @factor_n_u[@p2](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @sum_factor(%g: tensor<8xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @sum_factor_u[@p3](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @mean_f16(%g: tensor<8xf16>) -> tensor<2xf16> {
  %s = fsdp.reduce_grads @mean_f16_u[@p4](%g) : (tensor<8xf16>) -> tensor<2xf16>
  return %s : tensor<2xf16>
}

// -----

// Replicas alone (W = 1): the mean is taken by the all_reduce.

// CHECK-LABEL: func.func @replicas(
// CHECK:         reduce_scatter sum {{.+}} : (tensor<1x32xf32>) -> tensor<32xf32>
// CHECK-NEXT:    all_reduce avg
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp shard_axes [] replicate_axes [0] { fsdp.param @w : tensor<3xf32> }
func.func @replicas(%g: tensor<3xf32>) -> tensor<3xf32> {
  %s = fsdp.reduce_grads @u[@w](%g) : (tensor<3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

// A foreign axis (tensor parallelism) forms groups of its own: no reduction
// crosses it, and it does not count in the mean.

// CHECK-LABEL: func.func @foreign(
// CHECK:         chunk_cat {{.+}} : (tensor<8xf32>) -> tensor<2x32xf32>
// CHECK-NEXT:    reduce_scatter avg
// CHECK-NEXT:    split
shard.grid @mesh(shape = 2x3)
fsdp.unit @u on @mesh shard_axes [0] { fsdp.param @w : tensor<8xf32> }
func.func @foreign(%g: tensor<8xf32>) -> tensor<4xf32> {
  %s = fsdp.reduce_grads @u[@w](%g) : (tensor<8xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
