// RUN: fsdp-opt %s --fsdp-form-buckets --split-input-file --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s

// One function per reason for which two neighbours in payload order stay apart;
// negative_R2_size_limit, with oversize, is in form-buckets-limit.mlir.

// CHECK-LABEL: fsdp.bucket @g gather
// CHECK:       fsdp.bucket @r reduce
// CHECK-LABEL: func.func @negative_R1_other_kind(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
}
fsdp.bucket @g gather @u[@a] : f32 align 1 group 0
fsdp.bucket @r reduce @u[@a] : f32 align 1 group 0
func.func @negative_R1_other_kind(%a: tensor<2xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %f = fsdp.concat %a into @g : (tensor<2xf32>) -> tensor<2xf32>
  %g = fsdp.all_gather %f of @g : (tensor<2xf32>) -> tensor<2x2xf32>
  %w = fsdp.unchunk %g of @g : (tensor<2x2xf32>) -> tensor<4xf32>
  %p = fsdp.chunk_cat %d into @r : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{[Missed] FormBuckets | Category:fsdp | Reason=other-kind, names="g,r"}}
  %r = fsdp.reduce_scatter avg %p of @r : (tensor<2x2xf32>) -> tensor<2xf32>
  %s = fsdp.split %r of @r : (tensor<2xf32>) -> tensor<2xf32>
  return %w, %s : tensor<4xf32>, tensor<2xf32>
}

// -----

// Gathers of other blocks are left alone, even of one group.
// CHECK:       fsdp.bucket @a gather
// CHECK:       fsdp.bucket @b gather
// CHECK-LABEL: func.func @negative_R1_other_block(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<2xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1 group 0
fsdp.bucket @b gather @u[@b] : f32 align 1 group 0
func.func @negative_R1_other_block(%a: tensor<2xf32>, %b: tensor<1xf32>, %c: i1) {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  scf.if %c {
    %fb = fsdp.concat %b into @b : (tensor<1xf32>) -> tensor<1xf32>
    // expected-remark @below {{Reason=other-block, names="a,b"}}
    %gb = fsdp.all_gather %fb of @b : (tensor<1xf32>) -> tensor<2x1xf32>
    %wb = fsdp.unchunk %gb of @b : (tensor<2x1xf32>) -> tensor<2xf32>
    "test.use"(%wa, %wb) : (tensor<4xf32>, tensor<2xf32>) -> ()
  }
  return
}

// -----

// CHECK:       fsdp.bucket @a gather
// CHECK:       fsdp.bucket @b gather
// CHECK-LABEL: func.func @negative_R1_other_axes(
shard.grid @hsdp(shape = 2x2)
fsdp.unit @dense on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @a : tensor<4xf32>
}
fsdp.unit @experts on @hsdp shard_axes [0] replicate_axes [1] {
  fsdp.param @b : tensor<2xf32>
}
fsdp.bucket @a gather @dense[@a] : f32 align 1 group 0
fsdp.bucket @b gather @experts[@b] : f32 align 1 group 0
func.func @negative_R1_other_axes(%a: tensor<2xf32>, %b: tensor<1xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  %fb = fsdp.concat %b into @b : (tensor<1xf32>) -> tensor<1xf32>
  // expected-remark @below {{Reason=other-axes, names="a,b"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<1xf32>) -> tensor<2x1xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x1xf32>) -> tensor<2xf32>
  return %wa, %wb : tensor<4xf32>, tensor<2xf32>
}

// -----

// A gather in another dtype than the param dtype rounds: as bytes it would not.
// CHECK:       fsdp.bucket @a gather @u[@a] : bf16
// CHECK:       fsdp.bucket @b gather @u[@b] : f32
// CHECK-LABEL: func.func @negative_R1_other_dtype(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<2xf32>
}
fsdp.bucket @a gather @u[@a] : bf16 align 1 group 0
fsdp.bucket @b gather @u[@b] : f32 align 1 group 0
func.func @negative_R1_other_dtype(%a: tensor<2xf32>, %b: tensor<1xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xbf16>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xbf16>) -> tensor<2x2xbf16>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xbf16>) -> tensor<4xf32>
  %fb = fsdp.concat %b into @b : (tensor<1xf32>) -> tensor<1xf32>
  // expected-remark @below {{Reason=other-dtype, names="a,b"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<1xf32>) -> tensor<2x1xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x1xf32>) -> tensor<2xf32>
  return %wa, %wb : tensor<4xf32>, tensor<2xf32>
}

