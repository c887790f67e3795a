// RUN: fsdp-opt %s --fsdp-form-buckets --split-input-file --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --fsdp-form-buckets=gather=per-dtype --split-input-file | FileCheck %s --check-prefix=DTYPE

// Two param dtypes share a gather as bytes; every operand keeps its own cast.
// The merged ops stand behind the last operand's definition.

// CHECK-LABEL: fsdp.unit @layer0
// CHECK:       fsdp.bucket @layer0_gather gather @layer0[@norm, @wq] : bytes group 0
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R1_gather(
// CHECK-SAME:      %[[N:.+]]: tensor<3xf32>, %[[Q:.+]]: tensor<2x3xf32>)
// CHECK-NEXT:    %[[H:.+]] = arith.truncf %[[Q]] : tensor<2x3xf32> to tensor<2x3xbf16>
// CHECK-NEXT:    %[[F:.+]] = fsdp.concat %[[N]], %[[H]] into @layer0_gather : (tensor<3xf32>, tensor<2x3xbf16>) -> tensor<256xi8>
// CHECK-NEXT:    %[[G:.+]] = fsdp.all_gather %[[F]] of @layer0_gather : (tensor<256xi8>) -> tensor<4x256xi8>
// CHECK-NEXT:    %[[W:.+]]:2 = fsdp.unchunk %[[G]] of @layer0_gather : (tensor<4x256xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>)
// CHECK-NEXT:    return %[[W]]#0, %[[W]]#1

// DTYPE-LABEL: func.func @R1_gather(
// DTYPE-COUNT-2: fsdp.all_gather
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.bucket @norm_gather gather @layer0[@norm] : f32 group 0
fsdp.bucket @wq_gather gather @layer0[@wq] : bf16 group 0
func.func @R1_gather(%n: tensor<3xf32>, %q: tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>) {
  %fn = fsdp.concat %n into @norm_gather : (tensor<3xf32>) -> tensor<32xf32>
  // expected-remark @below {{FormBuckets | Category:fsdp | Reason="formed layer0_gather", bytes=1024, names="norm_gather,wq_gather"}}
  %gn = fsdp.all_gather %fn of @norm_gather : (tensor<32xf32>) -> tensor<4x32xf32>
  %wn = fsdp.unchunk %gn of @norm_gather : (tensor<4x32xf32>) -> tensor<10xf32>
  %h = arith.truncf %q : tensor<2x3xf32> to tensor<2x3xbf16>
  %fq = fsdp.concat %h into @wq_gather : (tensor<2x3xbf16>) -> tensor<64xbf16>
  %gq = fsdp.all_gather %fq of @wq_gather : (tensor<64xbf16>) -> tensor<4x64xbf16>
  %wq = fsdp.unchunk %gq of @wq_gather : (tensor<4x64xbf16>) -> tensor<8x3xbf16>
  return %wn, %wq : tensor<10xf32>, tensor<8x3xbf16>
}

// -----

// A cast that makes an operand goes up with its pack, so that it keeps nobody
// apart: the second gather joins the first one, which is used in between. What
// is left of the cast's other users finds it above.

// CHECK-LABEL: func.func @input_casts_go_up(
// CHECK-SAME:      %[[A:[^:]+]]: tensor<2xf32>, %[[B:[^:]+]]: tensor<2xf32>)
// CHECK-NEXT:    %[[H:.+]] = arith.truncf %[[B]] : tensor<2xf32> to tensor<2xbf16>
// CHECK-NEXT:    %[[F:.+]] = fsdp.concat %[[A]], %[[H]] into @u_gather
// CHECK-NEXT:    %[[G:.+]] = fsdp.all_gather %[[F]] of @u_gather
// CHECK-NEXT:    %[[W:.+]]:2 = fsdp.unchunk %[[G]] of @u_gather
// CHECK-NEXT:    %[[S:.+]] = math.exp %[[W]]#0
// CHECK-NEXT:    return %[[S]], %[[W]]#1, %[[H]]
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @a : tensor<4xf32> precision <param = f32>
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @a_gather gather @u[@a] : f32 group 0
fsdp.bucket @b_gather gather @u[@b] : bf16 group 0
func.func @input_casts_go_up(%a: tensor<2xf32>, %b: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xbf16>, tensor<2xbf16>) {
  %fa = fsdp.concat %a into @a_gather : (tensor<2xf32>) -> tensor<32xf32>
  // expected-remark @below {{formed u_gather}}
  %ga = fsdp.all_gather %fa of @a_gather : (tensor<32xf32>) -> tensor<2x32xf32>
  %wa = fsdp.unchunk %ga of @a_gather : (tensor<2x32xf32>) -> tensor<4xf32>
  %s = math.exp %wa : tensor<4xf32>
  %h = arith.truncf %b : tensor<2xf32> to tensor<2xbf16>
  %fb = fsdp.concat %h into @b_gather : (tensor<2xbf16>) -> tensor<64xbf16>
  %gb = fsdp.all_gather %fb of @b_gather : (tensor<64xbf16>) -> tensor<2x64xbf16>
  %wb = fsdp.unchunk %gb of @b_gather : (tensor<2x64xbf16>) -> tensor<4xbf16>
  return %s, %wb, %h : tensor<4xf32>, tensor<4xbf16>, tensor<2xbf16>
}

// -----

// One dtype: the bucket is typed. Members lie in the order of declaration, the
// ops were in another. An opaque member makes it bytes.

// CHECK-LABEL: fsdp.unit @u
// CHECK:       fsdp.bucket @u_gather gather @u[@a, @b, @c] : bf16 align 1 group 3
// CHECK:       fsdp.bucket @u_gather_0 gather @u[@b, @t] : bytes align 1 group 4
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R5_declaration_order(
// CHECK-SAME:      %[[A:.+]]: tensor<4xbf16>, %[[B:.+]]: tensor<2xbf16>, %[[C:.+]]: tensor<1xbf16>)
// CHECK-NEXT:    %[[F:.+]] = fsdp.concat %[[A]], %[[B]], %[[C]] into @u_gather : (tensor<4xbf16>, tensor<2xbf16>, tensor<1xbf16>) -> tensor<7xbf16>
// CHECK-NEXT:    fsdp.all_gather
// CHECK-NEXT:    %[[W:.+]]:3 = fsdp.unchunk
// CHECK-NEXT:    return %[[W]]#0, %[[W]]#1, %[[W]]#2
// CHECK-LABEL: func.func @R1_opaque(
// CHECK-SAME:      %[[B:.+]]: tensor<2xbf16>, %[[T:.+]]: tensor<3xi64>)
// CHECK-NEXT:    fsdp.concat %[[B]], %[[T]] into @u_gather_0 : (tensor<2xbf16>, tensor<3xi64>) -> tensor<28xi8>

// DTYPE-LABEL: func.func @R5_declaration_order(
// DTYPE-COUNT-1: fsdp.all_gather
// DTYPE-LABEL: func.func @R1_opaque(
// DTYPE-COUNT-2: fsdp.all_gather
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<8xbf16>
  fsdp.param @b : tensor<4xbf16>
  fsdp.param @c : tensor<2xbf16>
  fsdp.param @t : tensor<6xi64> frozen
}
fsdp.bucket @a gather @u[@a] : bf16 align 1 group 3
fsdp.bucket @b gather @u[@b] : bf16 align 1 group 3
fsdp.bucket @c gather @u[@c] : bf16 align 1 group 3
fsdp.bucket @b_again gather @u[@b] : bf16 align 1 group 4
fsdp.bucket @t gather @u[@t] : bytes align 1 group 4
func.func @R5_declaration_order(%a: tensor<4xbf16>, %b: tensor<2xbf16>, %c: tensor<1xbf16>)
    -> (tensor<8xbf16>, tensor<4xbf16>, tensor<2xbf16>) {
  %fc = fsdp.concat %c into @c : (tensor<1xbf16>) -> tensor<1xbf16>
  %gc = fsdp.all_gather %fc of @c : (tensor<1xbf16>) -> tensor<2x1xbf16>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x1xbf16>) -> tensor<2xbf16>
  %fb = fsdp.concat %b into @b : (tensor<2xbf16>) -> tensor<2xbf16>
  %gb = fsdp.all_gather %fb of @b : (tensor<2xbf16>) -> tensor<2x2xbf16>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x2xbf16>) -> tensor<4xbf16>
  %fa = fsdp.concat %a into @a : (tensor<4xbf16>) -> tensor<4xbf16>
  // expected-remark @below {{Reason="formed u_gather", bytes=28, names="a,b,c"}}
  %ga = fsdp.all_gather %fa of @a : (tensor<4xbf16>) -> tensor<2x4xbf16>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x4xbf16>) -> tensor<8xbf16>
  return %wa, %wb, %wc : tensor<8xbf16>, tensor<4xbf16>, tensor<2xbf16>
}
func.func @R1_opaque(%b: tensor<2xbf16>, %t: tensor<3xi64>) -> (tensor<4xbf16>, tensor<6xi64>) {
  %fb = fsdp.concat %b into @b_again : (tensor<2xbf16>) -> tensor<2xbf16>
  // expected-remark @below {{Reason="formed u_gather_0", bytes=56, names="b_again,t"}}
  // expected-remark @below {{Reason=other-block, names="c,b_again"}}
  %gb = fsdp.all_gather %fb of @b_again : (tensor<2xbf16>) -> tensor<2x2xbf16>
  %wb = fsdp.unchunk %gb of @b_again : (tensor<2x2xbf16>) -> tensor<4xbf16>
  %ft = fsdp.concat %t into @t : (tensor<3xi64>) -> tensor<24xi8>
  %gt = fsdp.all_gather %ft of @t : (tensor<24xi8>) -> tensor<2x24xi8>
  %wt = fsdp.unchunk %gt of @t : (tensor<2x24xi8>) -> tensor<6xi64>
  return %wb, %wt : tensor<4xbf16>, tensor<6xi64>
}

