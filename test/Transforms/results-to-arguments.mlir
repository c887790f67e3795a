// RUN: fsdp-opt %s --fsdp-results-to-arguments --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @allocated(
// CHECK-SAME:      %[[A:.+]]: memref<4xf32>, %[[R:.+]]: memref<4xf32> {some.name}) {
// CHECK-NEXT:    memref.copy %[[A]], %[[R]]
// CHECK-NEXT:    return
func.func @allocated(%a: memref<4xf32>) -> (memref<4xf32> {some.name}) {
  %r = memref.alloc() : memref<4xf32>
  memref.copy %a, %r : memref<4xf32> to memref<4xf32>
  return %r : memref<4xf32>
}

// CHECK-LABEL: func.func @call(
// CHECK-SAME:      %[[A:.+]]: memref<4xf32>, %[[R:.+]]: memref<4xf32>)
// CHECK-NEXT:    call @allocated(%[[A]], %[[R]])
// CHECK-NEXT:    return
func.func @call(%a: memref<4xf32>) -> memref<4xf32> {
  %r = call @allocated(%a) : (memref<4xf32>) -> memref<4xf32>
  return %r : memref<4xf32>
}

// CHECK-LABEL: func.func @returned_twice(
// CHECK-SAME:      %[[R:.+]]: memref<4xf32>, %[[S:.+]]: memref<4xf32>) {
// CHECK-NEXT:    "write"(%[[R]])
// CHECK-NEXT:    memref.copy %[[R]], %[[S]]
// CHECK-NEXT:    return
func.func @returned_twice() -> (memref<4xf32>, memref<4xf32>) {
  %r = memref.alloc() : memref<4xf32>
  "write"(%r) : (memref<4xf32>) -> ()
  return %r, %r : memref<4xf32>, memref<4xf32>
}

// CHECK-LABEL: func.func @argument_returned(
// CHECK-SAME:      %[[A:.+]]: memref<4xf32>, %[[R:.+]]: memref<4xf32>) -> index {
// CHECK:         memref.copy %[[A]], %[[R]]
// CHECK-NEXT:    return %{{.+}} : index
func.func @argument_returned(%a: memref<4xf32>) -> (index, memref<4xf32>) {
  %i = arith.constant 3 : index
  return %i, %a : index, memref<4xf32>
}

// The last of several buffers: it is allocated more than once.
// CHECK-LABEL: func.func @allocated_in_loop(
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK:         memref.copy
func.func @allocated_in_loop(%n: index, %init: memref<4xf32>) -> memref<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = scf.for %i = %zero to %n step %one iter_args(%previous = %init) -> memref<4xf32> {
    %r = memref.alloc() : memref<4xf32>
    "write"(%previous, %r) : (memref<4xf32>, memref<4xf32>) -> ()
    scf.yield %r : memref<4xf32>
  }
  return %last : memref<4xf32>
}

// Two returns: a buffer of one could be overwritten on the way to the other.
// CHECK-LABEL: func.func @two_returns(
// CHECK-SAME:      %{{.+}}: i1, %[[R:.+]]: memref<4xf32>)
// CHECK:         memref.copy %{{.+}}, %[[R]]
// CHECK:         return
// CHECK:         memref.copy %{{.+}}, %[[R]]
// CHECK:         return
func.func @two_returns(%c: i1) -> memref<4xf32> {
  %a = memref.alloc() : memref<4xf32>
  cf.cond_br %c, ^first, ^second
^first:
  return %a : memref<4xf32>
^second:
  %b = memref.alloc() : memref<4xf32>
  return %b : memref<4xf32>
}

// -----

// expected-error @below {{returns a buffer that its caller cannot allocate: expected a dense one of static shape as result #0, but it is 'memref<?xf32>'}}
func.func @negative_dynamic(%a: memref<?xf32>) -> memref<?xf32> {
  return %a : memref<?xf32>
}

// -----

func.func @f() -> memref<4xf32> {
  %a = memref.alloc() : memref<4xf32>
  return %a : memref<4xf32>
}
func.func @negative_indirect() {
  // expected-error @below {{refers to 'f', which returns a buffer: expected direct calls only}}
  %f = func.constant @f : () -> memref<4xf32>
  return
}
