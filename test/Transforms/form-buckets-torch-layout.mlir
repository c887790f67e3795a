// RUN: fsdp-opt %s --fsdp-resolve-precision --fsdp-expand-units --fsdp-form-buckets=policy=torch-fsdp2 --split-input-file | FileCheck %s

// policy=torch-fsdp2 lays out densely, byte by byte, also where nothing merges and
// the naive form had an alignment of 128.

// torch_dense_bytes: bf16 (5) and f32 (4) lie at 0 and 6 of a row of 14.
// CHECK-LABEL: fsdp.unit @unaligned
// CHECK-DAG:   fsdp.bucket @unaligned_gather gather @unaligned[@a, @b] : bytes align 1
// CHECK-DAG:   fsdp.bucket @one.w_gather gather @one[@one.w] : bf16 align 1
// CHECK-LABEL: func.func @torch_dense_bytes(
// CHECK:         fsdp.concat {{.*}} -> tensor<14xi8>
// CHECK:         fsdp.concat {{.*}} into @one.w_gather : (tensor<3xbf16>) -> tensor<3xbf16>
shard.grid @dp(shape = 2)
fsdp.unit @unaligned on @dp {
  fsdp.param @a : tensor<5xbf16>
  fsdp.param @b : tensor<4xf32>
}
fsdp.unit @one on @dp {
  fsdp.param @one.w : tensor<5xbf16>
}
func.func @torch_dense_bytes(%a: tensor<3xbf16>, %b: tensor<2xf32>)
    -> (tensor<5xbf16>, tensor<4xf32>, tensor<5xbf16>) {
  %0:2 = fsdp.unshard @unaligned(%a, %b) : (tensor<3xbf16>, tensor<2xf32>) -> (tensor<5xbf16>, tensor<4xf32>)
  %1 = fsdp.unshard @one(%a) : (tensor<3xbf16>) -> tensor<5xbf16>
  return %0#0, %0#1, %1 : tensor<5xbf16>, tensor<4xf32>, tensor<5xbf16>
}

// -----

// torch_mixed_gather_one_reduction: bf16 (4,2) and f32 (3) lie at 0 and 8 of a
// row of 16; reduced in f32, a row has 6 elements.
// CHECK-LABEL: func.func @torch_mixed_gather_one_reduction(
// CHECK:         fsdp.concat {{.*}} -> tensor<16xi8>
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<2x6xf32>
// CHECK-NOT:     fsdp.chunk_cat
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp precision <reduce = f32> {
  fsdp.param @a : tensor<4x2xbf16>
  fsdp.param @b : tensor<3xf32>
}
func.func @torch_mixed_gather_one_reduction(%a: tensor<2x2xbf16>, %b: tensor<2xf32>, %ga: tensor<4x2xbf16>, %gb: tensor<3xf32>)
    -> (tensor<4x2xbf16>, tensor<3xf32>, tensor<2x2xbf16>, tensor<2xf32>) {
  %0:2 = fsdp.unshard @u(%a, %b) : (tensor<2x2xbf16>, tensor<2xf32>) -> (tensor<4x2xbf16>, tensor<3xf32>)
  %1:2 = fsdp.reduce_grads @u[@a, @b](%ga, %gb) : (tensor<4x2xbf16>, tensor<3xf32>) -> (tensor<2x2xbf16>, tensor<2xf32>)
  return %0#0, %0#1, %1#0, %1#1 : tensor<4x2xbf16>, tensor<3xf32>, tensor<2x2xbf16>, tensor<2xf32>
}

// -----