// -----

// Keywords, constants, accumulation and the all_reduce are copied. A reduction
// stands at its last member; the cast behind the first one goes along.

// CHECK-LABEL: fsdp.bucket @u_reduce_bf16 reduce @u[@a, @b] : bf16 align 1 group 1
// CHECK-NOT:   fsdp.bucket
// CHECK-LABEL: func.func @R8_reduce(
// CHECK-SAME:      %[[A:.+]]: tensor<8xf32>, %[[B:.+]]: tensor<4xbf16>)
// CHECK-NEXT:    %[[T:.+]] = arith.truncf %[[A]]
// CHECK-NEXT:    %[[P:.+]] = fsdp.chunk_cat %[[T]], %[[B]] into @u_reduce_bf16 divide 2.0{{.*}} : (tensor<8xbf16>, tensor<4xbf16>) -> tensor<2x6xbf16>
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter premul 2.5{{.*}} accumulate f32 %[[P]] of @u_reduce_bf16
// CHECK-NEXT:    %[[L:.+]] = fsdp.all_reduce avg accumulate f32 %[[R]] of @u_reduce_bf16
// CHECK-NEXT:    %[[S:.+]]:2 = fsdp.split %[[L]] of @u_reduce_bf16 divide 1.5{{.*}} : (tensor<6xbf16>) -> (tensor<4xbf16>, tensor<2xbf16>)
// CHECK-NEXT:    %[[E:.+]] = arith.extf %[[S]]#0
// CHECK-NEXT:    %[[E2:.+]] = arith.extf %[[E]]
// CHECK-NEXT:    return %[[E2]], %[[S]]#1
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @a : tensor<8xf64>
  fsdp.param @b : tensor<4xbf16>
}
fsdp.bucket @ra reduce @u[@a] : bf16 align 1 group 1
fsdp.bucket @rb reduce @u[@b] : bf16 align 1 group 1
func.func @R8_reduce(%a: tensor<8xf32>, %b: tensor<4xbf16>) -> (tensor<4xf64>, tensor<2xbf16>) {
  %t = arith.truncf %a : tensor<8xf32> to tensor<8xbf16>
  %pa = fsdp.chunk_cat %t into @ra divide 2.0 : (tensor<8xbf16>) -> tensor<2x4xbf16>
  // expected-remark @below {{Reason="formed u_reduce_bf16", bytes=24, names="ra,rb"}}
  %sa = fsdp.reduce_scatter premul 0.25 accumulate f32 %pa of @ra : (tensor<2x4xbf16>) -> tensor<4xbf16>
  %la = fsdp.all_reduce avg accumulate f32 %sa of @ra : (tensor<4xbf16>) -> tensor<4xbf16>
  %xa = fsdp.split %la of @ra divide 1.5 : (tensor<4xbf16>) -> tensor<4xbf16>
  %e = arith.extf %xa : tensor<4xbf16> to tensor<4xf32>
  %e2 = arith.extf %e : tensor<4xf32> to tensor<4xf64>
  %pb = fsdp.chunk_cat %b into @rb divide 2.0 : (tensor<4xbf16>) -> tensor<2x2xbf16>
  %sb = fsdp.reduce_scatter premul 0.25 accumulate f32 %pb of @rb : (tensor<2x2xbf16>) -> tensor<2xbf16>
  %lb = fsdp.all_reduce avg accumulate f32 %sb of @rb : (tensor<2xbf16>) -> tensor<2xbf16>
  %xb = fsdp.split %lb of @rb divide 1.5 : (tensor<2xbf16>) -> tensor<2xbf16>
  return %e2, %xb : tensor<4xf64>, tensor<2xbf16>
}

