// RUN: fsdp-opt %s --fsdp-entries-to-buffers | FileCheck %s

// CHECK-LABEL: func.func @entry(
// CHECK-SAME:      %[[M:.+]]: memref<4xf32> {some.name}, %[[N:.+]]: index) -> (memref<4xf32> {other.name}, memref<4xf32>)
// CHECK:         %[[A:.+]] = bufferization.to_tensor %[[M]] restrict : memref<4xf32> to tensor<4xf32>
// CHECK:         %[[B:.+]] = "op"(%[[A]], %[[N]])
// CHECK:         %[[R:.+]] = bufferization.to_buffer %[[B]] read_only
// CHECK:         %[[S:.+]] = bufferization.to_buffer %[[A]] read_only
// CHECK:         return %[[R]], %[[S]] : memref<4xf32>, memref<4xf32>
func.func @entry(%a: tensor<4xf32> {some.name, bufferization.writable = false}, %n: index) -> (tensor<4xf32> {other.name}, tensor<4xf32>)
    attributes {fsdp.entry = 2 : i64} {
  %b = "op"(%a, %n) : (tensor<4xf32>, index) -> tensor<4xf32>
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_no_entry(
// CHECK-SAME:      %{{.+}}: tensor<4xf32>)
func.func @negative_no_entry(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_called(
// CHECK-SAME:      %{{.+}}: tensor<4xf32>)
func.func @negative_called(%a: tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.entry = 1 : i64} {
  return %a : tensor<4xf32>
}
func.func @caller(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @negative_called(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
