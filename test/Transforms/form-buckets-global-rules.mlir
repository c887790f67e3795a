// RUN: fsdp-opt %s --fsdp-form-buckets=scope=global --split-input-file --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --fsdp-form-buckets="scope=global order=execution" --split-input-file | FileCheck %s --check-prefix=EXECUTION
// RUN: fsdp-opt %s --fsdp-form-buckets=scope=global --fsdp-form-buckets=scope=global --split-input-file | FileCheck %s

// What shows only in the IR of the rules across units; which items merge is in
// form-buckets-global.mlir.

// R5: units in the order of their ops, members as their unit declares them.
// With order=execution both follow the program.
// CHECK-LABEL: fsdp.unit @u
// CHECK:       fsdp.bucket @v_u_gather gather @v[@v0], @u[@u0, @u1] : bytes align 1{{$}}
// CHECK-LABEL: func.func @R5_payload(
// CHECK-SAME:      %[[U0:.+]]: tensor<2xf32>, %[[U1:.+]]: tensor<1xbf16>, %[[V0:.+]]: tensor<1xf32>)
// CHECK-NEXT:    fsdp.concat %[[V0]], %[[U0]], %[[U1]] into @v_u_gather : (tensor<1xf32>, tensor<2xf32>, tensor<1xbf16>) -> tensor<14xi8>
// CHECK-NEXT:    fsdp.all_gather
// CHECK-NEXT:    %[[W:.+]]:3 = fsdp.unchunk
// CHECK-NEXT:    return %[[W]]#1, %[[W]]#2, %[[W]]#0
// EXECUTION:       fsdp.bucket @v_u_gather gather @v[@v0], @u[@u1, @u0] : bytes align 1{{$}}
// EXECUTION-LABEL: func.func @R5_payload(
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @u0 : tensor<4xf32>
  fsdp.param @u1 : tensor<2xbf16>
}
fsdp.unit @v on @dp {
  fsdp.param @v0 : tensor<2xf32>
}
fsdp.bucket @v0 gather @v[@v0] : f32 align 1 group 0
fsdp.bucket @u1 gather @u[@u1] : bf16 align 1 group 1
fsdp.bucket @u0 gather @u[@u0] : f32 align 1 group 1
func.func @R5_payload(%u0: tensor<2xf32>, %u1: tensor<1xbf16>, %v0: tensor<1xf32>)
    -> (tensor<4xf32>, tensor<2xbf16>, tensor<2xf32>) {
  %f0 = fsdp.concat %v0 into @v0 : (tensor<1xf32>) -> tensor<1xf32>
  // expected-remark @below {{Reason="formed v_u_gather", bytes=28, names="v0,u0,u1"}}
  %g0 = fsdp.all_gather %f0 of @v0 : (tensor<1xf32>) -> tensor<2x1xf32>
  %w0 = fsdp.unchunk %g0 of @v0 : (tensor<2x1xf32>) -> tensor<2xf32>
  %f1 = fsdp.concat %u1 into @u1 : (tensor<1xbf16>) -> tensor<1xbf16>
  %g1 = fsdp.all_gather %f1 of @u1 : (tensor<1xbf16>) -> tensor<2x1xbf16>
  %w1 = fsdp.unchunk %g1 of @u1 : (tensor<2x1xbf16>) -> tensor<2xbf16>
  %f2 = fsdp.concat %u0 into @u0 : (tensor<2xf32>) -> tensor<2xf32>
  %g2 = fsdp.all_gather %f2 of @u0 : (tensor<2xf32>) -> tensor<2x2xf32>
  %w2 = fsdp.unchunk %g2 of @u0 : (tensor<2x2xf32>) -> tensor<4xf32>
  return %w2, %w1, %w0 : tensor<4xf32>, tensor<2xbf16>, tensor<2xf32>
}

// -----

