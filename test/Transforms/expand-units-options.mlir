// RUN: fsdp-opt %s --fsdp-resolve-precision --fsdp-expand-units="unused=zero accumulate=f32 align=16" | FileCheck %s

// `accumulate f32` on both collectives, where the wire is narrower than f32.
// Trainable parameters without a gradient are reduced as zeros in the wire
// dtype; frozen ones never are. A reduction of nothing stays nothing.

// CHECK-LABEL: fsdp.unit @u
// CHECK:       fsdp.bucket @absent_reduce_f32 reduce @u[@absent] : f32 align 16 group 1
// CHECK-NEXT:  fsdp.bucket @w_reduce_bf16 reduce @u[@w] : bf16 align 16 group 1
// CHECK-NEXT:  func.func @backward(
// CHECK-DAG:     %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[EMPTY:.+]] = tensor.empty() : tensor<3xf32>
// CHECK:         %[[FILL:.+]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<3xf32>)
// CHECK-NEXT:    %[[P:.+]] = fsdp.chunk_cat %[[FILL]] into @absent_reduce_f32 : (tensor<3xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:    %[[R:.+]] = fsdp.reduce_scatter avg %[[P]] of
// CHECK-NEXT:    %[[A:.+]] = fsdp.all_reduce avg %[[R]] of
// CHECK-NEXT:    fsdp.split %[[A]] of @absent_reduce_f32
// CHECK-NEXT:    fsdp.chunk_cat %{{.+}} into @w_reduce_bf16 : (tensor<4xbf16>) -> tensor<2x8xbf16>
// CHECK-NEXT:    fsdp.reduce_scatter avg accumulate f32
// CHECK-NEXT:    fsdp.all_reduce avg accumulate f32
// CHECK-NEXT:    %[[S:.+]] = fsdp.split
// CHECK-NEXT:    return %[[S]]
shard.grid @hsdp(shape = 2x2)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @absent : tensor<3xbf16> precision <reduce = f32>
  fsdp.param @w : tensor<4xbf16>
  fsdp.param @base : tensor<4xbf16> frozen
}
func.func @backward(%g: tensor<4xbf16>) -> tensor<2xbf16> {
  fsdp.reduce_grads @u[]() : () -> ()
  %s = fsdp.reduce_grads @u[@w](%g) : (tensor<4xbf16>) -> tensor<2xbf16>
  return %s : tensor<2xbf16>
}
