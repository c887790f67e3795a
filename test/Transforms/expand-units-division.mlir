// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --fsdp-expand-units \
// RUN:   | FileCheck %s --implicit-check-not="{{(into|of) @[^ ]+ divide}}" --implicit-check-not=fsdp.all_reduce

// The division table, row by row. Each unit has a reduction of its own.

// CHECK-LABEL: @sum(
// CHECK:         reduce_scatter sum
// CHECK-LABEL: @factor_one(
// CHECK:         reduce_scatter sum
// CHECK-LABEL: @mean_f32(
// CHECK:         reduce_scatter avg
// CHECK-LABEL: @mean_f64(
// CHECK:         reduce_scatter avg
// CHECK-LABEL: @factor_w(
// CHECK:         reduce_scatter avg
// CHECK-LABEL: @factor_300(
// CHECK:         reduce_scatter premul 0.0033333334140479565 %
// CHECK-LABEL: @factor_300_f64(
// CHECK:         reduce_scatter premul 0.0033333333333333335 %
// CHECK-LABEL: @factor_3_bf16(
// CHECK:         reduce_scatter premul 0.333984375 %
// CHECK-LABEL: @factor_small(
// CHECK:         reduce_scatter premul 4.000000e+00 %
// CHECK-LABEL: @sum_factor(
// CHECK:         reduce_scatter sum
// CHECK:         fsdp.split {{.+}} divide 3.000000e+00 :
// CHECK-LABEL: @sum_factor_w(
// CHECK:         reduce_scatter sum
// CHECK:         fsdp.split {{.+}} divide 4.000000e+00 :
shard.grid @dp(shape = 4)
fsdp.unit @sum_u on @dp reduction sum { fsdp.param @p0 : tensor<4xf16> }
fsdp.unit @factor_one_u on @dp divide_factor 1.0 { fsdp.param @p1 : tensor<4xf16> }
fsdp.unit @mean_f32_u on @dp reduction avg { fsdp.param @p2 : tensor<4xf32> }
fsdp.unit @mean_f64_u on @dp { fsdp.param @p3 : tensor<4xf64> }
fsdp.unit @factor_w_u on @dp divide_factor 4.0 { fsdp.param @p4 : tensor<4xf32> }
fsdp.unit @factor_300_u on @dp divide_factor 300.0 { fsdp.param @p5 : tensor<4xf32> }
fsdp.unit @factor_300_f64_u on @dp divide_factor 300.0 { fsdp.param @p6 : tensor<4xf64> }
fsdp.unit @factor_3_bf16_u on @dp divide_factor 3.0 { fsdp.param @p7 : tensor<4xbf16> }
fsdp.unit @factor_small_u on @dp divide_factor 0.25 { fsdp.param @p8 : tensor<4xf32> }
fsdp.unit @sum_factor_u on @dp reduction sum divide_factor 3.0 { fsdp.param @p9 : tensor<4xbf16> }
fsdp.unit @sum_factor_w_u on @dp reduction sum divide_factor 4.0 { fsdp.param @p10 : tensor<4xf32> }