// -----

// Each pair of neighbours differs in one point: keyword, multiplier,
// accumulation, divide, divide of the split, an addition, the all_reduce.
// CHECK-COUNT-9: fsdp.bucket
// CHECK-NOT:     _reduce_
// CHECK-LABEL: func.func @negative_R1_R8_other_reduction(
// CHECK-COUNT-9: fsdp.reduce_scatter
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @p0 : tensor<2xbf16>
  fsdp.param @p1 : tensor<2xbf16>
  fsdp.param @p2 : tensor<2xbf16>
  fsdp.param @p3 : tensor<2xbf16>
  fsdp.param @p4 : tensor<2xbf16>
  fsdp.param @p5 : tensor<2xbf16>
  fsdp.param @p6 : tensor<2xbf16>
  fsdp.param @p7 : tensor<2xbf16>
  fsdp.param @p8 : tensor<2xbf16>
}
fsdp.bucket @b0 reduce @u[@p0] : bf16 align 1 group 0
fsdp.bucket @b1 reduce @u[@p1] : bf16 align 1 group 0
fsdp.bucket @b2 reduce @u[@p2] : bf16 align 1 group 0
fsdp.bucket @b3 reduce @u[@p3] : bf16 align 1 group 0
fsdp.bucket @b4 reduce @u[@p4] : bf16 align 1 group 0
fsdp.bucket @b5 reduce @u[@p5] : bf16 align 1 group 0
fsdp.bucket @b6 reduce @u[@p6] : bf16 align 1 group 0
fsdp.bucket @b7 reduce @u[@p7] : bf16 align 1 group 0
fsdp.bucket @b8 reduce @u[@p8] : bf16 align 1 group 0
func.func @negative_R1_R8_other_reduction(%g: tensor<2xbf16>, %old: tensor<1xbf16>) {
  %c0 = fsdp.chunk_cat %g into @b0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  %r0 = fsdp.reduce_scatter avg %c0 of @b0 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s0 = fsdp.split %r0 of @b0 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c1 = fsdp.chunk_cat %g into @b1 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b0,b1"}}
  %r1 = fsdp.reduce_scatter premul 0.5 %c1 of @b1 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s1 = fsdp.split %r1 of @b1 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c2 = fsdp.chunk_cat %g into @b2 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b1,b2"}}
  %r2 = fsdp.reduce_scatter premul 0.25 %c2 of @b2 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s2 = fsdp.split %r2 of @b2 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c3 = fsdp.chunk_cat %g into @b3 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b2,b3"}}
  %r3 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c3 of @b3 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s3 = fsdp.split %r3 of @b3 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c4 = fsdp.chunk_cat %g into @b4 divide 2.0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b3,b4"}}
  %r4 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c4 of @b4 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s4 = fsdp.split %r4 of @b4 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c5 = fsdp.chunk_cat %g into @b5 divide 2.0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b4,b5"}}
  %r5 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c5 of @b5 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s5 = fsdp.split %r5 of @b5 divide 1.5 : (tensor<1xbf16>) -> tensor<1xbf16>
  %c6 = fsdp.chunk_cat %g into @b6 divide 2.0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b5,b6"}}
  %r6 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c6 of @b6 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %s6 = fsdp.split %r6 of @b6 divide 1.5 add(%old : tensor<1xbf16>) : (tensor<1xbf16>) -> tensor<1xbf16>
  %c7 = fsdp.chunk_cat %g into @b7 divide 2.0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b6,b7"}}
  %r7 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c7 of @b7 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %a7 = fsdp.all_reduce sum %r7 of @b7 : (tensor<1xbf16>) -> tensor<1xbf16>
  %s7 = fsdp.split %a7 of @b7 divide 1.5 add(%old : tensor<1xbf16>) : (tensor<1xbf16>) -> tensor<1xbf16>
  %c8 = fsdp.chunk_cat %g into @b8 divide 2.0 : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{Reason=other-reduction, names="b7,b8"}}
  %r8 = fsdp.reduce_scatter premul 0.25 accumulate f32 %c8 of @b8 : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %a8 = fsdp.all_reduce avg %r8 of @b8 : (tensor<1xbf16>) -> tensor<1xbf16>
  %s8 = fsdp.split %a8 of @b8 divide 1.5 add(%old : tensor<1xbf16>) : (tensor<1xbf16>) -> tensor<1xbf16>
  "test.use"(%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7, %s8)
      : (tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>, tensor<1xbf16>) -> ()
  return
}

