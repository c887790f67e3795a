// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision --fsdp-expand-units | FileCheck %s

// One bucket and one collective per parameter, in the order of declaration;
// casts are explicit; opaque parameters travel as bytes.

// CHECK-LABEL: fsdp.unit @layer0
// CHECK:       fsdp.bucket @norm_gather gather @layer0[@norm] : f32 group 0
// CHECK-NEXT:  fsdp.bucket @wq_gather gather @layer0[@wq] : bf16 group 0
// CHECK-NEXT:  fsdp.bucket @wv_gather gather @layer0[@wv] : bf16 group 0
// CHECK-NEXT:  fsdp.bucket @ids_gather gather @layer0[@ids] : bytes group 0
// CHECK-NEXT:  func.func @forward(
// CHECK-SAME:    %[[N:.+]]: tensor<3xf32>, %[[Q:.+]]: tensor<2x3xf32>, %[[V:.+]]: tensor<3x2xf32>, %[[I:.+]]: tensor<4x2xi64>)
// CHECK-NEXT:    %[[FN:.+]] = fsdp.concat %[[N]] into @norm_gather : (tensor<3xf32>) -> tensor<32xf32>
// CHECK-NEXT:    %[[GN:.+]] = fsdp.all_gather %[[FN]] of @norm_gather : (tensor<32xf32>) -> tensor<4x32xf32>
// CHECK-NEXT:    %[[WN:.+]] = fsdp.unchunk %[[GN]] of @norm_gather : (tensor<4x32xf32>) -> tensor<10xf32>
// CHECK-NEXT:    %[[CQ:.+]] = arith.truncf %[[Q]] : tensor<2x3xf32> to tensor<2x3xbf16>
// CHECK-NEXT:    %[[FQ:.+]] = fsdp.concat %[[CQ]] into @wq_gather : (tensor<2x3xbf16>) -> tensor<64xbf16>
// CHECK-NEXT:    %[[GQ:.+]] = fsdp.all_gather %[[FQ]] of @wq_gather
// CHECK-NEXT:    %[[WQ:.+]] = fsdp.unchunk %[[GQ]] of @wq_gather : (tensor<4x64xbf16>) -> tensor<8x3xbf16>
// CHECK-NEXT:    %[[CV:.+]] = arith.truncf %[[V]]
// CHECK-NEXT:    %[[FV:.+]] = fsdp.concat %[[CV]] into @wv_gather
// CHECK-NEXT:    %[[GV:.+]] = fsdp.all_gather %[[FV]] of @wv_gather
// CHECK-NEXT:    %[[WV:.+]] = fsdp.unchunk %[[GV]] of @wv_gather
// CHECK-NEXT:    %[[FI:.+]] = fsdp.concat %[[I]] into @ids_gather : (tensor<4x2xi64>) -> tensor<128xi8>
// CHECK-NEXT:    %[[GI:.+]] = fsdp.all_gather %[[FI]] of @ids_gather : (tensor<128xi8>) -> tensor<4x128xi8>
// CHECK-NEXT:    %[[WI:.+]] = fsdp.unchunk %[[GI]] of @ids_gather : (tensor<4x128xi8>) -> tensor<16x2xi64>
// CHECK-NEXT:    return %[[WN]], %[[WQ]], %[[WV]], %[[WI]]
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
  fsdp.param @wv : tensor<3x8xf32> shard_dim 1
  fsdp.param @ids : tensor<16x2xi64> frozen
}
func.func @forward(%n: tensor<3xf32>, %q: tensor<2x3xf32>, %v: tensor<3x2xf32>, %i: tensor<4x2xi64>)
    -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xi64>) {
  %w:4 = fsdp.unshard @layer0(%n, %q, %v, %i)
      : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xi64>)
      -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xi64>)
  return %w#0, %w#1, %w#2, %w#3 : tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xi64>
}

// -----

// Gradients in the order of declaration, whatever the order of operands; each
// is cast by itself, and the shard is cast to the grad dtype. Parameters without
// a gradient are in nothing.