// -----

// Keys k j k merge around each other. Reductions stand in the order of first
// members: {a, c} at c's place pushes b, which keeps its symbol, down.

// CHECK-LABEL: fsdp.bucket @u_reduce_f32 reduce @u[@a, @c] : f32
// CHECK:       fsdp.bucket @rb reduce @u[@b] : bf16
// CHECK-LABEL: func.func @R4_interleaved(
// CHECK-SAME:      %[[A:.+]]: tensor<8xf32>, %[[B:.+]]: tensor<4xbf16>, %[[C:.+]]: tensor<2xf32>)
// CHECK-NEXT:    fsdp.chunk_cat %[[A]], %[[C]] into @u_reduce_f32
// CHECK-NEXT:    fsdp.reduce_scatter avg
// CHECK-NEXT:    %[[AC:.+]]:2 = fsdp.split
// CHECK-NEXT:    %[[P:.+]] = fsdp.chunk_cat %[[B]] into @rb
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter avg %[[P]] of @rb
// CHECK-NEXT:    %[[SB:.+]] = fsdp.split %[[R]] of @rb
// CHECK-NEXT:    %[[EB:.+]] = arith.extf %[[SB]]
// CHECK-NEXT:    return %[[AC]]#0, %[[EB]], %[[AC]]#1
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<8xf32>
  fsdp.param @b : tensor<4xf32>
  fsdp.param @c : tensor<2xf32>
}
fsdp.bucket @ra reduce @u[@a] : f32 align 1
fsdp.bucket @rb reduce @u[@b] : bf16 align 1
fsdp.bucket @rc reduce @u[@c] : f32 align 1
func.func @R4_interleaved(%a: tensor<8xf32>, %b: tensor<4xbf16>, %c: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<2xf32>, tensor<1xf32>) {
  %pa = fsdp.chunk_cat %a into @ra : (tensor<8xf32>) -> tensor<2x4xf32>
  // expected-remark @below {{Reason="formed u_reduce_f32", bytes=40, names="ra,rc"}}
  %sa = fsdp.reduce_scatter avg %pa of @ra : (tensor<2x4xf32>) -> tensor<4xf32>
  %xa = fsdp.split %sa of @ra : (tensor<4xf32>) -> tensor<4xf32>
  %pb = fsdp.chunk_cat %b into @rb : (tensor<4xbf16>) -> tensor<2x2xbf16>
  // expected-remark @below {{Reason=other-dtype, names="ra,rb"}}
  %sb = fsdp.reduce_scatter avg %pb of @rb : (tensor<2x2xbf16>) -> tensor<2xbf16>
  %xb = fsdp.split %sb of @rb : (tensor<2xbf16>) -> tensor<2xbf16>
  %eb = arith.extf %xb : tensor<2xbf16> to tensor<2xf32>
  %pc = fsdp.chunk_cat %c into @rc : (tensor<2xf32>) -> tensor<2x1xf32>
  // expected-remark @below {{Reason=other-dtype, names="rb,rc"}}
  %sc = fsdp.reduce_scatter avg %pc of @rc : (tensor<2x1xf32>) -> tensor<1xf32>
  %xc = fsdp.split %sc of @rc : (tensor<1xf32>) -> tensor<1xf32>
  return %xa, %eb, %xc : tensor<4xf32>, tensor<2xf32>, tensor<1xf32>
}