// -----

// Two gathers of one unit are two, with or without group numbers: a parameter
// stands once in what comes from one unit op.
// CHECK:       fsdp.bucket @u_gather gather @u[@a, @b] : f32 align 1{{$}}
// CHECK:       fsdp.bucket @u_gather_0 gather @u[@a, @b] : f32 align 1{{$}}
// CHECK-LABEL: func.func @negative_R6_other_unit(
// CHECK-COUNT-2: fsdp.all_gather
// CHECK-NOT:     fsdp.all_gather
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<2xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @u[@b] : f32 align 1
func.func @negative_R6_other_unit(%a: tensor<2xf32>, %b: tensor<1xf32>)
    -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) {
  %f0 = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason="formed u_gather"}}
  %g0 = fsdp.all_gather %f0 of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %w0 = fsdp.unchunk %g0 of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  %f1 = fsdp.concat %b into @b : (tensor<1xf32>) -> tensor<1xf32>
  %g1 = fsdp.all_gather %f1 of @b : (tensor<1xf32>) -> tensor<2x1xf32>
  %w1 = fsdp.unchunk %g1 of @b : (tensor<2x1xf32>) -> tensor<2xf32>
  %f2 = fsdp.concat %b into @b : (tensor<1xf32>) -> tensor<1xf32>
  %g2 = fsdp.all_gather %f2 of @b : (tensor<1xf32>) -> tensor<2x1xf32>
  %w2 = fsdp.unchunk %g2 of @b : (tensor<2x1xf32>) -> tensor<2xf32>
  %f3 = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason="formed u_gather_0"}}
  // expected-remark @below {{Reason=other-unit, names="b,a"}}
  %g3 = fsdp.all_gather %f3 of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %w3 = fsdp.unchunk %g3 of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  return %w0, %w1, %w2, %w3 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>
}

// -----