// R6: what a second unit op of one unit makes is gathered once more, so no
// member stands twice. That closes the bucket.
// CHECK:       fsdp.bucket @u_v_gather gather @u[@a], @v[@b] : f32 align 1{{$}}
// CHECK-NEXT:  fsdp.bucket @v_u_gather gather @v[@b], @u[@a] : f32 align 1{{$}}
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @negative_R6_no_member_twice(
// CHECK-COUNT-2: fsdp.all_gather
// CHECK-NOT:     fsdp.all_gather
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32> frozen
}
fsdp.unit @v on @dp {
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @a0 gather @u[@a] : f32 align 1 group 0
fsdp.bucket @b0 gather @v[@b] : f32 align 1 group 1
fsdp.bucket @b1 gather @v[@b] : f32 align 1 group 2
fsdp.bucket @a1 gather @u[@a] : f32 align 1 group 3
func.func @negative_R6_no_member_twice(%a: tensor<2xf32>, %b: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %f0 = fsdp.concat %a into @a0 : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason="formed u_v_gather", bytes=32, names="a0,b0"}}
  %g0 = fsdp.all_gather %f0 of @a0 : (tensor<2xf32>) -> tensor<2x2xf32>
  %w0 = fsdp.unchunk %g0 of @a0 : (tensor<2x2xf32>) -> tensor<4xf32>
  %f1 = fsdp.concat %b into @b0 : (tensor<2xf32>) -> tensor<2xf32>
  %g1 = fsdp.all_gather %f1 of @b0 : (tensor<2xf32>) -> tensor<2x2xf32>
  %w1 = fsdp.unchunk %g1 of @b0 : (tensor<2x2xf32>) -> tensor<4xf32>
  %f2 = fsdp.concat %b into @b1 : (tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @below {{Reason="formed v_u_gather", bytes=32, names="b1,a1"}}
  // expected-remark @below {{Reason=other-unit, names="b0,b1"}}
  %g2 = fsdp.all_gather %f2 of @b1 : (tensor<2xf32>) -> tensor<2x2xf32>
  %w2 = fsdp.unchunk %g2 of @b1 : (tensor<2x2xf32>) -> tensor<4xf32>
  %f3 = fsdp.concat %a into @a1 : (tensor<2xf32>) -> tensor<2xf32>
  %g3 = fsdp.all_gather %f3 of @a1 : (tensor<2xf32>) -> tensor<2x2xf32>
  %w3 = fsdp.unchunk %g3 of @a1 : (tensor<2x2xf32>) -> tensor<4xf32>
  return %w0, %w1, %w2, %w3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// R7: no cast is added, dropped or moved, except that one behind a reduction goes
// along. R8: constants are copied; items that differ in one stay apart.
// CHECK:       fsdp.bucket @u_w_reduce_f16 reduce @u[@a], @w[@c] : f16 align 1{{$}}
// CHECK-NEXT:  fsdp.bucket @b reduce @v[@b] : f16 align 1 group 1
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R7_R8_casts_and_constants(
// CHECK-SAME:      %[[A:.+]]: tensor<4xf32>, %[[B:.+]]: tensor<4xf16>, %[[C:.+]]: tensor<4xf16>)
// CHECK-NEXT:    %[[H:.+]] = arith.truncf %[[A]] : tensor<4xf32> to tensor<4xf16>
// CHECK-NEXT:    %[[P:.+]] = fsdp.chunk_cat %[[H]], %[[C]] into @u_w_reduce_f16 divide 4.0
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter sum %[[P]] of @u_w_reduce_f16
// CHECK-NEXT:    %[[S:.+]]:2 = fsdp.split %[[R]] of @u_w_reduce_f16 divide 1.5
// CHECK-NEXT:    %[[E:.+]] = arith.extf %[[S]]#0 : tensor<2xf16> to tensor<2xf32>
// CHECK-NEXT:    fsdp.chunk_cat %[[B]] into @b divide 2.0
// CHECK:         return %[[E]]
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
}
fsdp.unit @v on @dp {
  fsdp.param @b : tensor<4xf16>
}
fsdp.unit @w on @dp {
  fsdp.param @c : tensor<4xf16>
}
fsdp.bucket @a reduce @u[@a] : f16 align 1 group 0
fsdp.bucket @b reduce @v[@b] : f16 align 1 group 1
fsdp.bucket @c reduce @w[@c] : f16 align 1 group 2
func.func @R7_R8_casts_and_constants(%a: tensor<4xf32>, %b: tensor<4xf16>, %c: tensor<4xf16>)
    -> (tensor<2xf32>, tensor<2xf16>, tensor<2xf16>) {
  %h = arith.truncf %a : tensor<4xf32> to tensor<4xf16>
  %pa = fsdp.chunk_cat %h into @a divide 4.0 : (tensor<4xf16>) -> tensor<2x2xf16>
  // expected-remark @below {{Reason="formed u_w_reduce_f16", bytes=16, names="a,c"}}
  %ra = fsdp.reduce_scatter sum %pa of @a : (tensor<2x2xf16>) -> tensor<2xf16>
  %sa = fsdp.split %ra of @a divide 1.5 : (tensor<2xf16>) -> tensor<2xf16>
  %ea = arith.extf %sa : tensor<2xf16> to tensor<2xf32>
  %pb = fsdp.chunk_cat %b into @b divide 2.0 : (tensor<4xf16>) -> tensor<2x2xf16>
  // expected-remark @below {{Reason=other-reduction, names="a,b"}}
  %rb = fsdp.reduce_scatter sum %pb of @b : (tensor<2x2xf16>) -> tensor<2xf16>
  %sb = fsdp.split %rb of @b divide 3.0 : (tensor<2xf16>) -> tensor<2xf16>
  %pc = fsdp.chunk_cat %c into @c divide 4.0 : (tensor<4xf16>) -> tensor<2x2xf16>
  // expected-remark @below {{Reason=other-reduction, names="b,c"}}
  %rc = fsdp.reduce_scatter sum %pc of @c : (tensor<2x2xf16>) -> tensor<2xf16>
  %sc = fsdp.split %rc of @c divide 1.5 : (tensor<2xf16>) -> tensor<2xf16>
  return %ea, %sb, %sc : tensor<2xf32>, tensor<2xf16>, tensor<2xf16>
}

// -----

// R9: reduce-scatter, all-reduce and split merge together, never across axes,
// and not where a partial sum leaves the function.
// CHECK:       fsdp.bucket @l0_l1_reduce_f32 reduce @l0[@l0.w], @l1[@l1.w] : f32 align 1{{$}}
// CHECK-NEXT:  fsdp.bucket @experts.r reduce @experts[@experts.w] : f32 align 1 group 1
// CHECK-NEXT:  fsdp.bucket @l2.r reduce @l2[@l2.w] : f32 align 1 group 3
// CHECK-LABEL: func.func @R9_hybrid(
// CHECK:         fsdp.chunk_cat %{{.+}}, %{{.+}} into @l0_l1_reduce_f32
// CHECK-NEXT:    fsdp.reduce_scatter avg
// CHECK-NEXT:    fsdp.all_reduce avg
// CHECK-NEXT:    fsdp.split
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @experts.r
shard.grid @hsdp(shape = 2x2)
fsdp.unit @l0 on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @l0.w : tensor<4xf32>
}
fsdp.unit @experts on @hsdp shard_axes [0, 1] {
  fsdp.param @experts.w : tensor<4xf32>
}
fsdp.unit @l1 on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @l1.w : tensor<4xf32>
}
fsdp.unit @l2 on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @l2.w : tensor<4xf32>
}
fsdp.bucket @l0.r reduce @l0[@l0.w] : f32 align 1 group 0
fsdp.bucket @experts.r reduce @experts[@experts.w] : f32 align 1 group 1
fsdp.bucket @l1.r reduce @l1[@l1.w] : f32 align 1 group 2
fsdp.bucket @l2.r reduce @l2[@l2.w] : f32 align 1 group 3
func.func @R9_hybrid(%g: tensor<4xf32>) -> (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>, tensor<2xf32>) {
  %p0 = fsdp.chunk_cat %g into @l0.r : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason="formed l0_l1_reduce_f32", bytes=32, names="l0.r,l1.r"}}
  %r0 = fsdp.reduce_scatter avg %p0 of @l0.r : (tensor<2x2xf32>) -> tensor<2xf32>
  %a0 = fsdp.all_reduce avg %r0 of @l0.r : (tensor<2xf32>) -> tensor<2xf32>
  %s0 = fsdp.split %a0 of @l0.r : (tensor<2xf32>) -> tensor<2xf32>
  %pe = fsdp.chunk_cat %g into @experts.r : (tensor<4xf32>) -> tensor<4x1xf32>
  // expected-remark @below {{Reason=other-axes, names="l0.r,experts.r"}}
  %re = fsdp.reduce_scatter avg %pe of @experts.r : (tensor<4x1xf32>) -> tensor<1xf32>
  %se = fsdp.split %re of @experts.r : (tensor<1xf32>) -> tensor<1xf32>
  %p1 = fsdp.chunk_cat %g into @l1.r : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason=other-axes, names="experts.r,l1.r"}}
  %r1 = fsdp.reduce_scatter avg %p1 of @l1.r : (tensor<2x2xf32>) -> tensor<2xf32>
  %a1 = fsdp.all_reduce avg %r1 of @l1.r : (tensor<2xf32>) -> tensor<2xf32>
  %s1 = fsdp.split %a1 of @l1.r : (tensor<2xf32>) -> tensor<2xf32>
  %p2 = fsdp.chunk_cat %g into @l2.r : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-remark @below {{Reason=partial, names="l1.r,l2.r"}}
  %r2 = fsdp.reduce_scatter avg %p2 of @l2.r : (tensor<2x2xf32>) -> tensor<2xf32>
  return %s0, %se, %s1, %r2 : tensor<2xf32>, tensor<1xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// R10 names what R3 refuses: {a,c} needs b, and d needs a, so through the formed bucket d depends
