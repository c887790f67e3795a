// What the algebra would allow and a plan, its hash or the order of collectives
// forbids: see "Nothing of ours folds" in docs/Rationale.md.
//
// RUN: fsdp-opt %s --fsdp-print-plan > %t.before
// RUN: fsdp-opt %s --canonicalize --fsdp-print-plan > %t.after
// RUN: diff %t.before %t.after
// RUN: fsdp-opt %s --canonicalize | FileCheck %s

shard.grid @one(shape = 1)
fsdp.unit @u on @one {
  fsdp.param @w : tensor<4x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @g gather @u[@w] : f32 align 1
fsdp.bucket @r reduce @u[@w] : f32 align 1

// A collective over one rank.
// CHECK-LABEL: func @collectives_of_one_rank
// CHECK: fsdp.all_gather
// CHECK: fsdp.reduce_scatter sum
// CHECK: fsdp.reduce_scatter premul 1.0
func.func @collectives_of_one_rank(%f: tensor<12xf32>, %p: tensor<1x12xf32>)
    -> (tensor<1x12xf32>, tensor<12xf32>, tensor<12xf32>) {
  %0 = fsdp.all_gather %f of @g : (tensor<12xf32>) -> tensor<1x12xf32>
  %1 = fsdp.reduce_scatter sum %p of @r : (tensor<1x12xf32>) -> tensor<12xf32>
  %2 = fsdp.reduce_scatter premul 1.0 %p of @r : (tensor<1x12xf32>) -> tensor<12xf32>
  return %0, %1, %2 : tensor<1x12xf32>, tensor<12xf32>, tensor<12xf32>
}

// Pairs of local ops on two buckets of one layout.
// CHECK-LABEL: func @pairs
// CHECK: fsdp.concat
// CHECK: fsdp.split
// CHECK: fsdp.chunk_cat
// CHECK: fsdp.unchunk
func.func @pairs(%s: tensor<4x3xf32>, %x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %f = fsdp.concat %s into @g : (tensor<4x3xf32>) -> tensor<12xf32>
  %0 = fsdp.split %f of @r : (tensor<12xf32>) -> tensor<4x3xf32>
  %p = fsdp.chunk_cat %x into @r : (tensor<4x3xf32>) -> tensor<1x12xf32>
  %1 = fsdp.unchunk %p of @g : (tensor<1x12xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// A division that changes no value, and an addition that changes -0.
// CHECK-LABEL: func @divide_by_one
// CHECK: fsdp.chunk_cat {{.*}} divide 1.0
// CHECK: fsdp.split {{.*}} divide 1.0{{[0e+]*}} add(
func.func @divide_by_one(%x: tensor<4x3xf32>, %f: tensor<12xf32>) -> (tensor<1x12xf32>, tensor<4x3xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x3xf32>
  %0 = fsdp.chunk_cat %x into @r divide 1.0 : (tensor<4x3xf32>) -> tensor<1x12xf32>
  %1 = fsdp.split %f of @r divide 1.0 add(%zero : tensor<4x3xf32>) : (tensor<12xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<1x12xf32>, tensor<4x3xf32>
}
