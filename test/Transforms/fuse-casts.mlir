// Casts that fold, and what is left of the IR and said in remarks. Two runs:
// one for the IR and the remarks, one after canonicalisation, on which nothing
// may depend.
//
// RUN: fsdp-opt %s --fsdp-fuse-casts --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --canonicalize --fsdp-fuse-casts | FileCheck %s --check-prefix=CANON
//
// CANON-NOT: arith

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
  fsdp.param @half : tensor<8x3xf16> precision <param = bf16, reduce = f32>
}
fsdp.bucket @r reduce @u[@norm, @wq] : f32
fsdp.bucket @rq reduce @u[@wq] : f32
fsdp.bucket @rq16 reduce @u[@wq] : bf16
fsdp.bucket @rh reduce @u[@half] : f16
fsdp.bucket @g gather @u[@norm, @wq] : bytes
fsdp.bucket @gh gather @u[@half] : bf16
fsdp.bucket @gh16 gather @u[@half] : f16

// CHECK-LABEL: func @widening_before_chunk_cat(
// CHECK-SAME:      %[[N:.+]]: tensor<10xf32>, %[[G:.+]]: tensor<8x3xbf16>)
// CHECK-NEXT:    %[[B:.+]] = fsdp.chunk_cat %[[N]], %[[G]] into @r : (tensor<10xf32>, tensor<8x3xbf16>) -> tensor<4x64xf32>
// CHECK-NEXT:    return %[[B]]
func.func @widening_before_chunk_cat(%n: tensor<10xf32>, %g: tensor<8x3xbf16>) -> tensor<4x64xf32> {
  %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  // expected-remark @below {{FuseCasts | Category:fsdp | Reason="casts folded into chunk_cat of bucket 'r'", bytes=96, names=wq}}
  %b = fsdp.chunk_cat %n, %w into @r : (tensor<10xf32>, tensor<8x3xf32>) -> tensor<4x64xf32>
  return %b : tensor<4x64xf32>
}

// One decision per op, whatever the number of its members.
// CHECK-LABEL: func @two_members(
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}}, %{{.+}} into @r : (tensor<10xf16>, tensor<8x3xf64>)
func.func @two_members(%n: tensor<10xf16>, %g: tensor<8x3xf64>) -> tensor<4x64xf32> {
  %v = arith.extf %n : tensor<10xf16> to tensor<10xf32>
  %w = arith.truncf %g : tensor<8x3xf64> to tensor<8x3xf32>
  // expected-remark @below {{bytes=136, names="norm,wq"}}
  %b = fsdp.chunk_cat %v, %w into @r : (tensor<10xf32>, tensor<8x3xf32>) -> tensor<4x64xf32>
  return %b : tensor<4x64xf32>
}

// Division comes after the cast to the wire dtype, so nothing moves past it.
// CHECK-LABEL: func @narrowing_before_chunk_cat_that_divides(
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @rq16 divide 2.0{{0*}}e+00 : (tensor<8x3xf32>) -> tensor<4x64xbf16>
func.func @narrowing_before_chunk_cat_that_divides(%g: tensor<8x3xf32>) -> tensor<4x64xbf16> {
  %w = arith.truncf %g : tensor<8x3xf32> to tensor<8x3xbf16>
  // expected-remark @below {{casts folded into chunk_cat of bucket 'rq16'}}
  %b = fsdp.chunk_cat %w into @rq16 divide 2.0 : (tensor<8x3xbf16>) -> tensor<4x64xbf16>
  return %b : tensor<4x64xbf16>
}

// In a byte bucket the member's wire dtype is its param dtype.
// CHECK-LABEL: func @narrowing_before_concat(
// CHECK-NEXT:    fsdp.concat %{{.+}}, %{{.+}} into @g : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<256xi8>
func.func @narrowing_before_concat(%n: tensor<3xf32>, %q: tensor<2x3xf32>) -> tensor<256xi8> {
  %w = arith.truncf %q : tensor<2x3xf32> to tensor<2x3xbf16>
  // expected-remark @below {{casts folded into concat of bucket 'g'", bytes=12, names=wq}}
  %f = fsdp.concat %n, %w into @g : (tensor<3xf32>, tensor<2x3xbf16>) -> tensor<256xi8>
  return %f : tensor<256xi8>
}