// The flat shard of @a is kept as a partial sum, in two chains that are one
// item: neither merges. The others merge around it.
// CHECK:       fsdp.bucket @a reduce @u[@a] : f32 align 1 group 0
// CHECK:       fsdp.bucket @u_reduce_f32 reduce @u[@b, @c] : f32 align 1 group 0
// CHECK-LABEL: func.func @negative_R9_partial(
// CHECK:         %[[R0:.+]] = fsdp.reduce_scatter avg %{{.+}} of @a
// CHECK:         %[[R1:.+]] = fsdp.reduce_scatter avg %{{.+}} of @a
// CHECK-NEXT:    %[[SUM:.+]] = arith.addf %[[R0]], %[[R1]]
// CHECK-NEXT:    fsdp.all_reduce avg %[[SUM]] of @a
// CHECK:         fsdp.reduce_scatter avg %{{.+}} of @u_reduce_f32
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<2xf32>
  fsdp.param @c : tensor<2xf32>
}
fsdp.bucket @a reduce @u[@a] : f32 align 1 group 0
fsdp.bucket @b reduce @u[@b] : f32 align 1 group 0
fsdp.bucket @c reduce @u[@c] : f32 align 1 group 0
func.func @negative_R9_partial(%a: tensor<4xf32>, %a1: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) {
  %c0 = fsdp.chunk_cat %a into @a : (tensor<4xf32>) -> tensor<2x2xf32>
  %r0 = fsdp.reduce_scatter avg %c0 of @a : (tensor<2x2xf32>) -> tensor<2xf32>
  %c1 = fsdp.chunk_cat %a1 into @a : (tensor<4xf32>) -> tensor<2x2xf32>
  %r1 = fsdp.reduce_scatter avg %c1 of @a : (tensor<2x2xf32>) -> tensor<2xf32>
  %sum = arith.addf %r0, %r1 : tensor<2xf32>
  %l = fsdp.all_reduce avg %sum of @a : (tensor<2xf32>) -> tensor<2xf32>
  %s = fsdp.split %l of @a : (tensor<2xf32>) -> tensor<2xf32>
  %cb = fsdp.chunk_cat %b into @b : (tensor<2xf32>) -> tensor<2x1xf32>
  // expected-remark @below {{Reason="formed u_reduce_f32"}}
  // expected-remark @below {{Reason=partial, names="a,b"}}
  %rb = fsdp.reduce_scatter avg %cb of @b : (tensor<2x1xf32>) -> tensor<1xf32>
  %lb = fsdp.all_reduce avg %rb of @b : (tensor<1xf32>) -> tensor<1xf32>
  %sb = fsdp.split %lb of @b : (tensor<1xf32>) -> tensor<1xf32>
  %cc = fsdp.chunk_cat %c into @c : (tensor<2xf32>) -> tensor<2x1xf32>
  %rc = fsdp.reduce_scatter avg %cc of @c : (tensor<2x1xf32>) -> tensor<1xf32>
  %lc = fsdp.all_reduce avg %rc of @c : (tensor<1xf32>) -> tensor<1xf32>
  %sc = fsdp.split %lc of @c : (tensor<1xf32>) -> tensor<1xf32>
  return %s, %sb, %sc : tensor<2xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// A flat shard that leaves the function: its type is in the signature.
// CHECK:       fsdp.bucket @a reduce
// CHECK:       fsdp.bucket @b reduce
// CHECK-LABEL: func.func @negative_R9_partial_leaves(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<2xf32>
}
fsdp.bucket @a reduce @u[@a] : f32 align 1 group 0
fsdp.bucket @b reduce @u[@b] : f32 align 1 group 0
func.func @negative_R9_partial_leaves(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<1xf32>) {
  %ca = fsdp.chunk_cat %a into @a : (tensor<4xf32>) -> tensor<2x2xf32>
  %ra = fsdp.reduce_scatter avg %ca of @a : (tensor<2x2xf32>) -> tensor<2xf32>
  %cb = fsdp.chunk_cat %b into @b : (tensor<2xf32>) -> tensor<2x1xf32>
  // expected-remark @below {{Reason=partial, names="a,b"}}
  %rb = fsdp.reduce_scatter avg %cb of @b : (tensor<2x1xf32>) -> tensor<1xf32>
  %sb = fsdp.split %rb of @b : (tensor<1xf32>) -> tensor<1xf32>
  return %ra, %sb : tensor<2xf32>, tensor<1xf32>
}

// -----

// b and d need a's result: they do not join {a, c}, and are offered again.
// CHECK:       fsdp.bucket @u_gather gather @u[@a, @c] : f32 align 1
// CHECK:       fsdp.bucket @u_gather_0 gather @u[@b, @d] : f32 align 1
// CHECK-LABEL: func.func @negative_R3_depends(
// CHECK:         all_gather %{{.+}} of @u_gather
// CHECK:         "test.use"
// CHECK:         "test.region"
// CHECK:         all_gather %{{.+}} of @u_gather_0
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
  fsdp.param @c : tensor<4xf32>
  fsdp.param @d : tensor<4xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @u[@b] : f32 align 1
fsdp.bucket @c gather @u[@c] : f32 align 1
fsdp.bucket @d gather @u[@d] : f32 align 1
func.func @negative_R3_depends(%a: tensor<2xf32>, %b: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason="formed u_gather"}}
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  %x = "test.use"(%wa, %b) : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  %fb = fsdp.concat %x into @b : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason=depends, names="a,b"}}
  // expected-remark @below {{Reason="formed u_gather_0"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<2xf32>) -> tensor<2x2xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x2xf32>) -> tensor<4xf32>
  %fc = fsdp.concat %b into @c : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason=depends, names="b,c"}}
  %gc = fsdp.all_gather %fc of @c : (tensor<2xf32>) -> tensor<2x2xf32>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x2xf32>) -> tensor<4xf32>
  %y = "test.region"() ({
    "test.yield"(%wa) : (tensor<4xf32>) -> ()
  }) : () -> tensor<2xf32>
  %fd = fsdp.concat %y into @d : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason=depends, names="c,d"}}
  %gd = fsdp.all_gather %fd of @d : (tensor<2xf32>) -> tensor<2x2xf32>
  %wd = fsdp.unchunk %gd of @d : (tensor<2x2xf32>) -> tensor<4xf32>
  return %wb, %wc, %wd : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// b's shard exists only after a's result was used, for something else.
