// RUN: fsdp-opt %s --split-input-file --convert-fsdp-to-tiles=print-plan 2>&1 >/dev/null | FileCheck %s --check-prefix=PLAN
// RUN: fsdp-opt %s --split-input-file --convert-fsdp-to-tiles 2>/dev/null | FileCheck %s

// The example of the layout's documentation: two tiles, the gap included.
// PLAN:      pack layer0_reduce_f32: 4 rows of 256 bytes, granule 4, 2 tiles per row, 2 contiguous
// PLAN-NEXT:   norm: i32->i32 i0 0 offset 0 count 32 inner 3 line 10 run 0
// PLAN-NEXT:   wq: bf16->f32 i0 0 offset 32 count 32 inner 6 line 24 run 0
shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.bucket @layer0_reduce_f32 reduce @layer0[@norm, @wq] : f32

// CHECK-LABEL: func @two_members(
// CHECK-SAME:      %[[NORM:.+]]: memref<10xf32>, %[[WQ:.+]]: memref<8x3xbf16>, %[[OUT:.+]]: memref<4x64xf32>)
// CHECK:         %[[MEMBERS:.+]] = llvm.alloca
// CHECK:         memref.extract_aligned_pointer_as_index %[[NORM]]
// CHECK:         memref.extract_aligned_pointer_as_index %[[WQ]]
// CHECK:         memref.extract_aligned_pointer_as_index %[[OUT]]
// CHECK:         llvm.mlir.addressof @layer0_reduce_f32_chunk_cat_tiles
// CHECK:         llvm.call @fsdp_pack_i32_i32_bf16_f32(
// CHECK-NEXT:    return
// CHECK:       llvm.func internal @fsdp_pack_i32_i32_bf16_f32(
// CHECK-SAME:      no_inline
// CHECK:       llvm.mlir.global internal constant @layer0_reduce_f32_chunk_cat_tiles(dense<[{{[0-9]+}}, 0, 0, 32, 3, 10, 0, 0, {{[0-9]+}}, 0, 32, 32, 6, 24, 0, 0]>
func.func @two_members(%n: memref<10xf32>, %q: memref<8x3xbf16>, %b: memref<4x64xf32>) {
  fsdp.chunk_cat %n, %q into @layer0_reduce_f32 outs(%b : memref<4x64xf32>)
      : (memref<10xf32>, memref<8x3xbf16>) -> ()
  return
}

// -----

// Long runs are cut at 4096 elements and at their ends, short ones are put
// together, and strided members stand behind the others.
// PLAN:      pack b: 2 rows of 74752 bytes, granule 4, 8 tiles per row, 3 contiguous
// PLAN-NEXT:   cut: i32->i32 i0 0 offset 0 count 4096 inner 5000 line 9999 run 0
// PLAN-NEXT:   cut: i32->i32 i0 4096 offset 4096 count 928 inner 5000 line 9999 run 0
// PLAN-NEXT:   last: i32->i32 i0 0 offset 18656 count 32 inner 1 line 1 run 0
// PLAN-NEXT:   long: i32->i32 i0 0 offset 5024 count 4096 inner 5000 line 10000 run 0
// PLAN-NEXT:   long: i32->i32 i0 4096 offset 9120 count 904 inner 5000 line 10000 run 0
// PLAN-NEXT:   long: i32->i32 i0 0 offset 10024 count 4096 inner 5000 line 10000 run 1
// PLAN-NEXT:   long: i32->i32 i0 4096 offset 14120 count 920 inner 5000 line 10000 run 1
// PLAN-NEXT:   short: i32->i32 elements 3600 offset 15040 count 3616 inner 3 line 6 run 0
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @cut : tensor<9999xf32>
  fsdp.param @long : tensor<2x10000xf32> shard_dim 1
  fsdp.param @short : tensor<1200x6xf32> shard_dim 1
  fsdp.param @last : tensor<1xf32>
}
fsdp.bucket @c reduce @u[@cut, @long, @short] : f32
fsdp.bucket @b reduce @u[@cut, @long, @short, @last] : f32
// CHECK-LABEL: func @strided(
// Two calls: rows outside for the first tiles, inside for the strided ones.
// CHECK:         %[[TABLE:.+]] = llvm.mlir.addressof @b_chunk_cat_tiles
// CHECK:         llvm.getelementptr %[[TABLE]][0]
// CHECK:         %[[ROWS:.+]] = arith.constant true
// CHECK:         llvm.call @fsdp_pack_i32_i32({{.*}}, %[[ROWS]])
// CHECK:         llvm.getelementptr %[[TABLE]][3]
// CHECK:         %[[TILES:.+]] = arith.constant false
// CHECK:         llvm.call @fsdp_pack_i32_i32({{.*}}, %[[TILES]])
func.func @strided(%0: memref<9999xf32>, %1: memref<2x10000xf32>, %2: memref<1200x6xf32>, %3: memref<1xf32>,
                   %b: memref<2x18688xf32>) {
  fsdp.chunk_cat %0, %1, %2, %3 into @b outs(%b : memref<2x18688xf32>)
      : (memref<9999xf32>, memref<2x10000xf32>, memref<1200x6xf32>, memref<1xf32>) -> ()
  return
}

