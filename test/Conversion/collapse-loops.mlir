// RUN: fsdp-opt %s --fsdp-collapse-loops | FileCheck %s

#identity = affine_map<(i, j) -> (i, j)>
#transposed = affine_map<(i, j) -> (j, i)>
#scalar = affine_map<(i, j) -> ()>

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[SCALAR:.+]] = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @dense(
// CHECK-SAME:      %[[A:.+]]: memref<8x3xf32>, %[[B:.+]]: memref<8x3xf32>, %[[X:.+]]: f32)
// CHECK-DAG:     %[[U:.+]] = memref.collapse_shape %[[A]] {{\[}}[0, 1]] : memref<8x3xf32> into memref<24xf32>
// CHECK-DAG:     %[[V:.+]] = memref.collapse_shape %[[B]] {{\[}}[0, 1]] : memref<8x3xf32> into memref<24xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[SCALAR]], #[[ID]]], iterator_types = ["parallel"]} ins(%[[U]], %[[X]] : memref<24xf32>, f32) outs(%[[V]] : memref<24xf32>)
func.func @dense(%a: memref<8x3xf32>, %b: memref<8x3xf32>, %x: f32) {
  linalg.generic {indexing_maps = [#identity, #scalar, #identity], iterator_types = ["parallel", "parallel"]}
      ins(%a, %x : memref<8x3xf32>, f32) outs(%b : memref<8x3xf32>) {
  ^bb0(%i: f32, %s: f32, %o: f32):
    %r = arith.mulf %i, %s : f32
    linalg.yield %r : f32
  }
  return
}

// CHECK-LABEL: func.func @strided_copy(
// CHECK:         linalg.generic
// CHECK-NOT:     memref.copy
func.func @strided_copy(%a: memref<4x4xf32, strided<[8, 1]>>, %b: memref<4x4xf32>) {
  memref.copy %a, %b : memref<4x4xf32, strided<[8, 1]>> to memref<4x4xf32>
  return
}

// CHECK-LABEL: func.func @negative_transposed(
// CHECK-NOT:     memref.collapse_shape
func.func @negative_transposed(%a: memref<3x8xf32>, %b: memref<8x3xf32>) {
  linalg.generic {indexing_maps = [#transposed, #identity], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<3x8xf32>) outs(%b : memref<8x3xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  }
  return
}

// CHECK-LABEL: func.func @negative_index(
// CHECK-NOT:     memref.collapse_shape
func.func @negative_index(%b: memref<8x3xindex>) {
  linalg.generic {indexing_maps = [#identity], iterator_types = ["parallel", "parallel"]}
      outs(%b : memref<8x3xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  }
  return
}

// CHECK-LABEL: func.func @negative_reduction(
// CHECK-NOT:     memref.collapse_shape
func.func @negative_reduction(%a: memref<8x3xf32>, %b: memref<8x3xf32>) {
  linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<8x3xf32>) outs(%b : memref<8x3xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  }
  return
}
