// RUN: split-file %s %t
// RUN: fsdp-opt %t/rules.mlir --split-input-file --fsdp-resolve-precision --fsdp-expand-units \
// RUN:   --fsdp-form-buckets | FileCheck %s
// RUN: fsdp-opt %t/rules.mlir --split-input-file --fsdp-resolve-precision --fsdp-expand-units=unused=zero \
// RUN:   --fsdp-form-buckets | FileCheck %s --check-prefix=ZERO
// RUN: fsdp-opt %t/rules.mlir --split-input-file --fsdp-resolve-precision --fsdp-expand-units \
// RUN:   --fsdp-form-buckets --fsdp-fuse-casts | FileCheck %s --check-prefix=FUSED
// RUN: fsdp-opt %t/layer.mlir --fsdp-optimize --fsdp-print-plan=format=json -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=OFFSETS
// RUN: fsdp-opt %t/layer.mlir --fsdp-optimize=align=1 --fsdp-print-plan=format=json -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=DENSE

// What the rules make of a declared program.

// R5: members as declared, segments at multiples
// of 128 bytes or dense.
// OFFSETS:      "name": "layer0_gather"
// OFFSETS:      "wire": "bytes"
// OFFSETS:      "param": "norm",
// OFFSETS-NEXT: "offset_bytes": 0,
// OFFSETS:      "param": "wq",
// OFFSETS-NEXT: "offset_bytes": 128,
// OFFSETS:      "param": "wv",
// OFFSETS-NEXT: "offset_bytes": 256,
// OFFSETS:      "param": "table",
// OFFSETS-NEXT: "offset_bytes": 384,
// OFFSETS:      "row_bytes": 512
// OFFSETS:      "name": "layer0_reduce_f32"
// OFFSETS:      "param": "wv",
// OFFSETS-NEXT: "offset_bytes": 256,
// OFFSETS:      "row_bytes": 384
// OFFSETS-NEXT: "row_elements": 96

// DENSE:      "param": "wq",
// DENSE-NEXT: "offset_bytes": 12,
// DENSE:      "param": "wv",
// DENSE-NEXT: "offset_bytes": 24,
// DENSE:      "param": "table",
// DENSE-NEXT: "offset_bytes": 36,
// DENSE:      "row_bytes": 52
// DENSE:      "name": "layer0_reduce_f32"
// DENSE:      "row_bytes": 60
// DENSE-NEXT: "row_elements": 15

