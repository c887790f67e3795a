// RUN: fsdp-opt %s --fsdp-gather-in-place --split-input-file --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// The output moves up, and the flat shard becomes a row of it.
// CHECK-LABEL: func.func @temporary(
// CHECK-NEXT:    %[[G:.+]] = memref.alloc() : memref<4x32xf32>
// CHECK-NEXT:    %[[R:.+]] = shard.process_multi_index on @hsdp axes = [1] : index
// CHECK-NEXT:    %[[ROW:.+]] = memref.subview %[[G]][%[[R]], 0] [1, 32] [1, 1] : memref<4x32xf32> to memref<32xf32, strided<[1], offset: ?>>
// CHECK-NEXT:    fsdp.concat %{{.+}} into @b outs(%[[ROW]] :
// CHECK-NEXT:    fsdp.all_gather %[[ROW]] of @b outs(%[[G]] :
// CHECK-NEXT:    memref.dealloc %[[G]]
// CHECK-NEXT:    return
func.func @temporary(%w: memref<2x3xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  %g = memref.alloc() : memref<4x32xf32>
  // expected-remark @below {{packed into its own row}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  memref.dealloc %f : memref<32xf32>
  memref.dealloc %g : memref<4x32xf32>
  return
}

// CHECK-LABEL: func.func @argument(
// CHECK-SAME:      %[[G:[^,]+]]: memref<4x32xf32>)
// CHECK-NOT:     memref.alloc
// CHECK:         %[[ROW:.+]] = memref.subview %[[G]]
// CHECK:         fsdp.all_gather %[[ROW]] of @b outs(%[[G]] :
func.func @argument(%w: memref<2x3xf32>, %g: memref<4x32xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  // expected-remark @below {{packed into its own row}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  return
}

// Several axes are numbered row major, in the order in which they are listed.
// -----

shard.grid @grid(shape = 2x3x4)
fsdp.unit @u on @grid shard_axes [2, 0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// CHECK-LABEL: func.func @two_axes(
// CHECK:         %[[C:.+]]:2 = shard.process_multi_index on @grid axes = [2, 0] : index, index
// CHECK-NEXT:    %[[SIZE:.+]] = arith.constant 2 : index
// CHECK-NEXT:    %[[MUL:.+]] = arith.muli %[[C]]#0, %[[SIZE]]
// CHECK-NEXT:    %[[R:.+]] = arith.addi %[[MUL]], %[[C]]#1
// CHECK-NEXT:    memref.subview %{{.+}}[%[[R]], 0] [1, 32] [1, 1]
func.func @two_axes(%w: memref<1x3xf32>, %g: memref<8x32xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<1x3xf32>) -> ()
  // expected-remark @below {{packed into its own row}}
  fsdp.all_gather %f of @b outs(%g : memref<8x32xf32>) : (memref<32xf32>) -> ()
  return
}

// -----

shard.grid @grid(shape = 4)
fsdp.unit @u on @grid shard_axes [] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// CHECK-LABEL: func.func @no_axes(
// CHECK-NOT:     shard.process_multi_index
// CHECK:         memref.subview %{{.+}}[0, 0] [1, 32] [1, 1]
func.func @no_axes(%w: memref<8x3xf32>, %g: memref<1x32xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<8x3xf32>) -> ()
  // expected-remark @below {{packed into its own row}}
  fsdp.all_gather %f of @b outs(%g : memref<1x32xf32>) : (memref<32xf32>) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// CHECK-LABEL: func.func @negative_flat_is_used(
// CHECK-NOT:     memref.subview
func.func @negative_flat_is_used(%w: memref<2x3xf32>, %g: memref<4x32xf32>, %h: memref<32xf32>) {
  %f = memref.alloc() : memref<32xf32>
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  // expected-remark @below {{the flat shard has another use}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  memref.copy %f, %h : memref<32xf32> to memref<32xf32>
  return
}

// CHECK-LABEL: func.func @negative_flat_is_argument(
// CHECK-NOT:     memref.subview
func.func @negative_flat_is_argument(%f: memref<32xf32>, %g: memref<4x32xf32>) {
  // expected-remark @below {{the flat shard is not a buffer of its own}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @negative_output_is_used(
// CHECK-NOT:     memref.subview
func.func @negative_output_is_used(%w: memref<2x3xf32>, %x: f32) {
  %f = memref.alloc() : memref<32xf32>
  %g = memref.alloc() : memref<4x32xf32>
  linalg.fill ins(%x : f32) outs(%g : memref<4x32xf32>)
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  "use"(%g) : (memref<4x32xf32>) -> ()
  // expected-remark @below {{the gathered buffer is used before}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @negative_other_block(
// CHECK-NOT:     memref.subview
func.func @negative_other_block(%w: memref<2x3xf32>, %g: memref<4x32xf32>, %c: i1) {
  %f = memref.alloc() : memref<32xf32>
  scf.if %c {
    fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  }
  // expected-remark @below {{the flat shard is packed in another block}}
  fsdp.all_gather %f of @b outs(%g : memref<4x32xf32>) : (memref<32xf32>) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<0x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32

// CHECK-LABEL: func.func @negative_flat_is_empty(
// CHECK-NOT:     memref.subview
func.func @negative_flat_is_empty(%w: memref<0x3xf32>, %g: memref<4x0xf32>) {
  %f = memref.alloc() : memref<0xf32>
  fsdp.concat %w into @b outs(%f : memref<0xf32>) : (memref<0x3xf32>) -> ()
  // expected-remark @below {{the flat shard is empty}}
  fsdp.all_gather %f of @b outs(%g : memref<4x0xf32>) : (memref<0xf32>) -> ()
  return
}