// on b. The bucket stands behind b, whose first member is a later one.
// CHECK:       fsdp.bucket @u_gather gather @u[@a, @c] : bf16 align 1
// CHECK-LABEL: func.func @negative_R10_depends_through_a_bucket(
// CHECK:         fsdp.all_gather %{{.+}} of @b
// CHECK:         "test.use"
// CHECK:         fsdp.all_gather %{{.+}} of @u_gather
// CHECK:         "test.use"
// CHECK:         fsdp.all_gather %{{.+}} of @d
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<2xbf16>
  fsdp.param @c : tensor<2xbf16>
  fsdp.param @b : tensor<2xf32>
  fsdp.param @d : tensor<2xf32>
}
// A gather that rounds has the dtype in its key, as with gather=per-dtype.
fsdp.bucket @a gather @u[@a] : bf16 align 1
fsdp.bucket @b gather @u[@b] : f16 align 1
fsdp.bucket @c gather @u[@c] : bf16 align 1
fsdp.bucket @d gather @u[@d] : f16 align 1
func.func @negative_R10_depends_through_a_bucket(%s: tensor<1xbf16>, %t: tensor<1xf16>)
    -> (tensor<2xbf16>, tensor<2xf16>, tensor<2xbf16>, tensor<2xf16>) {
  %fa = fsdp.concat %s into @a : (tensor<1xbf16>) -> tensor<1xbf16>
  // expected-remark @below {{Reason="formed u_gather", bytes=8, names="a,c"}}
  %ga = fsdp.all_gather %fa of @a : (tensor<1xbf16>) -> tensor<2x1xbf16>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x1xbf16>) -> tensor<2xbf16>
  %fb = fsdp.concat %t into @b : (tensor<1xf16>) -> tensor<1xf16>
  // expected-remark @below {{Reason=other-dtype, names="c,b"}}
  %gb = fsdp.all_gather %fb of @b : (tensor<1xf16>) -> tensor<2x1xf16>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x1xf16>) -> tensor<2xf16>
  %xc = "test.use"(%wb) : (tensor<2xf16>) -> tensor<1xbf16>
  %fc = fsdp.concat %xc into @c : (tensor<1xbf16>) -> tensor<1xbf16>
  %gc = fsdp.all_gather %fc of @c : (tensor<1xbf16>) -> tensor<2x1xbf16>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x1xbf16>) -> tensor<2xbf16>
  %xd = "test.use"(%wa) : (tensor<2xbf16>) -> tensor<1xf16>
  %fd = fsdp.concat %xd into @d : (tensor<1xf16>) -> tensor<1xf16>
  // expected-remark @below {{Reason=depends, names="b,d"}}
  %gd = fsdp.all_gather %fd of @d : (tensor<1xf16>) -> tensor<2x1xf16>
  %wd = fsdp.unchunk %gd of @d : (tensor<2x1xf16>) -> tensor<2xf16>
  return %wa, %wb, %wc, %wd : tensor<2xbf16>, tensor<2xf16>, tensor<2xbf16>, tensor<2xf16>
}

