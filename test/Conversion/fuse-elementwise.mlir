// RUN: fsdp-opt %s --convert-elementwise-to-linalg --fsdp-fuse-elementwise | FileCheck %s

// A chain is one op, and a constant of equal elements a number of it.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:      %[[G:.+]]: tensor<8xbf16>, %[[H:.+]]: tensor<8xbf16>)
// CHECK:         %[[C:.+]] = arith.constant 1.500000e+00 : f32
// CHECK:         %[[R:.+]] = linalg.generic
// CHECK-SAME:        ins(%[[G]], %[[H]], %[[C]] : tensor<8xbf16>, tensor<8xbf16>, f32)
// CHECK:           arith.extf
// CHECK:           arith.extf
// CHECK:           arith.addf
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[R]]
func.func @chain(%g: tensor<8xbf16>, %h: tensor<8xbf16>) -> tensor<8xf32> {
  %c = arith.constant dense<1.5> : tensor<8xf32>
  %x = arith.extf %g : tensor<8xbf16> to tensor<8xf32>
  %y = arith.extf %h : tensor<8xbf16> to tensor<8xf32>
  %s = arith.addf %x, %y : tensor<8xf32>
  %r = arith.mulf %s, %c : tensor<8xf32>
  return %r : tensor<8xf32>
}

// Named ops, splats and fills too.
// CHECK-LABEL: func.func @named(
// CHECK-SAME:      %[[A:.+]]: tensor<8xf32>, %[[S:.+]]: f32, %[[T:.+]]: f32)
// CHECK-NOT:     tensor.splat
// CHECK-NOT:     linalg.fill
// CHECK:         linalg.generic {{.*}} ins(%[[A]], %[[S]], %[[T]] : tensor<8xf32>, f32, f32)
func.func @named(%a: tensor<8xf32>, %s: f32, %t: f32) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %x = tensor.splat %s : tensor<8xf32>
  %y = linalg.fill ins(%t : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %p = linalg.mul ins(%a, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.add ins(%p, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Elsewhere a constant of equal elements is filled, where it is needed.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8xf32>
}
fsdp.bucket @b reduce @u[@w] : f32
// CHECK-LABEL: func.func @filled(
// CHECK-NEXT:    %[[Z:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[E:.+]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT:    %[[F:.+]] = linalg.fill ins(%[[Z]] : f32) outs(%[[E]] : tensor<8xf32>)
// CHECK-NEXT:    fsdp.chunk_cat %[[F]] into @b
func.func @filled() -> tensor<2x32xf32> {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %p = fsdp.chunk_cat %z into @b : (tensor<8xf32>) -> tensor<2x32xf32>
  return %p : tensor<2x32xf32>
}

// Not in each iteration of a loop that reads it, and once for all uses in it.
// CHECK-LABEL: func.func @loop(
// CHECK:         %[[F:.+]] = linalg.fill
// CHECK:         scf.for
// CHECK-NOT:       linalg.fill
// CHECK:           fsdp.chunk_cat %[[F]]
// CHECK:           fsdp.chunk_cat %[[F]]
func.func @loop(%n: index, %i: tensor<2x32xf32>) -> tensor<2x32xf32> {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %k = %zero to %n step %one iter_args(%x = %i) -> tensor<2x32xf32> {
    %p = fsdp.chunk_cat %z into @b : (tensor<8xf32>) -> tensor<2x32xf32>
    %q = fsdp.chunk_cat %z into @b : (tensor<8xf32>) -> tensor<2x32xf32>
    %s = arith.addf %p, %q : tensor<2x32xf32>
    scf.yield %s : tensor<2x32xf32>
  }
  return %r : tensor<2x32xf32>
}

// CHECK-LABEL: func.func @negative_elements_differ(
// CHECK:         %[[C:.+]] = arith.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK:         linalg.generic {{.*}} ins(%{{.+}}, %[[C]] :
func.func @negative_elements_differ(%a: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = arith.addf %a, %c : tensor<2xf32>
  return %r : tensor<2xf32>
}

// A value with another use is computed once.
// CHECK-LABEL: func.func @negative_two_uses(
// CHECK:         %[[X:.+]] = linalg.generic
// CHECK:           arith.negf
// CHECK:         %[[Y:.+]] = linalg.generic {{.*}} ins(%[[X]],
// CHECK:         return %[[X]], %[[Y]]
func.func @negative_two_uses(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %x = arith.negf %a : tensor<8xf32>
  %y = arith.addf %x, %b : tensor<8xf32>
  return %x, %y : tensor<8xf32>, tensor<8xf32>
}

// Into a loop nothing moves, it would be computed again and again.
// CHECK-LABEL: func.func @negative_loop(
// CHECK:         arith.negf
// CHECK:         scf.for
// CHECK:           arith.addf
func.func @negative_loop(%a: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %x = arith.negf %a : tensor<8xf32>
  %r = scf.for %k = %zero to %n step %one iter_args(%s = %a) -> tensor<8xf32> {
    %t = arith.addf %s, %x : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A ninth tensor is one too many for a kernel that loads all of them first.
// CHECK-LABEL: func.func @negative_too_many_tensors(
// CHECK:         linalg.generic
// CHECK:         linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @negative_too_many_tensors(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>, %e: tensor<8xf32>,
                                     %f: tensor<8xf32>, %g: tensor<8xf32>, %h: tensor<8xf32>, %i: tensor<8xf32>) -> tensor<8xf32> {
  %1 = arith.addf %a, %b : tensor<8xf32>
  %2 = arith.addf %1, %c : tensor<8xf32>
  %3 = arith.addf %2, %d : tensor<8xf32>
  %4 = arith.addf %3, %e : tensor<8xf32>
  %5 = arith.addf %4, %f : tensor<8xf32>
  %6 = arith.addf %5, %g : tensor<8xf32>
  %7 = arith.addf %6, %h : tensor<8xf32>
  %8 = arith.addf %7, %i : tensor<8xf32>
  return %8 : tensor<8xf32>
}

// A destination that the program has chosen.
// CHECK-LABEL: func.func @negative_destination(
// CHECK:         %[[S:.+]] = tensor.extract_slice
// CHECK:         linalg.generic {{.*}} outs(%[[S]] :
func.func @negative_destination(%a: tensor<4xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %s = tensor.extract_slice %b[2] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %n = linalg.negf ins(%a : tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  %r = tensor.insert_slice %n into %b[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}
