// RUN: fsdp-opt %s -split-input-file --fsdp-resolve-precision --fsdp-expand-units | FileCheck %s

// The number of a unit op is one that no bucket has yet: the next one, or, where
// there is none, the first that is free.

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// CHECK-DAG: fsdp.bucket @w_gather gather @u[@w] : f32 group 8
// CHECK-DAG: fsdp.bucket @b gather @u[@w] : f32 group 7
fsdp.bucket @b gather @u[@w] : f32 group 7
func.func @next(%w: tensor<2xf32>) -> tensor<4xf32> {
  %0 = fsdp.unshard @u(%w) : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// CHECK-DAG: fsdp.bucket @{{.+}} gather @u[@w] : f32 group 5
// CHECK-DAG: fsdp.bucket @{{.+}} gather @u[@w] : f32 group 6
fsdp.bucket @a gather @u[@w] : f32 group 0
fsdp.bucket @b gather @u[@w] : f32 group 2
fsdp.bucket @c gather @u[@w] : f32 group 4
fsdp.bucket @d gather @u[@w] : f32 group -9223372036854775808
fsdp.bucket @e gather @u[@w] : f32 group 9223372036854775807
func.func @negative_none_is_left_at_the_end(%w: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = fsdp.unshard @u(%w) : (tensor<2xf32>) -> tensor<4xf32>
  %1 = fsdp.unshard @u(%w) : (tensor<2xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two ops need two numbers.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// CHECK-DAG: fsdp.bucket @{{.+}} gather @u[@w] : f32 group 0
// CHECK-DAG: fsdp.bucket @{{.+}} gather @u[@w] : f32 group 1
fsdp.bucket @e gather @u[@w] : f32 group 9223372036854775806
func.func @negative_one_is_left_at_the_end(%w: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = fsdp.unshard @u(%w) : (tensor<2xf32>) -> tensor<4xf32>
  %1 = fsdp.unshard @u(%w) : (tensor<2xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