// -----

// A split that adds into existing shards keeps doing so, each into its own. A
// concat that was hoisted out of the loop, and an unchunk that was sunk into a
// branch, are no obstacle.

// CHECK-LABEL: func.func @R8_adds(
// CHECK-SAME:      %[[A:[^:]+]]: tensor<8xf32>, %[[B:[^:]+]]: tensor<4xf32>, %[[OA:[^:]+]]: tensor<4xf32>, %[[OB:[^:]+]]: tensor<2xf32>)
// CHECK:         fsdp.split %{{.+}} of @u_reduce_f32 add(%[[OA]], %[[OB]] : tensor<4xf32>, tensor<2xf32>)
// CHECK-LABEL: func.func @R4_hoisted(
// CHECK-SAME:      %[[A:[^:]+]]: tensor<4xf32>, %[[B:[^:]+]]: tensor<2xf32>,
// CHECK:         scf.for
// CHECK-NEXT:      fsdp.concat %[[A]], %[[B]] into @u_gather
// CHECK-NEXT:      fsdp.all_gather
// CHECK-NEXT:      %[[W:.+]]:2 = fsdp.unchunk
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        "test.use"(%[[W]]#0, %[[W]]#1)
// CHECK-NOT:     fsdp.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<8xf32>
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @ra reduce @u[@a] : f32 align 1 group 0
fsdp.bucket @rb reduce @u[@b] : f32 align 1 group 0
fsdp.bucket @ga gather @u[@a] : f32 align 1 group 1
fsdp.bucket @gb gather @u[@b] : f32 align 1 group 1
func.func @R8_adds(%a: tensor<8xf32>, %b: tensor<4xf32>, %oa: tensor<4xf32>, %ob: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<2xf32>) {
  %pb = fsdp.chunk_cat %b into @rb : (tensor<4xf32>) -> tensor<2x2xf32>
  %sb = fsdp.reduce_scatter avg %pb of @rb : (tensor<2x2xf32>) -> tensor<2xf32>
  %xb = fsdp.split %sb of @rb add(%ob : tensor<2xf32>) : (tensor<2xf32>) -> tensor<2xf32>
  %pa = fsdp.chunk_cat %a into @ra : (tensor<8xf32>) -> tensor<2x4xf32>
  // expected-remark @below {{Reason="formed u_reduce_f32"}}
  %sa = fsdp.reduce_scatter avg %pa of @ra : (tensor<2x4xf32>) -> tensor<4xf32>
  %xa = fsdp.split %sa of @ra add(%oa : tensor<4xf32>) : (tensor<4xf32>) -> tensor<4xf32>
  return %xa, %xb : tensor<4xf32>, tensor<2xf32>
}
func.func @R4_hoisted(%a: tensor<4xf32>, %b: tensor<2xf32>, %n: index, %c: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %fa = fsdp.concat %a into @ga : (tensor<4xf32>) -> tensor<4xf32>
  %fb = fsdp.concat %b into @gb : (tensor<2xf32>) -> tensor<2xf32>
  scf.for %i = %zero to %n step %one {
    // expected-remark @below {{Reason="formed u_gather"}}
    // expected-remark @below {{Reason=other-kind}}
    %ga = fsdp.all_gather %fa of @ga : (tensor<4xf32>) -> tensor<2x4xf32>
    %gb = fsdp.all_gather %fb of @gb : (tensor<2xf32>) -> tensor<2x2xf32>
    scf.if %c {
      %wa = fsdp.unchunk %ga of @ga : (tensor<2x4xf32>) -> tensor<8xf32>
      %wb = fsdp.unchunk %gb of @gb : (tensor<2x2xf32>) -> tensor<4xf32>
      "test.use"(%wa, %wb) : (tensor<8xf32>, tensor<4xf32>) -> ()
    }
  }
  return
}
