// The golden path: how many collectives, which buckets, no casts left over.
//
// RUN: split-file %s %t
// RUN: fsdp-opt %t/layer.mlir --fsdp-optimize | FileCheck %s --check-prefix=LAYER
// RUN: fsdp-opt %t/layer.mlir --fsdp-optimize=opt-level=0 | FileCheck %s --check-prefix=NAIVE
// RUN: fsdp-opt %t/mixed.mlir --fsdp-optimize | FileCheck %s --check-prefix=MIXED
// RUN: fsdp-opt %t/reduce.mlir --fsdp-optimize | FileCheck %s --check-prefix=REDUCE

// One gather and one reduction, with the casts inside.
//
// LAYER-NOT:   fsdp.unshard
// LAYER-DAG:   fsdp.bucket @[[G:.+]] gather @layer0[@attn_norm, @wq, @wk, @wv, @wo, @w1] : bf16
// LAYER-DAG:   fsdp.bucket @[[R:.+]] reduce @layer0[@attn_norm, @wq, @wk, @wv, @wo, @w1] : f32
// LAYER-LABEL: func.func @forward(
// LAYER-NEXT:    %[[F:.+]] = fsdp.concat {{.+}} into @[[G]] : (tensor<4xf32>,
// LAYER-NEXT:    %[[A:.+]] = fsdp.all_gather %[[F]] of @[[G]]
// LAYER-NEXT:    %[[W:.+]]:6 = fsdp.unchunk %[[A]] of @[[G]] : ({{.+}}) -> (tensor<16xbf16>,
// LAYER-NEXT:    return %[[W]]#0, %[[W]]#1, %[[W]]#2, %[[W]]#3, %[[W]]#4, %[[W]]#5
// LAYER-LABEL: func.func @backward(
// LAYER-NEXT:    %[[P:.+]] = fsdp.chunk_cat {{.+}} into @[[R]] : (tensor<16xbf16>,
// LAYER-NEXT:    %[[S:.+]] = fsdp.reduce_scatter avg %[[P]] of @[[R]]
// LAYER-NEXT:    %[[D:.+]]:6 = fsdp.split %[[S]] of @[[R]] : ({{.+}}) -> (tensor<4xf32>,
// LAYER-NEXT:    return %[[D]]#0, %[[D]]#1, %[[D]]#2, %[[D]]#3, %[[D]]#4, %[[D]]#5

// NAIVE-COUNT-12:   fsdp.bucket
// NAIVE-NOT:        fsdp.bucket
// NAIVE-LABEL:      func.func @forward(
// NAIVE-COUNT-6:      fsdp.all_gather
// NAIVE-NOT:          fsdp.all_gather
// NAIVE-LABEL:      func.func @backward(
// NAIVE-COUNT-6:      fsdp.reduce_scatter
// NAIVE-NOT:          fsdp.reduce_scatter

//--- layer.mlir
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @attn_norm : tensor<16xf32>
  fsdp.param @wq : tensor<16x16xf32>
  fsdp.param @wk : tensor<4x16xf32>
  fsdp.param @wv : tensor<4x16xf32>
  fsdp.param @wo : tensor<16x16xf32> shard_dim 1
  fsdp.param @w1 : tensor<42x16xf32>
}
func.func @forward(
    %n: tensor<4xf32> {fsdp.shard = @layer0::@attn_norm}, %q: tensor<4x16xf32> {fsdp.shard = @layer0::@wq},
    %k: tensor<1x16xf32> {fsdp.shard = @layer0::@wk}, %v: tensor<1x16xf32> {fsdp.shard = @layer0::@wv},
    %o: tensor<16x4xf32> {fsdp.shard = @layer0::@wo}, %u: tensor<11x16xf32> {fsdp.shard = @layer0::@w1})
    -> (tensor<16xbf16>, tensor<16x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<42x16xbf16>) {
  %w:6 = fsdp.unshard @layer0(%n, %q, %k, %v, %o, %u)
      : (tensor<4xf32>, tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<16x4xf32>, tensor<11x16xf32>)
      -> (tensor<16xbf16>, tensor<16x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<42x16xbf16>)
  return %w#0, %w#1, %w#2, %w#3, %w#4, %w#5
      : tensor<16xbf16>, tensor<16x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<42x16xbf16>
}
func.func @backward(
    %n: tensor<16xbf16> {fsdp.full_grad = @layer0::@attn_norm}, %q: tensor<16x16xbf16>, %k: tensor<4x16xbf16>,
    %v: tensor<4x16xbf16>, %o: tensor<16x16xbf16>, %u: tensor<42x16xbf16>)
    -> (tensor<4xf32>, tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<16x4xf32>, tensor<11x16xf32>) {
  %s:6 = fsdp.reduce_grads @layer0[@attn_norm, @wq, @wk, @wv, @wo, @w1](%n, %q, %k, %v, %o, %u)
      : (tensor<16xbf16>, tensor<16x16xbf16>, tensor<4x16xbf16>, tensor<4x16xbf16>, tensor<16x16xbf16>, tensor<42x16xbf16>)
      -> (tensor<4xf32>, tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<16x4xf32>, tensor<11x16xf32>)
  return %s#0, %s#1, %s#2, %s#3, %s#4, %s#5
      : tensor<4xf32>, tensor<4x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<16x4xf32>, tensor<11x16xf32>
}

