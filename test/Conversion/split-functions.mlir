// RUN: fsdp-opt %s --fsdp-split-functions=max-ops=4 --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-split-functions=max-ops=4 --split-input-file --convert-scf-to-cf --fsdp-propagate-status -o /dev/null

func.func private @call(!llvm.ptr) -> (i32 {fsdp.status})

// The context and the product go through the frame, constants are repeated, and
// only a part with calls that return a status returns one.
// CHECK-LABEL: func.func @straight(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[X:.+]]: f32) -> (f32, i32 {fsdp.status}) {
// CHECK:         %[[FRAME:.+]] = llvm.alloca %{{.+}} x i8 {alignment = 64 : i64}
// CHECK-DAG:     llvm.store %[[CTX]], %{{.+}}
// CHECK-DAG:     llvm.store %[[X]], %{{.+}}
// CHECK:         call @straight_part(%[[FRAME]]) : (!llvm.ptr) -> ()
// CHECK:         call @straight_part_0(%[[FRAME]]) : (!llvm.ptr) -> i32
// CHECK:         %[[Y:.+]] = llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:         return %[[Y]], %{{.+}} : f32, i32
func.func @straight(%context: !llvm.ptr, %x: f32) -> (f32, i32 {fsdp.status}) {
  %two = arith.constant 2.0 : f32
  %ok = arith.constant 0 : i32
  %a = arith.mulf %x, %two : f32
  %b = arith.mulf %a, %two : f32
  %c = arith.mulf %b, %two : f32
  %d = arith.mulf %c, %two : f32
  %s = call @call(%context) : (!llvm.ptr) -> i32
  %e = arith.mulf %d, %two : f32
  %f = arith.mulf %e, %two : f32
  %g = arith.mulf %f, %a : f32
  return %g, %ok : f32, i32
}
// CHECK-LABEL: func.func private @straight_part_0(
// CHECK-SAME:      %[[FRAME:.+]]: !llvm.ptr) -> (i32 {fsdp.status}) attributes {passthrough = ["noinline", "optnone"]} {
// CHECK:         %[[C:.+]] = llvm.load %{{.+}} : !llvm.ptr -> !llvm.ptr
// CHECK:         call @call(%[[C]])
// CHECK:         %[[D:.+]] = llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:         %[[TWO:.+]] = arith.constant 2.000000e+00 : f32
// CHECK:         arith.mulf %[[D]], %[[TWO]]
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
// CHECK:         return %{{.+}} : i32
// CHECK-LABEL: func.func private @straight_part(
// CHECK-SAME:      %{{.+}}: !llvm.ptr) attributes {passthrough = ["noinline", "optnone"]} {
// CHECK-COUNT-4: arith.mulf
// CHECK-NOT:     arith.mulf
// CHECK:         return

// -----