// -----

// R10: one reason, the first that applies: another kind, other axes and another
// dtype.
// CHECK-LABEL: func.func @negative_R10_first_reason(
shard.grid @dp(shape = 2x2)
fsdp.unit @u on @dp shard_axes [0] { fsdp.param @a : tensor<2xf32> }
fsdp.unit @v on @dp shard_axes [1] { fsdp.param @b : tensor<2xbf16> }
fsdp.bucket @a gather @u[@a] : f32 align 1 group 0
fsdp.bucket @b reduce @v[@b] : bf16 align 1 group 1
func.func @negative_R10_first_reason(%s: tensor<1xf32>, %g: tensor<2xbf16>) -> (tensor<2xf32>, tensor<1xbf16>) {
  %fa = fsdp.concat %s into @a : (tensor<1xf32>) -> tensor<1xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<1xf32>) -> tensor<2x1xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x1xf32>) -> tensor<2xf32>
  %pb = fsdp.chunk_cat %g into @b : (tensor<2xbf16>) -> tensor<2x1xbf16>
  // expected-remark @below {{[Missed] FormBuckets | Category:fsdp | Reason=other-kind, names="a,b"}}
  %rb = fsdp.reduce_scatter sum %pb of @b : (tensor<2x1xbf16>) -> tensor<1xbf16>
  %sb = fsdp.split %rb of @b : (tensor<1xbf16>) -> tensor<1xbf16>
  return %wa, %sb : tensor<2xf32>, tensor<1xbf16>
}