func.func @sum(%g: tensor<4xf16>) -> tensor<1xf16> {
  %s = fsdp.reduce_grads @sum_u[@p0](%g) : (tensor<4xf16>) -> tensor<1xf16>
  return %s : tensor<1xf16>
}
func.func @factor_one(%g: tensor<4xf16>) -> tensor<1xf16> {
  %s = fsdp.reduce_grads @factor_one_u[@p1](%g) : (tensor<4xf16>) -> tensor<1xf16>
  return %s : tensor<1xf16>
}
func.func @mean_f32(%g: tensor<4xf32>) -> tensor<1xf32> {
  %s = fsdp.reduce_grads @mean_f32_u[@p2](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
func.func @mean_f64(%g: tensor<4xf64>) -> tensor<1xf64> {
  %s = fsdp.reduce_grads @mean_f64_u[@p3](%g) : (tensor<4xf64>) -> tensor<1xf64>
  return %s : tensor<1xf64>
}
func.func @factor_w(%g: tensor<4xf32>) -> tensor<1xf32> {
  %s = fsdp.reduce_grads @factor_w_u[@p4](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
func.func @factor_300(%g: tensor<4xf32>) -> tensor<1xf32> {
  %s = fsdp.reduce_grads @factor_300_u[@p5](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
func.func @factor_300_f64(%g: tensor<4xf64>) -> tensor<1xf64> {
  %s = fsdp.reduce_grads @factor_300_f64_u[@p6](%g) : (tensor<4xf64>) -> tensor<1xf64>
  return %s : tensor<1xf64>
}
func.func @factor_3_bf16(%g: tensor<4xbf16>) -> tensor<1xbf16> {
  %s = fsdp.reduce_grads @factor_3_bf16_u[@p7](%g) : (tensor<4xbf16>) -> tensor<1xbf16>
  return %s : tensor<1xbf16>
}
func.func @factor_small(%g: tensor<4xf32>) -> tensor<1xf32> {
  %s = fsdp.reduce_grads @factor_small_u[@p8](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
func.func @sum_factor(%g: tensor<4xbf16>) -> tensor<1xbf16> {
  %s = fsdp.reduce_grads @sum_factor_u[@p9](%g) : (tensor<4xbf16>) -> tensor<1xbf16>
  return %s : tensor<1xbf16>
}
func.func @sum_factor_w(%g: tensor<4xf32>) -> tensor<1xf32> {
  %s = fsdp.reduce_grads @sum_factor_w_u[@p10](%g) : (tensor<4xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// One rank: without a factor nothing happens, with one it divides once.

// CHECK-LABEL: @one_rank(
// CHECK:         reduce_scatter sum
// CHECK:         reduce_scatter premul 2.500000e-01 %
// CHECK:         chunk_cat {{.+}} divide 2.000000e+00 :
// CHECK:         reduce_scatter sum
// CHECK:         fsdp.split {{.+}} divide 2.000000e+00 :
shard.grid @one(shape = 1)
fsdp.unit @plain_u on @one { fsdp.param @p0 : tensor<4xf16> }
fsdp.unit @factor_u on @one divide_factor 4.0 { fsdp.param @p1 : tensor<4xf32> }
fsdp.unit @factor_f16_u on @one divide_factor 4.0 { fsdp.param @p2 : tensor<4xf16> }
func.func @one_rank(%h: tensor<4xf16>, %f: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf32>, tensor<4xf16>) {
  %0 = fsdp.reduce_grads @plain_u[@p0](%h) : (tensor<4xf16>) -> tensor<4xf16>
  %1 = fsdp.reduce_grads @factor_u[@p1](%f) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = fsdp.reduce_grads @factor_f16_u[@p2](%h) : (tensor<4xf16>) -> tensor<4xf16>
  return %0, %1, %2 : tensor<4xf16>, tensor<4xf32>, tensor<4xf16>
}

// -----

// f16 divides by a power of two near the root before the sum, by the rest after.

// CHECK-LABEL: @predivisors(
// CHECK:         chunk_cat {{.+}} @d2_reduce_f16 divide 2.000000e+00 :
// CHECK:         fsdp.split {{.+}} of @d2_reduce_f16 :
// CHECK:         chunk_cat {{.+}} @d3_reduce_f16 divide 2.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d3_reduce_f16 divide 1.500000e+00 :
// CHECK:         chunk_cat {{.+}} @d4_reduce_f16 divide 2.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d4_reduce_f16 divide 2.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d6_reduce_f16 divide 4.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d6_reduce_f16 divide 1.500000e+00 :
// CHECK:         chunk_cat {{.+}} @d8_reduce_f16 divide 4.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d8_reduce_f16 divide 2.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d12_reduce_f16 divide 4.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d12_reduce_f16 divide 3.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d16_reduce_f16 divide 4.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d16_reduce_f16 divide 4.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d24_reduce_f16 divide 8.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d24_reduce_f16 divide 3.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d64_reduce_f16 divide 8.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d64_reduce_f16 divide 8.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d96_reduce_f16 divide 1.600000e+01 :
// CHECK:         fsdp.split {{.+}} @d96_reduce_f16 divide 6.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d128_reduce_f16 divide 1.600000e+01 :
// CHECK:         fsdp.split {{.+}} @d128_reduce_f16 divide 8.000000e+00 :
// CHECK:         chunk_cat {{.+}} @d37_reduce_f16 :
// CHECK:         fsdp.split {{.+}} @d37_reduce_f16 divide 3.750000e+01 :
// CHECK:         chunk_cat {{.+}} @d300_reduce_f16 divide 8.000000e+00 :
// CHECK:         fsdp.split {{.+}} @d300_reduce_f16 divide 3.750000e+01 :
// CHECK:         chunk_cat {{.+}} @d512_reduce_f16 divide 3.200000e+01 :
// CHECK:         fsdp.split {{.+}} @d512_reduce_f16 divide 1.600000e+01 :
shard.grid @dp(shape = 2)
fsdp.unit @d2_u on @dp { fsdp.param @d2 : tensor<2xf16> }
fsdp.unit @d3_u on @dp reduction sum divide_factor 3.0 { fsdp.param @d3 : tensor<2xf16> }
fsdp.unit @d4_u on @dp divide_factor 4.0 { fsdp.param @d4 : tensor<2xf16> }
fsdp.unit @d6_u on @dp divide_factor 6.0 { fsdp.param @d6 : tensor<2xf16> }
fsdp.unit @d8_u on @dp divide_factor 8.0 { fsdp.param @d8 : tensor<2xf16> }
fsdp.unit @d12_u on @dp divide_factor 12.0 { fsdp.param @d12 : tensor<2xf16> }
fsdp.unit @d16_u on @dp divide_factor 16.0 { fsdp.param @d16 : tensor<2xf16> }
fsdp.unit @d24_u on @dp divide_factor 24.0 { fsdp.param @d24 : tensor<2xf16> }
fsdp.unit @d64_u on @dp divide_factor 64.0 { fsdp.param @d64 : tensor<2xf16> }
fsdp.unit @d96_u on @dp divide_factor 96.0 { fsdp.param @d96 : tensor<2xf16> }
fsdp.unit @d128_u on @dp divide_factor 128.0 { fsdp.param @d128 : tensor<2xf16> }
fsdp.unit @d37_u on @dp divide_factor 37.5 { fsdp.param @d37 : tensor<2xf16> }
fsdp.unit @d300_u on @dp divide_factor 300.0 { fsdp.param @d300 : tensor<2xf16> }
fsdp.unit @d512_u on @dp divide_factor 512.0 { fsdp.param @d512 : tensor<2xf16> }
func.func @predivisors(%g: tensor<2xf16>) {
  %0 = fsdp.reduce_grads @d2_u[@d2](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %1 = fsdp.reduce_grads @d3_u[@d3](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %2 = fsdp.reduce_grads @d4_u[@d4](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %3 = fsdp.reduce_grads @d6_u[@d6](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d8 = fsdp.reduce_grads @d8_u[@d8](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d12 = fsdp.reduce_grads @d12_u[@d12](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d16 = fsdp.reduce_grads @d16_u[@d16](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d24 = fsdp.reduce_grads @d24_u[@d24](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d64 = fsdp.reduce_grads @d64_u[@d64](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d96 = fsdp.reduce_grads @d96_u[@d96](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %d128 = fsdp.reduce_grads @d128_u[@d128](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %4 = fsdp.reduce_grads @d37_u[@d37](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %5 = fsdp.reduce_grads @d300_u[@d300](%g) : (tensor<2xf16>) -> tensor<1xf16>
  %6 = fsdp.reduce_grads @d512_u[@d512](%g) : (tensor<2xf16>) -> tensor<1xf16>
  return
}