// -----

// A gap that does not fit the last tile has tiles of its own.
// PLAN:      pack r: 2 rows of 32768 bytes, granule 2, 3 tiles per row, 0 contiguous
// PLAN-NEXT:   short: i16->i16 elements 8190 offset 0 count 8190 inner 3 line 6 run 0
// PLAN-NEXT:   short: i16->i16 elements 8190 offset 8190 count 8190 inner 3 line 6 run 2730
// PLAN-NEXT:   short: i16->i16 elements 0 offset 16380 count 4 inner 1 line 1 run 0
// The flat shard is one run; tiles of bytes have more elements.
// PLAN:      pack b: 1 rows of 20480 bytes, granule 1, 2 tiles per row, 2 contiguous
// PLAN-NEXT:   ids: i8->i8 i0 0 offset 0 count 16384 inner 16385 line 16385 run 0
// PLAN-NEXT:   ids: i8->i8 i0 16384 offset 16384 count 4096 inner 16385 line 16385 run 0
// Only packing fills gaps.
// PLAN:      unpack b: 2 rows of 20480 bytes, granule 1, 2 tiles per row, 2 contiguous
// PLAN-NEXT:   ids: i8->i8 i0 0 offset 0 count 16384 inner 16385 line 32770 run 0
// PLAN-NEXT:   ids: i8->i8 i0 16384 offset 16384 count 1 inner 16385 line 32770 run 0
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @short : tensor<5460x6xbf16> shard_dim 1
  fsdp.param @ids : tensor<32770xi8> frozen
}
fsdp.bucket @r reduce @u[@short] : bf16 align 4096
fsdp.bucket @b gather @u[@ids] : bytes align 4096
// CHECK-LABEL: func @gap(
// CHECK:         llvm.call @fsdp_pack_i16_i16(
// CHECK:         llvm.call @fsdp_pack_i8_i8(
// CHECK:         llvm.call @fsdp_unpack_i8_i8(
func.func @gap(%s: memref<5460x6xbf16>, %r: memref<2x16384xbf16>, %0: memref<16385xi8>, %f: memref<20480xi8>,
               %g: memref<2x20480xi8>, %w: memref<32770xi8>) {
  fsdp.chunk_cat %s into @r outs(%r : memref<2x16384xbf16>) : (memref<5460x6xbf16>) -> ()
  fsdp.concat %0 into @b outs(%f : memref<20480xi8>) : (memref<16385xi8>) -> ()
  fsdp.unchunk %g of @b outs(%w : memref<32770xi8>) : (memref<2x20480xi8>) -> ()
  return
}

// -----

// One function per direction, pairs of dtypes, divisor and addition; ops share
// it. A bucket without elements needs no code, a row of a larger buffer has an
// offset, and what is not dense is copied.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
  fsdp.param @none : tensor<0xf32>
}
fsdp.bucket @b reduce @u[@w] : f32
fsdp.bucket @e reduce @u[@none] : f32
// CHECK-LABEL: func @share(
// CHECK-COUNT-2: llvm.call @fsdp_unpack_f32_f32_divide_3FF8000000000000_add(
// CHECK:         llvm.call @fsdp_unpack_i32_i32(
// CHECK-NOT:     llvm.call
// CHECK:         return
func.func @share(%f: memref<32xf32>, %old: memref<2x3xf32>, %s: memref<2x3xf32>, %e: memref<0xf32>) {
  fsdp.split %f of @b divide 1.5 add(%old : memref<2x3xf32>) outs(%s : memref<2x3xf32>) : (memref<32xf32>) -> ()
  fsdp.split %f of @b divide 1.5 add(%old : memref<2x3xf32>) outs(%s : memref<2x3xf32>) : (memref<32xf32>) -> ()
  fsdp.split %f of @b outs(%s : memref<2x3xf32>) : (memref<32xf32>) -> ()
  fsdp.split %e of @e outs(%e : memref<0xf32>) : (memref<0xf32>) -> ()
  return
}