// CHECK-LABEL: fsdp.unit @layer0
// CHECK:       fsdp.bucket @norm_reduce_f32 reduce @layer0[@norm] : f32 group 0
// CHECK-NEXT:  fsdp.bucket @wq_reduce_bf16 reduce @layer0[@wq] : bf16 group 0
// CHECK-NEXT:  fsdp.bucket @wv_reduce_f32 reduce @layer0[@wv] : f32 group 0
// CHECK-NEXT:  func.func @backward(
// CHECK-SAME:    %[[N:.+]]: tensor<10xf32>, %[[Q:.+]]: tensor<8x3xf32>, %[[V:.+]]: tensor<3x8xbf16>)
// CHECK-NEXT:    %[[PN:.+]] = fsdp.chunk_cat %[[N]] into @norm_reduce_f32 : (tensor<10xf32>) -> tensor<4x32xf32>
// CHECK-NEXT:    %[[RN:.+]] = fsdp.reduce_scatter avg %[[PN]] of @norm_reduce_f32 : (tensor<4x32xf32>) -> tensor<32xf32>
// CHECK-NEXT:    %[[SN:.+]] = fsdp.split %[[RN]] of @norm_reduce_f32 : (tensor<32xf32>) -> tensor<3xf32>
// CHECK-NEXT:    %[[CQ:.+]] = arith.truncf %[[Q]] : tensor<8x3xf32> to tensor<8x3xbf16>
// CHECK-NEXT:    %[[PQ:.+]] = fsdp.chunk_cat %[[CQ]] into @wq_reduce_bf16 : (tensor<8x3xbf16>) -> tensor<4x64xbf16>
// CHECK-NEXT:    %[[RQ:.+]] = fsdp.reduce_scatter avg %[[PQ]] of @wq_reduce_bf16
// CHECK-NEXT:    %[[SQ:.+]] = fsdp.split %[[RQ]] of @wq_reduce_bf16 : (tensor<64xbf16>) -> tensor<2x3xbf16>
// CHECK-NEXT:    %[[GQ:.+]] = arith.extf %[[SQ]] : tensor<2x3xbf16> to tensor<2x3xf32>
// CHECK-NEXT:    %[[CV:.+]] = arith.extf %[[V]] : tensor<3x8xbf16> to tensor<3x8xf32>
// CHECK-NEXT:    %[[PV:.+]] = fsdp.chunk_cat %[[CV]] into @wv_reduce_f32
// CHECK-NEXT:    %[[RV:.+]] = fsdp.reduce_scatter avg %[[PV]] of @wv_reduce_f32
// CHECK-NEXT:    %[[SV:.+]] = fsdp.split %[[RV]] of @wv_reduce_f32
// CHECK-NEXT:    %[[GV:.+]] = arith.truncf %[[SV]] : tensor<3x2xf32> to tensor<3x2xbf16>
// CHECK-NEXT:    return %[[GV]], %[[SN]], %[[GQ]]
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @unused : tensor<4xf32>
  fsdp.param @wq : tensor<8x3xf32> precision <reduce = bf16>
  fsdp.param @wv : tensor<3x8xbf16> shard_dim 1
  fsdp.param @base : tensor<16x2xbf16> frozen
}
func.func @backward(%n: tensor<10xf32>, %q: tensor<8x3xf32>, %v: tensor<3x8xbf16>)
    -> (tensor<3x2xbf16>, tensor<3xf32>, tensor<2x3xf32>) {
  %s:3 = fsdp.reduce_grads @layer0[@wv, @norm, @wq](%v, %n, %q)
      : (tensor<3x8xbf16>, tensor<10xf32>, tensor<8x3xf32>)
      -> (tensor<3x2xbf16>, tensor<3xf32>, tensor<2x3xf32>)
  return %s#0, %s#1, %s#2 : tensor<3x2xbf16>, tensor<3xf32>, tensor<2x3xf32>
}

// -----

// Casts: f16 and bf16 meet in f32, f64 narrows in one step.

// CHECK-LABEL: func.func @casts(
// CHECK-SAME:    %[[A:.+]]: tensor<1xf16>, %[[B:.+]]: tensor<1xf64>, %[[C:.+]]: tensor<4xbf16>)
// CHECK-NEXT:    %[[W:.+]] = arith.extf %[[A]] : tensor<1xf16> to tensor<1xf32>
// CHECK-NEXT:    %[[N:.+]] = arith.truncf %[[W]] : tensor<1xf32> to tensor<1xbf16>
// CHECK-NEXT:    fsdp.concat %[[N]] into
// CHECK:         %[[D:.+]] = arith.truncf %[[B]] : tensor<1xf64> to tensor<1xbf16>
// CHECK-NEXT:    fsdp.concat %[[D]] into
// CHECK:         %[[X:.+]] = arith.extf %[[C]] : tensor<4xbf16> to tensor<4xf32>
// CHECK-NEXT:    %[[Y:.+]] = arith.truncf %[[X]] : tensor<4xf32> to tensor<4xf16>
// CHECK-NEXT:    fsdp.chunk_cat %[[Y]] into
// CHECK:         %[[S:.+]] = fsdp.split
// CHECK-NEXT:    return %{{.+}}, %{{.+}}, %[[S]] : tensor<4xbf16>, tensor<4xbf16>, tensor<1xf16>
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16> {
  fsdp.param @a : tensor<4xf16> precision <reduce = f16>
  fsdp.param @b : tensor<4xf64>
}
func.func @casts(%a: tensor<1xf16>, %b: tensor<1xf64>, %g: tensor<4xbf16>)
    -> (tensor<4xbf16>, tensor<4xbf16>, tensor<1xf16>) {
  %w:2 = fsdp.unshard @u(%a, %b) : (tensor<1xf16>, tensor<1xf64>) -> (tensor<4xbf16>, tensor<4xbf16>)
  %s = fsdp.reduce_grads @u[@a](%g) : (tensor<4xbf16>) -> tensor<1xf16>
  return %w#0, %w#1, %s : tensor<4xbf16>, tensor<4xbf16>, tensor<1xf16>
}

