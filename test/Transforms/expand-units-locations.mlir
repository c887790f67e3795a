// RUN: fsdp-opt %s --fsdp-resolve-precision --fsdp-expand-units="unused=zero" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Everything is located at the unit op, under the name of its parameter.

// CHECK:       fsdp.bucket @w_gather {{.+}} loc("w"("model.mlir":1:2))
// CHECK:       fsdp.bucket @absent_reduce_f32 {{.+}} loc("absent"("model.mlir":3:4))
// CHECK:       fsdp.bucket @w_reduce_f32 {{.+}} loc("w"("model.mlir":3:4))
// CHECK:         arith.truncf {{.+}} loc("w"("model.mlir":1:2))
// CHECK-NEXT:    fsdp.concat {{.+}} loc("w"("model.mlir":1:2))
// CHECK-NEXT:    fsdp.all_gather {{.+}} loc("w"("model.mlir":1:2))
// CHECK-NEXT:    fsdp.unchunk {{.+}} loc("w"("model.mlir":1:2))
// CHECK:         arith.constant {{.+}} loc("absent"("model.mlir":3:4))
// CHECK-NEXT:    tensor.empty() {{.+}} loc("absent"("model.mlir":3:4))
// CHECK-NEXT:    linalg.fill {{.+}} loc("absent"("model.mlir":3:4))
// CHECK-NEXT:    fsdp.chunk_cat {{.+}} loc("absent"("model.mlir":3:4))
// CHECK:         fsdp.reduce_scatter {{.+}} @w_reduce_f32 {{.+}} loc("w"("model.mlir":3:4))
// CHECK-NEXT:    fsdp.split {{.+}} loc("w"("model.mlir":3:4))
// CHECK-NEXT:    arith.truncf {{.+}} loc("w"("model.mlir":3:4))
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @absent : tensor<4xf32>
  fsdp.param @w : tensor<4xf32> precision <param = bf16, reduce = f32, grad = bf16>
}
func.func @step(%s: tensor<1xf32>, %g: tensor<4xf32>) -> (tensor<4xbf16>, tensor<1xbf16>) {
  %w:2 = fsdp.unshard @u(%s, %s) : (tensor<1xf32>, tensor<1xf32>) -> (tensor<4xf32>, tensor<4xbf16>) loc("model.mlir":1:2)
  %d = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xbf16> loc("model.mlir":3:4)
  return %w#1, %d : tensor<4xbf16>, tensor<1xbf16>
}
