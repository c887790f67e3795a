// RUN: fsdp-opt %s --fsdp-share-loops=min-loops=2 | FileCheck %s

// Shapes may differ, and where the loops stand.
// CHECK-LABEL: func.func @casts(
// CHECK-SAME:      %[[A:.+]]: memref<8x3xf32>, %[[B:.+]]: memref<8x3xbf16>, %[[C:.+]]: memref<5xf32>, %[[D:.+]]: memref<5xbf16>)
// CHECK:         memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:         memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:         %[[N:.+]] = arith.constant 24 : index
// CHECK:         call @fsdp_loop(%{{.+}}, %{{.+}}, %[[N]]) : (!llvm.ptr, !llvm.ptr, index) -> ()
// CHECK:         %[[M:.+]] = arith.constant 5 : index
// CHECK:         call @fsdp_loop(%{{.+}}, %{{.+}}, %[[M]])
// CHECK:         return
func.func @casts(%a: memref<8x3xf32>, %b: memref<8x3xbf16>, %c: memref<5xf32>, %d: memref<5xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x3xf32>) outs(%b : memref<8x3xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %z = arith.truncf %x : f32 to bf16
    linalg.yield %z : bf16
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%c : memref<5xf32>) outs(%d : memref<5xbf16>) {
  ^bb0(%x: f32, %y: bf16):
    %z = arith.truncf %x : f32 to bf16
    linalg.yield %z : bf16
  }
  return
}

// One of a kind, one that takes a value from outside, one on a strided buffer,
// a transposition.
// CHECK-LABEL: func.func @negative(
// CHECK-NOT:     call
// CHECK:         return
func.func @negative(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %s: memref<4x4xf32, strided<[8, 1]>>, %t: f32) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %t : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %t : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<4x4xf32, strided<[8, 1]>>) outs(%b : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %x : f32
    linalg.yield %z : f32
  }
  return
}
// CHECK:       func.func private @fsdp_loop(%{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: index) attributes {passthrough = ["noinline"]} {
// CHECK:         linalg.generic
// CHECK-SAME:      iterator_types = ["parallel"]
// CHECK-SAME:      ins(%{{.+}} : memref<?xf32>) outs(%{{.+}} : memref<?xbf16>)