// R1: one gather in spite of two param dtypes; two reductions, since the reduce
// dtypes differ. Storage and grad dtype are in no key: @wide and @narrow share.
// CHECK-LABEL: fsdp.unit @layer0
// CHECK:       fsdp.bucket @layer0_gather gather @layer0[@norm, @wq] : bytes group 0{{$}}
// CHECK-NEXT:  fsdp.bucket @norm_reduce_f32 reduce @layer0[@norm] : f32 group 1{{$}}
// CHECK-NEXT:  fsdp.bucket @wq_reduce_bf16 reduce @layer0[@wq] : bf16 group 1{{$}}
// CHECK:       fsdp.bucket @mixed_reduce_f32 reduce @mixed[@wide, @narrow] : f32 group 2{{$}}
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R1_and_negative_R1_reduce_dtypes(

// R6: frozen parameters join the gather, not the reduction; nor does one without
// gradient, unless it is packed as zero.
// CHECK-LABEL: fsdp.unit @some
// CHECK:       fsdp.bucket @some_gather gather @some[@a, @b, @c, @frozen] : f32 group 0{{$}}
// CHECK-NEXT:  fsdp.bucket @some_reduce_f32 reduce @some[@a, @b] : f32 group 1{{$}}
// CHECK-NEXT:  fsdp.bucket @c_reduce_f32 reduce @some[@c] : f32 group 2{{$}}
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R6_frozen_is_gathered(
// CHECK:         fsdp.concat %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} into @some_gather
// CHECK-LABEL: func.func @negative_R6_frozen_and_unused_are_not_reduced(
// CHECK:         fsdp.chunk_cat %{{.+}}, %{{.+}} into @some_reduce_f32 :
// ZERO-LABEL:  fsdp.unit @some
// ZERO:        fsdp.bucket @some_reduce_f32 reduce @some[@a, @b, @c] : f32 group 1{{$}}
// ZERO-NEXT:   fsdp.bucket @some_reduce_f32_0 reduce @some[@a, @b, @c] : f32 group 2{{$}}
// ZERO-LABEL:  func.func @negative_R6_frozen_and_unused_are_not_reduced(
// ZERO:          fsdp.chunk_cat {{.*}} into @some_reduce_f32 : {{.*}} -> tensor<4x96xf32>
// ZERO-LABEL:  func.func @R6_layout_without_some_gradients(
// ZERO:          fsdp.chunk_cat {{.*}} into @some_reduce_f32_0 : {{.*}} -> tensor<4x96xf32>

// R6: a tied parameter is one, and stands once in each bucket, however often it
// is used.
// CHECK-LABEL: fsdp.unit @tied
// CHECK:       fsdp.bucket @tied_gather gather @tied[@embedding, @other] : f32 group 0{{$}}
// CHECK-NEXT:  fsdp.bucket @tied_reduce_f32 reduce @tied[@embedding, @other] : f32 group 1{{$}}
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R6_tied_is_one(
// CHECK:         fsdp.concat
// CHECK-NEXT:    fsdp.all_gather
// CHECK-NOT:     fsdp.all_gather
// CHECK:         fsdp.reduce_scatter
// CHECK-NOT:     fsdp.reduce_scatter
// CHECK:         return

// R6: without trainable parameters there is a gather and no reduction.
// CHECK-LABEL: fsdp.unit @all_frozen
// CHECK:       fsdp.bucket @all_frozen_gather gather @all_frozen[@f0, @f1] : bytes group 0{{$}}
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R6_every_parameter_frozen(

// R7: forming buckets leaves the casts where they are; folding takes away the one
// that has no other use.
// CHECK-LABEL: func.func @R7_operands_keep_their_casts(
// CHECK-SAME:      %[[N:.+]]: tensor<3xf32>, %[[Q:.+]]: tensor<2x3xf32>)
// CHECK-NEXT:    %[[H:.+]] = arith.truncf %[[Q]] : tensor<2x3xf32> to tensor<2x3xbf16>
// CHECK-NEXT:    fsdp.concat %[[N]], %[[H]] into @casts_gather : (tensor<3xf32>, tensor<2x3xbf16>) -> tensor<256xi8>
// FUSED-LABEL: func.func @R7_operands_keep_their_casts(
// FUSED-SAME:      %[[N:.+]]: tensor<3xf32>, %[[Q:.+]]: tensor<2x3xf32>)
// FUSED-NEXT:    fsdp.concat %[[N]], %[[Q]] into @casts_gather : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<256xi8>

// R7: an addition keeps its own dtype, and a cast with another use stays for it.
// CHECK-LABEL: func.func @negative_R7_no_cast_crosses_an_addition(
// CHECK-SAME:      %[[A:.+]]: tensor<8x3xbf16>, %[[B:.+]]: tensor<8x3xbf16>, %[[N:.+]]: tensor<10xf32>)
// CHECK-NEXT:    %[[SUM:.+]] = arith.addf %[[A]], %[[B]] : tensor<8x3xbf16>
// CHECK-NEXT:    %[[W:.+]] = arith.extf %[[SUM]] : tensor<8x3xbf16> to tensor<8x3xf32>
// CHECK-NEXT:    fsdp.chunk_cat %[[N]], %[[W]] into @casts_reduce_f32
// FUSED-LABEL: func.func @negative_R7_no_cast_crosses_an_addition(
// FUSED-SAME:      %[[A:.+]]: tensor<8x3xbf16>, %[[B:.+]]: tensor<8x3xbf16>, %[[N:.+]]: tensor<10xf32>)
// FUSED-NEXT:    %[[SUM:.+]] = arith.addf %[[A]], %[[B]] : tensor<8x3xbf16>
// FUSED-NEXT:    %[[W:.+]] = arith.extf %[[SUM]] : tensor<8x3xbf16> to tensor<8x3xf32>
// FUSED-NEXT:    fsdp.chunk_cat %[[N]], %[[SUM]] into @casts_reduce_f32
// FUSED:         return %{{.+}}, %{{.+}}, %[[W]]

// R8: f16 divided by 6: 4 before the sum and 1.5 behind it, as each item had.
// CHECK-LABEL: func.func @R8_f16_constants_are_copied(
// CHECK:         %[[B:.+]] = fsdp.chunk_cat %{{.+}}, %{{.+}} into @six_reduce_f16 divide 4.000000e+00 :
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter sum %[[B]] of @six_reduce_f16
// CHECK-NEXT:    fsdp.split %[[R]] of @six_reduce_f16 divide 1.500000e+00 :

//--- layer.mlir
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
  fsdp.param @wv : tensor<3x8xf32> shard_dim 1
  fsdp.param @table : tensor<16x2xbf16> frozen
}
func.func @R5_layer(%n: tensor<3xf32>, %q: tensor<2x3xf32>, %v: tensor<3x2xf32>, %t: tensor<4x2xbf16>)
    -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xbf16>) {
  %w:4 = fsdp.unshard @layer0(%n, %q, %v, %t) : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xbf16>)
      -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xbf16>)
  return %w#0, %w#1, %w#2, %w#3 : tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xbf16>
}
func.func @R5_gradients(%n: tensor<10xf32>, %q: tensor<8x3xbf16>, %v: tensor<3x8xbf16>)
    -> (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>) {
  %s:3 = fsdp.reduce_grads @layer0[@wv, @norm, @wq](%v, %n, %q) : (tensor<3x8xbf16>, tensor<10xf32>, tensor<8x3xbf16>)
      -> (tensor<3x2xf32>, tensor<3xf32>, tensor<2x3xf32>)
  return %s#1, %s#2, %s#0 : tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>
}