// The body of a loop has parts of its own; an index and a buffer go through the
// frame as what LLVM makes of them, and memory that one part alone uses is in
// that part.
// CHECK-LABEL: func.func @loop(
// CHECK:         llvm.alloca
// CHECK-NOT:     llvm.alloca
// CHECK:         scf.for
// CHECK:           call @loop_part(
// CHECK:           call @loop_part_{{[0-9]+}}(
// CHECK:         }
// CHECK-LABEL: func.func private @loop_part{{.*}}(
// CHECK:         llvm.load %{{.+}} : !llvm.ptr -> !llvm.struct<
func.func @loop(%n: index, %m: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %words = arith.constant 1 : i64
  %slot = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
  scf.for %i = %zero to %n step %one {
    %a = memref.load %m[%i] : memref<8xf32>
    %b = arith.mulf %a, %a : f32
    %c = arith.mulf %b, %a : f32
    %d = arith.mulf %c, %a : f32
    llvm.store %d, %slot : f32, !llvm.ptr
    %e = llvm.load %slot : !llvm.ptr -> f32
    %f = arith.mulf %e, %a : f32
    memref.store %f, %m[%i] : memref<8xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @negative_short(
// CHECK-NOT:     call
// CHECK:         return
func.func @negative_short(%x: f32) -> f32 {
  %a = arith.mulf %x, %x : f32
  %b = arith.mulf %a, %x : f32
  return %b : f32
}

// -----

// What is left of a block is cut again; a part of parts has their status.
func.func private @free(!llvm.ptr) -> (i32 {fsdp.status})
// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-4: call @twice_part
// CHECK-NOT:     call @twice_part
// CHECK:         return
// CHECK:       func.func private @twice_part{{.*}}(%{{.+}}: !llvm.ptr) -> (i32 {fsdp.status})
// CHECK:         call @twice_part{{.*}}(%{{.+}}) : (!llvm.ptr) -> i32
func.func @twice(%context: !llvm.ptr) -> (i32 {fsdp.status}) {
  %ok = arith.constant 0 : i32
  %s0 = call @free(%context) : (!llvm.ptr) -> i32
  %s1 = call @free(%context) : (!llvm.ptr) -> i32
  %s2 = call @free(%context) : (!llvm.ptr) -> i32
  %s3 = call @free(%context) : (!llvm.ptr) -> i32
  %s4 = call @free(%context) : (!llvm.ptr) -> i32
  %s5 = call @free(%context) : (!llvm.ptr) -> i32
  %s6 = call @free(%context) : (!llvm.ptr) -> i32
  %s7 = call @free(%context) : (!llvm.ptr) -> i32
  %s8 = call @free(%context) : (!llvm.ptr) -> i32
  %s9 = call @free(%context) : (!llvm.ptr) -> i32
  %s10 = call @free(%context) : (!llvm.ptr) -> i32
  %s11 = call @free(%context) : (!llvm.ptr) -> i32
  %s12 = call @free(%context) : (!llvm.ptr) -> i32
  %s13 = call @free(%context) : (!llvm.ptr) -> i32
  %s14 = call @free(%context) : (!llvm.ptr) -> i32
  %s15 = call @free(%context) : (!llvm.ptr) -> i32
  %s16 = call @free(%context) : (!llvm.ptr) -> i32
  %s17 = call @free(%context) : (!llvm.ptr) -> i32
  %s18 = call @free(%context) : (!llvm.ptr) -> i32
  %s19 = call @free(%context) : (!llvm.ptr) -> i32
  %s20 = call @free(%context) : (!llvm.ptr) -> i32
  %s21 = call @free(%context) : (!llvm.ptr) -> i32
  %s22 = call @free(%context) : (!llvm.ptr) -> i32
  %s23 = call @free(%context) : (!llvm.ptr) -> i32
  %s24 = call @free(%context) : (!llvm.ptr) -> i32
  %s25 = call @free(%context) : (!llvm.ptr) -> i32
  %s26 = call @free(%context) : (!llvm.ptr) -> i32
  %s27 = call @free(%context) : (!llvm.ptr) -> i32
  %s28 = call @free(%context) : (!llvm.ptr) -> i32
  %s29 = call @free(%context) : (!llvm.ptr) -> i32
  %s30 = call @free(%context) : (!llvm.ptr) -> i32
  %s31 = call @free(%context) : (!llvm.ptr) -> i32
  %s32 = call @free(%context) : (!llvm.ptr) -> i32
  %s33 = call @free(%context) : (!llvm.ptr) -> i32
  %s34 = call @free(%context) : (!llvm.ptr) -> i32
  %s35 = call @free(%context) : (!llvm.ptr) -> i32
  %s36 = call @free(%context) : (!llvm.ptr) -> i32
  %s37 = call @free(%context) : (!llvm.ptr) -> i32
  %s38 = call @free(%context) : (!llvm.ptr) -> i32
  %s39 = call @free(%context) : (!llvm.ptr) -> i32
  return %ok : i32
}
