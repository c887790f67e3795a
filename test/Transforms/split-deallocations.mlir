// RUN: fsdp-opt %s --fsdp-split-deallocations | FileCheck %s

// Either name may stand for one buffer: then it is freed once.
// CHECK-LABEL: func.func @may_be_one(
// CHECK-SAME:      %[[A:.+]]: memref<4xf32>, %[[B:.+]]: memref<4xf32>, %[[OWN_A:.+]]: i1, %[[OWN_B:.+]]: i1)
// CHECK:         bufferization.dealloc (%[[A]] : memref<4xf32>) if (%[[OWN_A]]){{$}}
// CHECK-DAG:     %[[AT_A:.+]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK-DAG:     %[[AT_B:.+]] = memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:         %[[SAME:.+]] = arith.cmpi eq, %[[AT_A]], %[[AT_B]]
// CHECK:         %[[DONE:.+]] = arith.andi %[[OWN_A]], %[[SAME]]
// CHECK:         %[[NOT_DONE:.+]] = arith.xori %[[DONE]], %true
// CHECK:         %[[FREE:.+]] = arith.andi %[[OWN_B]], %[[NOT_DONE]]
// CHECK:         bufferization.dealloc (%[[B]] : memref<4xf32>) if (%[[FREE]]){{$}}
func.func @may_be_one(%a: memref<4xf32>, %b: memref<4xf32>, %own_a: i1, %own_b: i1) {
  bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%own_a, %own_b)
  return
}

// What is kept belongs to whoever owned it under either name.
// CHECK-LABEL: func.func @kept(
// CHECK-SAME:      %[[KEPT:[^:]+]]: memref<4xf32>) -> i1
// CHECK:         %[[A:.+]] = bufferization.dealloc ({{.*}}) if ({{.*}}) retain (%[[KEPT]] : memref<4xf32>)
// CHECK:         %[[B:.+]] = bufferization.dealloc ({{.*}}) if ({{.*}}) retain (%[[KEPT]] : memref<4xf32>)
// CHECK:         %[[OWN:.+]] = arith.ori %[[A]], %[[B]] : i1
// CHECK:         return %[[OWN]]
func.func @kept(%a: memref<4xf32>, %b: memref<4xf32>, %own_a: i1, %own_b: i1, %kept: memref<4xf32>) -> i1 {
  %own = bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%own_a, %own_b) retain (%kept : memref<4xf32>)
  return %own : i1
}

// CHECK-LABEL: func.func @negative_two_allocations(
// CHECK-NOT:     arith.cmpi
// CHECK-COUNT-2: bufferization.dealloc
func.func @negative_two_allocations(%own_a: i1, %own_b: i1) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%own_a, %own_b)
  return
}

// CHECK-LABEL: func.func @negative_one_buffer(
// CHECK-NEXT:    bufferization.dealloc (%{{.+}} : memref<4xf32>) if (%{{.+}})
// CHECK-NEXT:    return
func.func @negative_one_buffer(%a: memref<4xf32>, %own: i1) {
  bufferization.dealloc (%a : memref<4xf32>) if (%own)
  return
}