// CHECK-LABEL: func @row(
// CHECK:         memref.extract_strided_metadata
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @row(%f: memref<32xf32, strided<[1], offset: ?>>, %s: memref<2x3xf32>) {
  fsdp.split %f of @b outs(%s : memref<2x3xf32>) : (memref<32xf32, strided<[1], offset: ?>>) -> ()
  return
}

// CHECK-LABEL: func @not_dense(
// CHECK-SAME:      %[[IN:.+]]: memref<4x3xf32, strided<[8, 1]>>, %{{.+}}: memref<2x32xf32>)
// CHECK:         %[[DENSE:.+]] = memref.alloc() : memref<4x3xf32>
// CHECK:         memref.copy %[[IN]], %[[DENSE]]
// CHECK:         llvm.call
// CHECK:         memref.dealloc %[[DENSE]]
func.func @not_dense(%g: memref<4x3xf32, strided<[8, 1]>>, %b: memref<2x32xf32>) {
  fsdp.chunk_cat %g into @b outs(%b : memref<2x32xf32>) : (memref<4x3xf32, strided<[8, 1]>>) -> ()
  return
}

// -----

// What is only copied is one pair of dtypes: integers of the smallest one's
// width. A cast is another. Offsets of tiles, not only of segments, decide the
// unit that they are counted in: the second tile of `runs` is at byte 16482.
// PLAN:      pack g: 1 rows of 32640 bytes, granule 4, 5 tiles per row, 5 contiguous
// PLAN-NEXT:   vector: i16->i16 i0 0 offset 0 count 64 inner 10 line 10 run 0
// PLAN-NEXT:   runs: i16->i16 i0 0 offset 32 count 8192 inner 10200 line 10200 run 0
// PLAN-NEXT:   runs: i16->i16 i0 8192 offset 4128 count 2048 inner 10200 line 10200 run 0
// PLAN-NEXT:   cast: f32->bf16 i0 0 offset 5152 count 4096 inner 6000 line 6000 run 0
// PLAN:      unpack g: 2 rows of 32640 bytes, granule 2, 4 tiles per row, 2 contiguous
// PLAN-NEXT:   vector: i16->i16 i0 0 offset 0 count 10 inner 10 line 20 run 0
// PLAN-NEXT:   cast: i16->i16
// PLAN-NEXT:   runs: i16->i16 elements 8177 offset 64 count 8177 inner 17 line 34 run 0
// PLAN-NEXT:   runs: i16->i16 elements 2023 offset 8241 count 2023 inner 17 line 34 run 481
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @vector : tensor<10xf32>
  fsdp.param @runs : tensor<600x34xbf16> shard_dim 1
  fsdp.param @cast : tensor<12000xf32> precision <param = bf16>
}
fsdp.bucket @g gather @u[@vector, @runs, @cast] : bytes
// CHECK-LABEL: func @byte_bucket(
// CHECK:         llvm.call @fsdp_pack_i16_i16_f32_bf16(
// CHECK:         llvm.call @fsdp_unpack_i16_i16(
func.func @byte_bucket(%v: memref<5xf32>, %r: memref<600x17xbf16>, %c: memref<6000xf32>, %f: memref<32640xi8>,
                       %g: memref<2x32640xi8>, %fv: memref<10xf32>, %fr: memref<600x34xbf16>, %fc: memref<12000xbf16>) {
  fsdp.concat %v, %r, %c into @g outs(%f : memref<32640xi8>) : (memref<5xf32>, memref<600x17xbf16>, memref<6000xf32>) -> ()
  fsdp.unchunk %g of @g outs(%fv, %fr, %fc : memref<10xf32>, memref<600x34xbf16>, memref<12000xbf16>) : (memref<2x32640xi8>) -> ()
  return
}

// -----

// A member without elements needs no dense copy, whatever its shape.
// CHECK-LABEL: func @no_elements(
// CHECK-NOT:     memref.copy
// CHECK:         return
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
  fsdp.param @none : tensor<4x0xf32>
}
fsdp.bucket @b reduce @u[@w, @none] : f32
func.func @no_elements(%w: memref<4x3xf32>, %e: memref<4x0xf32>, %b: memref<2x32xf32>) {
  fsdp.chunk_cat %w, %e into @b outs(%b : memref<2x32xf32>) : (memref<4x3xf32>, memref<4x0xf32>) -> ()
  return
}
