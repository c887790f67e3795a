// RUN: fsdp-opt %s --fsdp-propagate-status --split-input-file --verify-diagnostics | FileCheck %s

// CHECK:       func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> i32
func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})

// CHECK-LABEL: func.func @two_calls(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[A:.+]]: !llvm.ptr, %[[B:.+]]: !llvm.ptr) -> (index, i32) {
// CHECK:         %[[S:.+]] = call @fsdprtFree(%[[CTX]], %[[A]])
// CHECK:         %[[SFAILED:.+]] = arith.cmpi ne, %[[S]], %{{.+}} : i32
// CHECK:         cf.cond_br %[[SFAILED]], ^[[FAILURE:.+]](%[[S]] : i32), ^[[NEXT:.+]]
// CHECK:       ^[[NEXT]]:
// CHECK:         %[[T:.+]] = call @fsdprtFree(%[[CTX]], %[[B]])
// CHECK:         %[[TFAILED:.+]] = arith.cmpi ne, %[[T]], %{{.+}} : i32
// CHECK:         cf.cond_br %[[TFAILED]], ^[[FAILURE]](%[[T]] : i32), ^[[LAST:.+]]
// CHECK:       ^[[LAST]]:
// CHECK:         return %{{.+}}, %{{.+}} : index, i32
// CHECK:       ^[[FAILURE]](%[[STATUS:.+]]: i32):
// CHECK:         %[[POISON:.+]] = ub.poison : index
// CHECK:         return %[[POISON]], %[[STATUS]] : index, i32
func.func @two_calls(%context: !llvm.ptr, %a: !llvm.ptr, %b: !llvm.ptr) -> (index, i32 {fsdp.status}) {
  %n = arith.constant 5 : index
  %s = call @fsdprtFree(%context, %a) : (!llvm.ptr, !llvm.ptr) -> i32
  %t = call @fsdprtFree(%context, %b) : (!llvm.ptr, !llvm.ptr) -> i32
  %zero = arith.constant 0 : i32
  return %n, %zero : index, i32
}

// CHECK-LABEL: func.func @in_loop(
// CHECK:       ^[[BODY:.+]]:
// CHECK:         call @fsdprtFree
// CHECK:         cf.cond_br %{{.+}}, ^[[FAILURE:.+]](%{{.+}} : i32), ^[[NEXT:.+]]
// CHECK:       ^[[NEXT]]:
// CHECK-NEXT:    cf.br
// CHECK:       ^[[FAILURE]](
func.func @in_loop(%context: !llvm.ptr, %a: !llvm.ptr, %c: i1) -> (i32 {fsdp.status}) {
  cf.br ^head
^head:
  cf.cond_br %c, ^body, ^exit
^body:
  %s = call @fsdprtFree(%context, %a) : (!llvm.ptr, !llvm.ptr) -> i32
  cf.br ^head
^exit:
  %zero = arith.constant 0 : i32
  return %zero : i32
}

// A status that is returned needs no check.
// CHECK-LABEL: func.func @returned(
// CHECK-NEXT:    %[[S:[^:]+]]:2 = call @two_calls
// CHECK-NEXT:    return %[[S]]#1 : i32
// CHECK-NEXT:  }
func.func @returned(%context: !llvm.ptr, %a: !llvm.ptr) -> (i32 {fsdp.status}) {
  %s:2 = call @two_calls(%context, %a, %a) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> (index, i32)
  return %s#1 : i32
}

// -----

func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})
func.func @negative_in_region(%context: !llvm.ptr, %a: !llvm.ptr, %c: i1) -> (i32 {fsdp.status}) {
  scf.if %c {
    // expected-error @below {{returns a status inside of 'scf.if': expected flat control flow, after convert-scf-to-cf}}
    %s = func.call @fsdprtFree(%context, %a) : (!llvm.ptr, !llvm.ptr) -> i32
  }
  %zero = arith.constant 0 : i32
  return %zero : i32
}

// -----

func.func private @fsdprtFree(!llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})
func.func @negative_no_status(%context: !llvm.ptr, %a: !llvm.ptr) {
  // expected-error @below {{returns a status, but 'negative_no_status' does not}}
  %s = call @fsdprtFree(%context, %a) : (!llvm.ptr, !llvm.ptr) -> i32
  return
}