// CHECK-LABEL: func @narrowing_after_split(
// CHECK-NEXT:    %[[S:.+]] = fsdp.split %{{.+}} of @rq divide 3.0{{0*}}e+00 : (tensor<32xf32>) -> tensor<2x3xbf16>
// CHECK-NEXT:    return %[[S]]
func.func @narrowing_after_split(%f: tensor<32xf32>) -> tensor<2x3xbf16> {
  // expected-remark @below {{casts folded into split of bucket 'rq'", bytes=24, names=wq}}
  %s = fsdp.split %f of @rq divide 3.0 : (tensor<32xf32>) -> tensor<2x3xf32>
  %c = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %c : tensor<2x3xbf16>
}

// CHECK-LABEL: func @widening_after_unchunk(
// CHECK-NEXT:    fsdp.unchunk %{{.+}} of @g : (tensor<4x256xi8>) -> (tensor<10xf64>, tensor<8x3xf32>)
func.func @widening_after_unchunk(%p: tensor<4x256xi8>) -> (tensor<10xf64>, tensor<8x3xf32>) {
  // expected-remark @below {{casts folded into unchunk of bucket 'g'", bytes=88, names="norm,wq"}}
  %w:2 = fsdp.unchunk %p of @g : (tensor<4x256xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  %n = arith.extf %w#0 : tensor<10xf32> to tensor<10xf64>
  %q = arith.extf %w#1 : tensor<8x3xbf16> to tensor<8x3xf32>
  return %n, %q : tensor<10xf64>, tensor<8x3xf32>
}

// The op's own widening is exact, so the cast behind it rounds the same value.
// CHECK-LABEL: func @narrowing_after_exact_split(
// CHECK-NEXT:    fsdp.split %{{.+}} of @rq : (tensor<32xf32>) -> tensor<2x3xf16>
// CHECK-NEXT:    return
func.func @narrowing_after_exact_split(%f: tensor<32xf32>) -> tensor<2x3xf16> {
  // expected-remark @below {{casts folded into split}}
  %s = fsdp.split %f of @rq : (tensor<32xf32>) -> tensor<2x3xf64>
  %c = arith.truncf %s : tensor<2x3xf64> to tensor<2x3xf16>
  return %c : tensor<2x3xf16>
}

// Two bytes to two other bytes go through f32: one rounding, one cast.
// CHECK-LABEL: func @f16_to_bf16_before_concat(
// CHECK-NEXT:    fsdp.concat %{{.+}} into @gh : (tensor<2x3xf16>) -> tensor<64xbf16>
func.func @f16_to_bf16_before_concat(%h: tensor<2x3xf16>) -> tensor<64xbf16> {
  %w = arith.extf %h : tensor<2x3xf16> to tensor<2x3xf32>
  %n = arith.truncf %w : tensor<2x3xf32> to tensor<2x3xbf16>
  // expected-remark @below {{bytes=36, names=half}}
  %f = fsdp.concat %n into @gh : (tensor<2x3xbf16>) -> tensor<64xbf16>
  return %f : tensor<64xbf16>
}

// CHECK-LABEL: func @f16_to_bf16_after_split(
// CHECK-NEXT:    fsdp.split %{{.+}} of @rh : (tensor<64xf16>) -> tensor<2x3xbf16>
// CHECK-NEXT:    return
func.func @f16_to_bf16_after_split(%f: tensor<64xf16>) -> tensor<2x3xbf16> {
  // expected-remark @below {{bytes=36, names=half}}
  %s = fsdp.split %f of @rh : (tensor<64xf16>) -> tensor<2x3xf16>
  %w = arith.extf %s : tensor<2x3xf16> to tensor<2x3xf32>
  %n = arith.truncf %w : tensor<2x3xf32> to tensor<2x3xbf16>
  return %n : tensor<2x3xbf16>
}

// The pair is exact as a whole, though its second half alone is not: it goes
// whatever the wire dtype.
// CHECK-LABEL: func @exact_pair(
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @rq16 : (tensor<8x3xf16>) -> tensor<4x64xbf16>
func.func @exact_pair(%g: tensor<8x3xf16>) -> tensor<4x64xbf16> {
  %w = arith.extf %g : tensor<8x3xf16> to tensor<8x3xf64>
  %n = arith.truncf %w : tensor<8x3xf64> to tensor<8x3xf32>
  // expected-remark @below {{bytes=288, names=wq}}
  %b = fsdp.chunk_cat %n into @rq16 : (tensor<8x3xf32>) -> tensor<4x64xbf16>
  return %b : tensor<4x64xbf16>
}

// Casts that are equal are one cast.
// CHECK-LABEL: func @equal_casts_after_split(
// CHECK-NEXT:    %[[S:.+]] = fsdp.split %{{.+}} of @rq : (tensor<32xf32>) -> tensor<2x3xbf16>
// CHECK-NEXT:    return %[[S]], %[[S]]
func.func @equal_casts_after_split(%f: tensor<32xf32>) -> (tensor<2x3xbf16>, tensor<2x3xbf16>) {
  // expected-remark @below {{bytes=24, names=wq}}
  %s = fsdp.split %f of @rq : (tensor<32xf32>) -> tensor<2x3xf32>
  %a = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  %b = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %a, %b : tensor<2x3xbf16>, tensor<2x3xbf16>
}

// Two local ops share a cast: it dies with the second one.
// CHECK-LABEL: func @shared_cast(
// CHECK-NEXT:    fsdp.chunk_cat %[[G:.+]] into @rq : (tensor<8x3xbf16>)
// CHECK-NEXT:    fsdp.chunk_cat %[[G]] into @rq divide 3.0{{0*}}e+00 : (tensor<8x3xbf16>)
// CHECK-NEXT:    return
func.func @shared_cast(%g: tensor<8x3xbf16>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  // expected-remark @below {{bytes=0, names=wq}}
  %a = fsdp.chunk_cat %w into @rq : (tensor<8x3xf32>) -> tensor<4x32xf32>
  // expected-remark @below {{bytes=96, names=wq}}
  %b = fsdp.chunk_cat %w into @rq divide 3.0 : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %a, %b : tensor<4x32xf32>, tensor<4x32xf32>
}

// The local op reads the source; the cast stays for its other use.
// CHECK-LABEL: func @cast_with_another_use(
// CHECK-SAME:      %[[G:.+]]: tensor<8x3xbf16>)
// CHECK-NEXT:    %[[W:.+]] = arith.extf %[[G]]
// CHECK-NEXT:    %[[B:.+]] = fsdp.chunk_cat %[[G]] into @rq : (tensor<8x3xbf16>)
// CHECK-NEXT:    return %[[B]], %[[W]]
// CANON-LABEL: func @cast_with_another_use(
// CANON:         arith.extf
// CANON-NOT:     arith.{{ext|trunc}}
func.func @cast_with_another_use(%g: tensor<8x3xbf16>) -> (tensor<4x32xf32>, tensor<8x3xf32>) {
  // expected-remark @below {{Reason="the cast is folded, but stays for its other use", bytes=96, names=wq}}
  %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  // expected-remark @below {{bytes=0, names=wq}}
  %b = fsdp.chunk_cat %w into @rq : (tensor<8x3xf32>) -> tensor<4x32xf32>
  return %b, %w : tensor<4x32xf32>, tensor<8x3xf32>
}

// A cast outside the loop in which the local op stands.
// CHECK-LABEL: func @into_loop(
// CHECK-NOT:     arith.extf
// CHECK:         scf.for
// CHECK-NEXT:      fsdp.chunk_cat %{{.+}} into @rq : (tensor<8x3xbf16>)
func.func @into_loop(%g: tensor<8x3xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = arith.extf %g : tensor<8x3xbf16> to tensor<8x3xf32>
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{bytes=96, names=wq}}
    %b = fsdp.chunk_cat %w into @rq : (tensor<8x3xf32>) -> tensor<4x32xf32>
    "other.use"(%b) : (tensor<4x32xf32>) -> ()
  }
  return
}
