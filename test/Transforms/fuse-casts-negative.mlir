// Casts that must stay, each for its own reason: folding would change how often
// something is rounded, or take a value away from another reader.
//
// RUN: fsdp-opt %s --fsdp-fuse-casts --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.unit @v on @dp {
  fsdp.param @table : tensor<8x3xf8E5M2> frozen
}
fsdp.bucket @r reduce @u[@wq] : f32
fsdp.bucket @r16 reduce @u[@wq] : bf16
fsdp.bucket @g gather @u[@wq] : f32
fsdp.bucket @g8 gather @v[@table] : bytes

// The program rounds to bf16; an f32 bucket fed with %g would not.
// CHECK-LABEL: func @negative_rounds_to_other_dtype(
// CHECK-NEXT:    %[[W:.+]] = arith.truncf
// CHECK-NEXT:    fsdp.chunk_cat %[[W]] into @r : (tensor<8x3xbf16>)
func.func @negative_rounds_to_other_dtype(%g: tensor<8x3xf32>) -> tensor<4x32xf32> {
  // expected-remark @below {{FuseCasts | Category:fsdp | Reason="the cast stays beside chunk_cat of bucket 'r': it rounds to bf16, which is not the wire dtype f32", names=wq}}
  %w = arith.truncf %g : tensor<8x3xf32> to tensor<8x3xbf16>
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xbf16>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// The second cast is the bucket's; the first one is a rounding of its own.
// CHECK-LABEL: func @negative_second_rounding(
// CHECK-NEXT:    %[[W:.+]] = arith.truncf %{{.+}} : tensor<8x3xf64> to tensor<8x3xf32>
// CHECK-NEXT:    fsdp.chunk_cat %[[W]] into @r16 : (tensor<8x3xf32>)
func.func @negative_second_rounding(%g: tensor<8x3xf64>) -> tensor<4x64xbf16> {
  // expected-remark @below {{it rounds to f32, which is not the wire dtype bf16}}
  %v = arith.truncf %g : tensor<8x3xf64> to tensor<8x3xf32>
  %w = arith.truncf %v : tensor<8x3xf32> to tensor<8x3xbf16>
  // expected-remark @below {{casts folded}}
  %b = fsdp.chunk_cat %w into @r16 : (tensor<8x3xbf16>) -> tensor<4x64xbf16>
  return %b : tensor<4x64xbf16>
}

// CHECK-LABEL: func @negative_widened_after_rounding(
// CHECK-NEXT:    %[[W:.+]] = arith.truncf %{{.+}} : tensor<8x3xf32> to tensor<8x3xf16>
// CHECK-NEXT:    fsdp.chunk_cat %[[W]] into @r : (tensor<8x3xf16>)
func.func @negative_widened_after_rounding(%g: tensor<8x3xf32>) -> tensor<4x32xf32> {
  // expected-remark @below {{it rounds to f16, which is not the wire dtype f32}}
  %v = arith.truncf %g : tensor<8x3xf32> to tensor<8x3xf16>
  %w = arith.extf %v : tensor<8x3xf16> to tensor<8x3xf32>
  // expected-remark @below {{casts folded}}
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// f16 to bf16 is one rounding that an f32 bucket does not do.
// CHECK-LABEL: func @negative_f16_to_bf16(
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    %[[W:.+]] = arith.truncf
// CHECK-NEXT:    fsdp.concat %[[W]] into @g : (tensor<2x3xbf16>)
func.func @negative_f16_to_bf16(%q: tensor<2x3xf16>) -> tensor<32xf32> {
  %v = arith.extf %q : tensor<2x3xf16> to tensor<2x3xf32>
  // expected-remark @below {{it rounds to bf16, which is not the wire dtype f32}}
  %w = arith.truncf %v : tensor<2x3xf32> to tensor<2x3xbf16>
  %f = fsdp.concat %w into @g : (tensor<2x3xbf16>) -> tensor<32xf32>
  return %f : tensor<32xf32>
}

// CHECK-LABEL: func @negative_split_rounds_already(
// CHECK-NEXT:    %[[S:.+]] = fsdp.split %{{.+}} of @r : (tensor<32xf32>) -> tensor<2x3xbf16>
// CHECK-NEXT:    arith.extf %[[S]]
func.func @negative_split_rounds_already(%f: tensor<32xf32>) -> tensor<2x3xf32> {
  %s = fsdp.split %f of @r : (tensor<32xf32>) -> tensor<2x3xbf16>
  // expected-remark @below {{the cast stays beside split of bucket 'r': split rounds from f32 to bf16 already}}
  %c = arith.extf %s : tensor<2x3xbf16> to tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}

// CHECK-LABEL: func @negative_unchunk_rounds_already(
// CHECK-NEXT:    fsdp.unchunk %{{.+}} of @g : (tensor<4x32xf32>) -> tensor<8x3xbf16>
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    arith.truncf
func.func @negative_unchunk_rounds_already(%p: tensor<4x32xf32>) -> tensor<8x3xf16> {
  %s = fsdp.unchunk %p of @g : (tensor<4x32xf32>) -> tensor<8x3xbf16>
  // expected-remark @below {{unchunk rounds from f32 to bf16 already}}
  %v = arith.extf %s : tensor<8x3xbf16> to tensor<8x3xf32>
  %c = arith.truncf %v : tensor<8x3xf32> to tensor<8x3xf16>
  return %c : tensor<8x3xf16>
}

// RNE_bf16(old + shard) is not RNE_bf16(old) + RNE_bf16(shard).
// CHECK-LABEL: func @negative_split_adds(
// CHECK-NEXT:    fsdp.split %{{.+}} of @r add(%{{.+}} : tensor<2x3xf32>) : (tensor<32xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    arith.truncf
func.func @negative_split_adds(%f: tensor<32xf32>, %old: tensor<2x3xf32>) -> tensor<2x3xbf16> {
  %s = fsdp.split %f of @r add(%old : tensor<2x3xf32>) : (tensor<32xf32>) -> tensor<2x3xf32>
  // expected-remark @below {{split adds before the cast}}
  %c = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %c : tensor<2x3xbf16>
}

// An addition between cast and local op keeps them apart; nothing to say.
// CHECK-LABEL: func @negative_addition_between(
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @r : (tensor<8x3xf32>)
func.func @negative_addition_between(%g: tensor<8x3xbf16>) -> tensor<4x32xf32> {
  %v = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  %w = arith.addf %v, %v : tensor<8x3xf32>
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// CHECK-LABEL: func @negative_result_with_another_use(
// CHECK-NEXT:    %[[S:.+]] = fsdp.split %{{.+}} of @r : (tensor<32xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %[[C:.+]] = arith.truncf %[[S]]
// CHECK-NEXT:    return %[[S]], %[[C]]
func.func @negative_result_with_another_use(%f: tensor<32xf32>) -> (tensor<2x3xf32>, tensor<2x3xbf16>) {
  %s = fsdp.split %f of @r : (tensor<32xf32>) -> tensor<2x3xf32>
  // expected-remark @below {{what it reads has another use}}
  %c = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %s, %c : tensor<2x3xf32>, tensor<2x3xbf16>
}

// CHECK-LABEL: func @negative_result_cast_to_two_dtypes(
// CHECK-NEXT:    fsdp.split %{{.+}} of @r : (tensor<32xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    arith.truncf
// CHECK-NEXT:    arith.truncf
func.func @negative_result_cast_to_two_dtypes(%f: tensor<32xf32>) -> (tensor<2x3xf16>, tensor<2x3xbf16>) {
  %s = fsdp.split %f of @r : (tensor<32xf32>) -> tensor<2x3xf32>
  %a = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xf16>
  // expected-remark @below {{what it reads is cast to bf16 and to f16}}
  %b = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %a, %b : tensor<2x3xf16>, tensor<2x3xbf16>
}

// Whatever the mode is: who writes one may have a reason.
// CHECK-LABEL: func @negative_rounding_mode(
// CHECK-NEXT:    arith.truncf %{{.+}} toward_zero
// CHECK-NEXT:    fsdp.chunk_cat
func.func @negative_rounding_mode(%g: tensor<8x3xf32>) -> tensor<4x64xbf16> {
  // expected-remark @below {{it has a rounding mode of its own}}
  %w = arith.truncf %g toward_zero : tensor<8x3xf32> to tensor<8x3xbf16>
  %b = fsdp.chunk_cat %w into @r16 : (tensor<8x3xbf16>) -> tensor<4x64xbf16>
  return %b : tensor<4x64xbf16>
}

// The flags of the first half of a pair count too.
// CHECK-LABEL: func @negative_fastmath_in_pair(
// CHECK-NEXT:    arith.extf %{{.+}} fastmath<nnan>
// CHECK-NEXT:    fsdp.chunk_cat
func.func @negative_fastmath_in_pair(%g: tensor<8x3xf16>) -> tensor<4x32xf32> {
  // expected-remark @below {{it has fast-math flags of its own}}
  %v = arith.extf %g fastmath<nnan> : tensor<8x3xf16> to tensor<8x3xf64>
  %w = arith.truncf %v : tensor<8x3xf64> to tensor<8x3xf32>
  // expected-remark @below {{casts folded}}
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// CHECK-LABEL: func @negative_fastmath(
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    arith.truncf %{{.+}} fastmath<contract>
// CHECK-NEXT:    fsdp.chunk_cat
func.func @negative_fastmath(%g: tensor<8x3xf16>) -> tensor<4x32xf32> {
  %v = arith.extf %g : tensor<8x3xf16> to tensor<8x3xf64>
  // expected-remark @below {{it has fast-math flags of its own}}
  %w = arith.truncf %v fastmath<contract> : tensor<8x3xf64> to tensor<8x3xf32>
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// Quantised storage is the program's to widen.
// CHECK-LABEL: func @negative_opaque(
// CHECK-NEXT:    fsdp.unchunk %{{.+}} of @g8 : (tensor<4x128xi8>) -> tensor<8x3xf8E5M2>
// CHECK-NEXT:    arith.extf
func.func @negative_opaque(%p: tensor<4x128xi8>) -> tensor<8x3xf32> {
  %s = fsdp.unchunk %p of @g8 : (tensor<4x128xi8>) -> tensor<8x3xf8E5M2>
  // expected-remark @below {{the storage of an opaque parameter is never cast}}
  %c = arith.extf %s : tensor<8x3xf8E5M2> to tensor<8x3xf32>
  return %c : tensor<8x3xf32>
}

// CHECK-LABEL: func @negative_from_float8(
// CHECK-NEXT:    arith.extf
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @r : (tensor<8x3xf32>)
func.func @negative_from_float8(%g: tensor<8x3xf8E5M2>) -> tensor<4x32xf32> {
  // expected-remark @below {{a bucket's members cannot be cast from or to f8E5M2}}
  %w = arith.extf %g : tensor<8x3xf8E5M2> to tensor<8x3xf32>
  %b = fsdp.chunk_cat %w into @r : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b : tensor<4x32xf32>
}

// Nothing to fold in the buffer form.
// CHECK-LABEL: func @buffer_form(
// CHECK-NEXT:    fsdp.chunk_cat
func.func @buffer_form(%g: memref<8x3xbf16>, %b: memref<4x32xf32>) {
  fsdp.chunk_cat %g into @r outs(%b : memref<4x32xf32>) : (memref<8x3xbf16>) -> ()
  return
}