// CHECK:       fsdp.bucket @a gather
// CHECK:       fsdp.bucket @b gather
// CHECK-LABEL: func.func @negative_R4_used_before(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @u[@b] : f32 align 1
func.func @negative_R4_used_before(%a: tensor<2xf32>) -> tensor<4xf32> {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  "test.use"(%wa) : (tensor<4xf32>) -> ()
  %b = "test.make"() : () -> tensor<2xf32>
  %fb = fsdp.concat %b into @b : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason=used-before, names="a,b"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<2xf32>) -> tensor<2x2xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x2xf32>) -> tensor<4xf32>
  return %wb : tensor<4xf32>
}

// -----

// {a, c} at c's place would push b, by the order of first members, below the
// first use of b's shard. d is in nobody's way.
// CHECK:       fsdp.bucket @u_reduce_f32 reduce @u[@a, @d] : f32
// CHECK:       fsdp.bucket @b reduce @u[@b] : bf16
// CHECK-LABEL: func.func @negative_R4_used_before_by_other(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
  fsdp.param @c : tensor<4xf32>
  fsdp.param @d : tensor<4xf32>
}
fsdp.bucket @a reduce @u[@a] : f32 align 1
fsdp.bucket @b reduce @u[@b] : bf16 align 1
fsdp.bucket @c reduce @u[@c] : f32 align 1
fsdp.bucket @d reduce @u[@d] : f32 align 1
func.func @negative_R4_used_before_by_other(%g: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %cd = fsdp.chunk_cat %g into @d : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason=used-before, names="c,d"}}
  %rd = fsdp.reduce_scatter avg %cd of @d : (tensor<2x2xf32>) -> tensor<2xf32>
  %sd = fsdp.split %rd of @d : (tensor<2xf32>) -> tensor<2xf32>
  %ca = fsdp.chunk_cat %g into @a : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason="formed u_reduce_f32"}}
  %ra = fsdp.reduce_scatter avg %ca of @a : (tensor<2x2xf32>) -> tensor<2xf32>
  %sa = fsdp.split %ra of @a : (tensor<2xf32>) -> tensor<2xf32>
  %cb = fsdp.chunk_cat %g into @b : (tensor<4xf32>) -> tensor<2x2xbf16>
  // expected-remark @below {{Reason=other-dtype, names="a,b"}}
  %rb = fsdp.reduce_scatter avg %cb of @b : (tensor<2x2xbf16>) -> tensor<2xbf16>
  %sb = fsdp.split %rb of @b : (tensor<2xbf16>) -> tensor<2xf32>
  "test.use"(%sb) : (tensor<2xf32>) -> ()
  %cc = fsdp.chunk_cat %g into @c : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason=other-dtype, names="b,c"}}
  %rc = fsdp.reduce_scatter avg %cc of @c : (tensor<2x2xf32>) -> tensor<2xf32>
  %sc = fsdp.split %rc of @c : (tensor<2xf32>) -> tensor<2xf32>
  return %sa, %sc, %sd : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// The bucket of @a is used twice, the second time by a gather whose result has
// another use than unchunk: no item of it merges.
// CHECK:       fsdp.bucket @a gather
// CHECK:       fsdp.bucket @b gather
// CHECK-LABEL: func.func @negative_R9_partial_gather(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @u[@b] : f32 align 1
func.func @negative_R9_partial_gather(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  %fb = fsdp.concat %b into @b : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason=partial, names="a,b"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<2xf32>) -> tensor<2x2xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x2xf32>) -> tensor<4xf32>
  %ga2 = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  "test.use"(%ga2) : (tensor<2x2xf32>) -> ()
  return %wa, %wb : tensor<4xf32>, tensor<4xf32>
}