// Two param dtypes and an integer table travel as bytes, in one gather.
//
// MIXED:       fsdp.bucket @[[G:.+]] gather @u[@router, @w, @table] : bytes
// MIXED-NOT:   fsdp.bucket
// MIXED-LABEL: func.func @forward(
// MIXED-NEXT:    fsdp.concat {{.+}} into @[[G]] : (tensor<2xf32>, tensor<2x8xf32>, tensor<4xi64>) -> tensor<384xi8>
// MIXED-NEXT:    fsdp.all_gather {{.+}} -> tensor<4x384xi8>
// MIXED-NEXT:    fsdp.unchunk {{.+}} -> (tensor<8xf32>, tensor<8x8xbf16>, tensor<16xi64>)
// MIXED-NEXT:    return

//--- mixed.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @router : tensor<8xf32> precision <param = f32>
  fsdp.param @w : tensor<8x8xf32>
  fsdp.param @table : tensor<16xi64> frozen
}
func.func @forward(%r: tensor<2xf32>, %s: tensor<2x8xf32>, %t: tensor<4xi64>)
    -> (tensor<8xf32>, tensor<8x8xbf16>, tensor<16xi64>) {
  %w:3 = fsdp.unshard @u(%r, %s, %t) : (tensor<2xf32>, tensor<2x8xf32>, tensor<4xi64>)
      -> (tensor<8xf32>, tensor<8x8xbf16>, tensor<16xi64>)
  return %w#0, %w#1, %w#2 : tensor<8xf32>, tensor<8x8xbf16>, tensor<16xi64>
}

// One parameter reduces in bf16: two reductions, still one gather.
//
// REDUCE-DAG:     fsdp.bucket @[[G:.+]] gather @u[@a, @b, @c] : bf16
// REDUCE-DAG:     fsdp.bucket @[[A:.+]] reduce @u[@a, @c] : f32
// REDUCE-DAG:     fsdp.bucket @[[B:.+]] reduce @u[@b] : bf16
// REDUCE-LABEL:   func.func @step(
// REDUCE-COUNT-1:   fsdp.all_gather
// REDUCE-NOT:       fsdp.all_gather
// REDUCE:           fsdp.reduce_scatter avg {{.+}} of @[[A]]
// REDUCE:           fsdp.reduce_scatter avg {{.+}} of @[[B]]
// REDUCE-NOT:       fsdp.reduce_scatter

//--- reduce.mlir
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<6xf32> precision <reduce = bf16>
  fsdp.param @c : tensor<8xf32>
}
func.func @step(%a: tensor<2xf32>, %b: tensor<3xf32>, %c: tensor<4xf32>)
    -> (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>) {
  %w:3 = fsdp.unshard @u(%a, %b, %c) : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>)
      -> (tensor<4xbf16>, tensor<6xbf16>, tensor<8xbf16>)
  %g:3 = "other.step"(%w#0, %w#1, %w#2) : (tensor<4xbf16>, tensor<6xbf16>, tensor<8xbf16>)
      -> (tensor<4xbf16>, tensor<6xbf16>, tensor<8xbf16>)
  %s:3 = fsdp.reduce_grads @u[@a, @b, @c](%g#0, %g#1, %g#2) : (tensor<4xbf16>, tensor<6xbf16>, tensor<8xbf16>)
      -> (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>)
  return %s#0, %s#1, %s#2 : tensor<2xf32>, tensor<3xf32>, tensor<4xf32>
}
