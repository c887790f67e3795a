// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --fsdp-expand-units=average=after \
// RUN:   --remarks-filter=fsdp --remark-policy=all 2>%t.remarks \
// RUN:   | FileCheck %s --implicit-check-not="{{avg|premul|into @[^ ]+ divide}}"
// RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not='Missed] ExpandUnits' < %t.remarks
// RUN: fsdp-opt %s --split-input-file --fsdp-optimize=average=after \
// RUN:   | FileCheck %s --check-prefix=PACKED --implicit-check-not="arith."

// With `average=after` collectives add, and `split` divides by the whole divisor
// once, whatever the wire and however the divisor was given. What is not divided
// by default is not divided here. Nothing else is added: in the packed form, the
// division and the cast after it are part of the copy.

// CHECK-LABEL: @mean_bf16(
// CHECK:         reduce_scatter sum %
// CHECK:         fsdp.split {{.+}} divide 3.000000e+00 :
// PACKED-LABEL: @mean_bf16(
// PACKED-NEXT:    fsdp.chunk_cat
// PACKED-NEXT:    fsdp.reduce_scatter sum
// PACKED-NEXT:    fsdp.split {{.+}} divide 3.000000e+00 : (tensor<64xbf16>) -> tensor<2xf32>
// PACKED-NEXT:    return
// CHECK-LABEL: @mean_f16(
// CHECK:         reduce_scatter sum %
// CHECK:         fsdp.split {{.+}} divide 3.000000e+00 :
// CHECK-LABEL: @factor_w(
// CHECK:         reduce_scatter sum %
// CHECK:         fsdp.split {{.+}} divide 3.000000e+00 :
// CHECK-LABEL: @factor(
// CHECK:         reduce_scatter sum %
// CHECK:         fsdp.split {{.+}} divide 3.750000e+01 :
// CHECK-LABEL: @sum_factor(
// CHECK:         reduce_scatter sum %
// CHECK:         fsdp.split {{.+}} divide 7.000000e+00 :
// CHECK-LABEL: @negative_sum(
// CHECK:         reduce_scatter sum %
// CHECK-NOT:     divide
// CHECK-LABEL: @negative_factor_one(
// CHECK:         reduce_scatter sum %
// CHECK-NOT:     divide
// CHECK:       return
// REMARK:      [Missed] ExpandUnits | Category:fsdp | Reason="the sum of 3 ranks in f16 overflows above 65504: 'average=before' divides by 2 first", names=mean_f16_u
shard.grid @dp(shape = 3)
fsdp.unit @mean_bf16_u on @dp precision <reduce = bf16> { fsdp.param @p0 : tensor<6xf32> }
fsdp.unit @mean_f16_u on @dp { fsdp.param @p1 : tensor<6xf16> }
fsdp.unit @factor_w_u on @dp divide_factor 3.0 { fsdp.param @p2 : tensor<6xf32> }
fsdp.unit @factor_u on @dp divide_factor 37.5 { fsdp.param @p3 : tensor<6xbf16> }
fsdp.unit @sum_factor_u on @dp reduction sum divide_factor 7.0 { fsdp.param @p4 : tensor<6xf64> }
fsdp.unit @negative_sum_u on @dp reduction sum { fsdp.param @p5 : tensor<6xbf16> }
fsdp.unit @negative_factor_one_u on @dp divide_factor 1.0 { fsdp.param @p6 : tensor<6xbf16> }
func.func @mean_bf16(%g: tensor<6xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @mean_bf16_u[@p0](%g) : (tensor<6xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @mean_f16(%g: tensor<6xf16>) -> tensor<2xf16> {
  %s = fsdp.reduce_grads @mean_f16_u[@p1](%g) : (tensor<6xf16>) -> tensor<2xf16>
  return %s : tensor<2xf16>
}
func.func @factor_w(%g: tensor<6xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @factor_w_u[@p2](%g) : (tensor<6xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}
func.func @factor(%g: tensor<6xbf16>) -> tensor<2xbf16> {
  %s = fsdp.reduce_grads @factor_u[@p3](%g) : (tensor<6xbf16>) -> tensor<2xbf16>
  return %s : tensor<2xbf16>
}
func.func @sum_factor(%g: tensor<6xf64>) -> tensor<2xf64> {
  %s = fsdp.reduce_grads @sum_factor_u[@p4](%g) : (tensor<6xf64>) -> tensor<2xf64>
  return %s : tensor<2xf64>
}
func.func @negative_sum(%g: tensor<6xbf16>) -> tensor<2xbf16> {
  %s = fsdp.reduce_grads @negative_sum_u[@p5](%g) : (tensor<6xbf16>) -> tensor<2xbf16>
  return %s : tensor<2xbf16>
}
func.func @negative_factor_one(%g: tensor<6xbf16>) -> tensor<2xbf16> {
  %s = fsdp.reduce_grads @negative_factor_one_u[@p6](%g) : (tensor<6xbf16>) -> tensor<2xbf16>
  return %s : tensor<2xbf16>
}

// -----

// On a hybrid grid neither collective divides: the sum over all shards and
// replicas is divided by their number. One rank divides by nothing, one rank per
// shard group by the replicas.

// CHECK-LABEL: @hybrid(
// CHECK:         reduce_scatter sum %
// CHECK:         all_reduce sum %
// CHECK:         fsdp.split {{.+}} divide 6.000000e+00 :
// CHECK-LABEL: @replicas(
// CHECK:         reduce_scatter sum %
// CHECK:         all_reduce sum %
// CHECK:         fsdp.split {{.+}} divide 6.000000e+00 :
shard.grid @hsdp(shape = 2x3)
fsdp.unit @hybrid_u on @hsdp replicate_axes [0] { fsdp.param @p0 : tensor<6xbf16> }
fsdp.unit @replicas_u on @hsdp replicate_axes [0, 1] { fsdp.param @p1 : tensor<6xf32> }
func.func @hybrid(%g: tensor<6xbf16>) -> tensor<2xbf16> {
  %s = fsdp.reduce_grads @hybrid_u[@p0](%g) : (tensor<6xbf16>) -> tensor<2xbf16>
  return %s : tensor<2xbf16>
}
func.func @replicas(%g: tensor<6xf32>) -> tensor<6xf32> {
  %s = fsdp.reduce_grads @replicas_u[@p1](%g) : (tensor<6xf32>) -> tensor<6xf32>
  return %s : tensor<6xf32>
}