// torch_rows_of_three_ranks: A(2,4), B(3,3), C(1,2).
// CHECK-LABEL: func.func @torch_rows_of_three_ranks(
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<3x9xf32>
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<2x4xf32>
  fsdp.param @b : tensor<3x3xf32>
  fsdp.param @c : tensor<1x2xf32>
}
func.func @torch_rows_of_three_ranks(%a: tensor<2x4xf32>, %b: tensor<3x3xf32>, %c: tensor<1x2xf32>)
    -> (tensor<1x4xf32>, tensor<1x3xf32>, tensor<1x2xf32>) {
  %0:3 = fsdp.reduce_grads @u[@a, @b, @c](%a, %b, %c) : (tensor<2x4xf32>, tensor<3x3xf32>, tensor<1x2xf32>)
      -> (tensor<1x4xf32>, tensor<1x3xf32>, tensor<1x2xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x4xf32>, tensor<1x3xf32>, tensor<1x2xf32>
}

// -----

// torch_rows_of_two_ranks: the same and D(4,2).
// CHECK-LABEL: func.func @torch_rows_of_two_ranks(
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<2x16xf32>
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<2x4xf32>
  fsdp.param @b : tensor<3x3xf32>
  fsdp.param @c : tensor<1x2xf32>
  fsdp.param @d : tensor<4x2xf32>
}
func.func @torch_rows_of_two_ranks(%a: tensor<2x4xf32>, %b: tensor<3x3xf32>, %c: tensor<1x2xf32>, %d: tensor<4x2xf32>)
    -> (tensor<1x4xf32>, tensor<2x3xf32>, tensor<1x2xf32>, tensor<2x2xf32>) {
  %0:4 = fsdp.reduce_grads @u[@a, @b, @c, @d](%a, %b, %c, %d)
      : (tensor<2x4xf32>, tensor<3x3xf32>, tensor<1x2xf32>, tensor<4x2xf32>)
      -> (tensor<1x4xf32>, tensor<2x3xf32>, tensor<1x2xf32>, tensor<2x2xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<1x4xf32>, tensor<2x3xf32>, tensor<1x2xf32>, tensor<2x2xf32>
}

// -----

// torch_rows_of_four_ranks: (5,3), (7), (2049,2,2); the same on 2 ranks and 1.
// CHECK-LABEL: func.func @torch_rows_of_four_ranks(
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<4x2060xf32>
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<5x3xf32>
  fsdp.param @b : tensor<7xf32>
  fsdp.param @c : tensor<2049x2x2xf32>
}
func.func @torch_rows_of_four_ranks(%a: tensor<5x3xf32>, %b: tensor<7xf32>, %c: tensor<2049x2x2xf32>)
    -> (tensor<2x3xf32>, tensor<2xf32>, tensor<513x2x2xf32>) {
  %0:3 = fsdp.reduce_grads @u[@a, @b, @c](%a, %b, %c) : (tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>)
      -> (tensor<2x3xf32>, tensor<2xf32>, tensor<513x2x2xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x3xf32>, tensor<2xf32>, tensor<513x2x2xf32>
}

// -----

// CHECK-LABEL: func.func @torch_rows_of_two_ranks_large(
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<2x4113xf32>
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<5x3xf32>
  fsdp.param @b : tensor<7xf32>
  fsdp.param @c : tensor<2049x2x2xf32>
}
func.func @torch_rows_of_two_ranks_large(%a: tensor<5x3xf32>, %b: tensor<7xf32>, %c: tensor<2049x2x2xf32>)
    -> (tensor<3x3xf32>, tensor<4xf32>, tensor<1025x2x2xf32>) {
  %0:3 = fsdp.reduce_grads @u[@a, @b, @c](%a, %b, %c) : (tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>)
      -> (tensor<3x3xf32>, tensor<4xf32>, tensor<1025x2x2xf32>)
  return %0#0, %0#1, %0#2 : tensor<3x3xf32>, tensor<4xf32>, tensor<1025x2x2xf32>
}

// -----

// CHECK-LABEL: func.func @torch_rows_of_one_rank(
// CHECK:         fsdp.chunk_cat {{.*}} -> tensor<1x8218xf32>
shard.grid @dp(shape = 1)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<5x3xf32>
  fsdp.param @b : tensor<7xf32>
  fsdp.param @c : tensor<2049x2x2xf32>
}
func.func @torch_rows_of_one_rank(%a: tensor<5x3xf32>, %b: tensor<7xf32>, %c: tensor<2049x2x2xf32>)
    -> (tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>) {
  %0:3 = fsdp.reduce_grads @u[@a, @b, @c](%a, %b, %c) : (tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>)
      -> (tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>)
  return %0#0, %0#1, %0#2 : tensor<5x3xf32>, tensor<7xf32>, tensor<2049x2x2xf32>
}

// -----

// torch_layout_of_128_ranks: n = 257 1 312 1 64 256 2 297, a row of 1190.
// CHECK-LABEL: func.func @torch_layout_of_128_ranks(
// CHECK:         fsdp.concat {{.*}} : (tensor<1x257xf32>, tensor<1xf32>, tensor<1x312xf32>, tensor<1xf32>, tensor<1x64xf32>, tensor<4x64xf32>, tensor<2xf32>, tensor<1x297xf32>) -> tensor<1190xf32>
shard.grid @dp(shape = 128)
fsdp.unit @u on @dp {
  fsdp.param @p0 : tensor<17x257xf32>
  fsdp.param @p1 : tensor<17xf32>
  fsdp.param @p2 : tensor<64x312xf32>
  fsdp.param @p3 : tensor<64xf32>
  fsdp.param @p4 : tensor<64x64xf32>
  fsdp.param @p5 : tensor<512x64xf32>
  fsdp.param @p6 : tensor<256xf32>
  fsdp.param @p7 : tensor<64x297xf32>
}
func.func @torch_layout_of_128_ranks(%p0: tensor<1x257xf32>, %p1: tensor<1xf32>, %p2: tensor<1x312xf32>, %p3: tensor<1xf32>, %p4: tensor<1x64xf32>, %p5: tensor<4x64xf32>, %p6: tensor<2xf32>, %p7: tensor<1x297xf32>) {
  %w:8 = fsdp.unshard @u(%p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7)
      : (tensor<1x257xf32>, tensor<1xf32>, tensor<1x312xf32>, tensor<1xf32>, tensor<1x64xf32>, tensor<4x64xf32>, tensor<2xf32>, tensor<1x297xf32>)
      -> (tensor<17x257xf32>, tensor<17xf32>, tensor<64x312xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<512x64xf32>, tensor<256xf32>, tensor<64x297xf32>)
  return
}