// -----

// Every unit op has its own buckets and group, numbered over the module in
// program order and above those that exist; names are made unique. A unit op
// may feed another, stand in a loop, and in any function.

// CHECK-LABEL: module @groups
// CHECK:       fsdp.unit @u
// CHECK:       fsdp.bucket @w_gather_0 gather @u[@w] : f32 group 8
// CHECK-NEXT:  fsdp.bucket @w_reduce_f32 reduce @u[@w] : f32 group 9
// CHECK-NEXT:  fsdp.bucket @w_gather_1 gather @u[@w] : f32 group 10
// CHECK-NEXT:  fsdp.unit @v
// CHECK:       fsdp.bucket @x_gather gather @v[@x] : f32 group 11
// CHECK-NEXT:  fsdp.bucket @w_gather gather @u[@w] : f32 group 7
// CHECK-NEXT:  func.func @step(
// CHECK:         fsdp.concat %{{.+}} into @w_gather_0
// CHECK-NEXT:    fsdp.all_gather
// CHECK-NEXT:    %[[W:.+]] = fsdp.unchunk
// CHECK-NEXT:    fsdp.chunk_cat %[[W]] into @w_reduce_f32
// CHECK-NEXT:    fsdp.reduce_scatter avg
// CHECK-NEXT:    %[[S:.+]] = fsdp.split
// CHECK-NEXT:    "test.use"(%[[S]])
// CHECK:         scf.for
// CHECK-NEXT:      fsdp.concat %{{.+}} into @w_gather_1
// CHECK-NEXT:      fsdp.all_gather
// CHECK-NEXT:      %[[L:.+]] = fsdp.unchunk
// CHECK-NEXT:      "test.use"(%[[L]])
// CHECK:         func.func @other(
// CHECK-NEXT:      fsdp.concat %{{.+}} into @x_gather
module @groups {
  shard.grid @dp(shape = 4)
  fsdp.unit @u on @dp {
    fsdp.param @w : tensor<4xf32>
  }
  fsdp.unit @v on @dp {
    fsdp.param @x : tensor<4xf32>
  }
  fsdp.bucket @w_gather gather @u[@w] : f32 group 7
  func.func @step(%w: tensor<1xf32>, %n: index) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %full = fsdp.unshard @u(%w) : (tensor<1xf32>) -> tensor<4xf32>
    %shard = fsdp.reduce_grads @u[@w](%full) : (tensor<4xf32>) -> tensor<1xf32>
    "test.use"(%shard) : (tensor<1xf32>) -> ()
    scf.for %i = %0 to %n step %1 {
      %again = fsdp.unshard @u(%w) : (tensor<1xf32>) -> tensor<4xf32>
      "test.use"(%again) : (tensor<4xf32>) -> ()
    }
    return
  }
  func.func @other(%x: tensor<1xf32>) {
    %full = fsdp.unshard @v(%x) : (tensor<1xf32>) -> tensor<4xf32>
    "test.use"(%full) : (tensor<4xf32>) -> ()
    return
  }
}

// -----

// The corners: a reduction of nothing, a parameter without elements, one rank.

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @empty
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @none_reduce_f32 : (tensor<0x3xf32>) -> tensor<4x0xf32>
// CHECK-NEXT:    fsdp.reduce_scatter avg %{{.+}} : (tensor<4x0xf32>) -> tensor<0xf32>
// CHECK-NEXT:    fsdp.split %{{.+}} : (tensor<0xf32>) -> tensor<0x3xf32>
// CHECK-LABEL: func.func @one_rank
// CHECK-NEXT:    fsdp.concat %{{.+}} into @x_gather : (tensor<7xf32>) -> tensor<32xf32>
// CHECK-NEXT:    fsdp.all_gather %{{.+}} of @x_gather : (tensor<32xf32>) -> tensor<1x32xf32>
// CHECK-NEXT:    fsdp.unchunk %{{.+}} of @x_gather : (tensor<1x32xf32>) -> tensor<7xf32>
shard.grid @dp(shape = 4)
shard.grid @one(shape = 1)
fsdp.unit @u on @dp {
  fsdp.param @none : tensor<0x3xf32>
}
fsdp.unit @v on @one {
  fsdp.param @x : tensor<7xf32>
}
func.func @nothing() {
  fsdp.reduce_grads @u[]() : () -> ()
  return
}
func.func @empty(%g: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %s = fsdp.reduce_grads @u[@none](%g) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  return %s : tensor<0x3xf32>
}
func.func @one_rank(%x: tensor<7xf32>) -> tensor<7xf32> {
  %w = fsdp.unshard @v(%x) : (tensor<7xf32>) -> tensor<7xf32>
  return %w : tensor<7xf32>
}
