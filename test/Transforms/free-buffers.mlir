// RUN: fsdp-opt %s --fsdp-free-buffers --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @last_use(
// CHECK:         %[[A:.+]] = memref.alloc() : memref<4xf32>
// CHECK:         memref.copy %{{.+}}, %[[A]]
// CHECK:         memref.copy %[[A]], %{{.+}}
// CHECK-NEXT:    memref.dealloc %[[A]]
// CHECK-NEXT:    memref.copy
func.func @last_use(%x: memref<4xf32>, %y: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %y : memref<4xf32> to memref<4xf32>
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// A view keeps its buffer.
// CHECK-LABEL: func.func @view(
// CHECK:         %[[A:.+]] = memref.alloc() : memref<2x4xf32>
// CHECK:         %[[V:.+]] = memref.subview %[[A]]
// CHECK:         memref.copy %{{.+}}, %[[V]]
// CHECK-NEXT:    memref.dealloc %[[A]]
func.func @view(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<2x4xf32>
  %v = memref.subview %a[1, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %x, %v : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  return
}

// A buffer of a loop's body dies there, one that the body uses after the loop.
// CHECK-LABEL: func.func @loop(
// CHECK:         %[[A:.+]] = memref.alloc() : memref<4xf32>
// CHECK:         scf.for
// CHECK:           %[[B:.+]] = memref.alloc() : memref<4xf32>
// CHECK:           memref.copy %[[A]], %[[B]]
// CHECK-NEXT:      memref.dealloc %[[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.dealloc %[[A]]
func.func @loop(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  scf.for %i = %zero to %n step %one {
    %b = memref.alloc() : memref<4xf32>
    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// What a loop carries is upstream's: here the previous buffer dies in each
// iteration. The other one is still ours.
// CHECK-LABEL: func.func @carried(
// CHECK:         %[[A:.+]] = memref.alloc() : memref<4xf32>
// CHECK:         memref.copy %{{.+}}, %[[A]]
// CHECK-NEXT:    memref.dealloc %[[A]]
// CHECK:         scf.for
// CHECK:           %[[R:.+]] = memref.alloc() : memref<4xf32>
// CHECK:           scf.yield
// CHECK-NOT:     memref.alloca
func.func @carried(%x: memref<4xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %last = scf.for %i = %zero to %n step %one iter_args(%previous = %x) -> memref<4xf32> {
    %r = memref.alloc() : memref<4xf32>
    memref.copy %previous, %r : memref<4xf32> to memref<4xf32>
    scf.yield %r : memref<4xf32>
  }
  memref.copy %last, %x : memref<4xf32> to memref<4xf32>
  return
}