//--- rules.mlir
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.unit @mixed on @dp precision <reduce = f32> {
  fsdp.param @wide : tensor<8xf32> precision <param = bf16>
  fsdp.param @narrow : tensor<8xbf16> precision <grad = f32>
}
func.func @R1_and_negative_R1_reduce_dtypes(
    %n: tensor<3xf32>, %q: tensor<2x3xf32>, %gn: tensor<10xf32>, %gq: tensor<8x3xbf16>, %g: tensor<8xbf16>)
    -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) {
  %w:2 = fsdp.unshard @layer0(%n, %q) : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  %s:2 = fsdp.reduce_grads @layer0[@norm, @wq](%gn, %gq) : (tensor<10xf32>, tensor<8x3xbf16>) -> (tensor<3xf32>, tensor<2x3xf32>)
  %m:2 = fsdp.reduce_grads @mixed[@wide, @narrow](%g, %g) : (tensor<8xbf16>, tensor<8xbf16>) -> (tensor<2xf32>, tensor<2xf32>)
  return %w#0, %w#1, %s#0, %s#1, %m#0, %m#1
      : tensor<10xf32>, tensor<8x3xbf16>, tensor<3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @some on @dp {
  fsdp.param @a : tensor<8xf32>
  fsdp.param @b : tensor<8xf32>
  fsdp.param @c : tensor<8xf32>
  fsdp.param @frozen : tensor<8xf32> frozen
}
func.func @R6_frozen_is_gathered(%s: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %w:4 = fsdp.unshard @some(%s, %s, %s, %s) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %w#0, %w#1, %w#2, %w#3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func @negative_R6_frozen_and_unused_are_not_reduced(%g: tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %s:2 = fsdp.reduce_grads @some[@a, @b](%g, %g) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %s#0, %s#1 : tensor<2xf32>, tensor<2xf32>
}

func.func @R6_layout_without_some_gradients(%g: tensor<8xf32>) -> tensor<2xf32> {
  %s = fsdp.reduce_grads @some[@c](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return %s : tensor<2xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @tied on @dp {
  fsdp.param @embedding : tensor<8xf32>
  fsdp.param @other : tensor<8xf32>
}
func.func @R6_tied_is_one(%s: tensor<2xf32>, %first: tensor<8xf32>, %second: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2xf32>) {
  %w:2 = fsdp.unshard @tied(%s, %s) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %both = arith.addf %first, %second : tensor<8xf32>
  %g:2 = fsdp.reduce_grads @tied[@embedding, @other](%both, %first) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %w#0, %w#0, %w#1, %g#0, %g#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @all_frozen on @dp {
  fsdp.param @f0 : tensor<8xf32> frozen
  fsdp.param @f1 : tensor<8xi64> frozen
}
func.func @R6_every_parameter_frozen(%s: tensor<2xf32>, %i: tensor<2xi64>) -> (tensor<8xf32>, tensor<8xi64>) {
  %w:2 = fsdp.unshard @all_frozen(%s, %i) : (tensor<2xf32>, tensor<2xi64>) -> (tensor<8xf32>, tensor<8xi64>)
  fsdp.reduce_grads @all_frozen[]() : () -> ()
  return %w#0, %w#1 : tensor<8xf32>, tensor<8xi64>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @casts on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @n : tensor<10xf32> precision <param = f32>
  fsdp.param @q : tensor<8x3xf32>
}
func.func @R7_operands_keep_their_casts(%n: tensor<3xf32>, %q: tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>) {
  %w:2 = fsdp.unshard @casts(%n, %q) : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
}
func.func @negative_R7_no_cast_crosses_an_addition(%a: tensor<8x3xbf16>, %b: tensor<8x3xbf16>, %n: tensor<10xf32>)
    -> (tensor<3xf32>, tensor<2x3xf32>, tensor<8x3xf32>) {
  %sum = arith.addf %a, %b : tensor<8x3xbf16>
  %wide = arith.extf %sum : tensor<8x3xbf16> to tensor<8x3xf32>
  %s:2 = fsdp.reduce_grads @casts[@n, @q](%n, %wide) : (tensor<10xf32>, tensor<8x3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>)
  return %s#0, %s#1, %wide : tensor<3xf32>, tensor<2x3xf32>, tensor<8x3xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @six on @dp divide_factor 6.0 {
  fsdp.param @six.a : tensor<8xf16>
  fsdp.param @six.b : tensor<8xf16>
}
func.func @R8_f16_constants_are_copied(%g: tensor<8xf16>) -> (tensor<2xf16>, tensor<2xf16>) {
  %s:2 = fsdp.reduce_grads @six[@six.a, @six.b](%g, %g) : (tensor<8xf16>, tensor<8xf16>) -> (tensor<2xf16>, tensor<2xf16>)
  return %s#0, %s#1 : tensor<2xf16>, tensor<2xf16>
}