// -----

// R10: a merged bucket is one remark. The name of a bucket says the first and the last of its units. Names mean
// nothing to any pass.
// CHECK:       fsdp.bucket @u_to_w_gather gather @u[@a], @v[@b], @w[@c] : f32 align 1{{$}}
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp { fsdp.param @a : tensor<2xf32> }
fsdp.unit @v on @dp { fsdp.param @b : tensor<2xf32> }
fsdp.unit @w on @dp { fsdp.param @c : tensor<2xf32> }
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @v[@b] : f32 align 1
fsdp.bucket @c gather @w[@c] : f32 align 1
func.func @R10_merged(%s: tensor<1xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %fa = fsdp.concat %s into @a : (tensor<1xf32>) -> tensor<1xf32>
  // expected-remark @below {{[Passed] FormBuckets | Category:fsdp | Reason="formed u_to_w_gather", bytes=24, names="a,b,c"}}
  %ga = fsdp.all_gather %fa of @a : (tensor<1xf32>) -> tensor<2x1xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x1xf32>) -> tensor<2xf32>
  %fb = fsdp.concat %s into @b : (tensor<1xf32>) -> tensor<1xf32>
  %gb = fsdp.all_gather %fb of @b : (tensor<1xf32>) -> tensor<2x1xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x1xf32>) -> tensor<2xf32>
  %fc = fsdp.concat %s into @c : (tensor<1xf32>) -> tensor<1xf32>
  %gc = fsdp.all_gather %fc of @c : (tensor<1xf32>) -> tensor<2x1xf32>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x1xf32>) -> tensor<2xf32>
  return %wa, %wb, %wc : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
