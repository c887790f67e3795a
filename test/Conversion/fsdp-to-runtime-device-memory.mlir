// RUN: fsdp-opt %s --convert-fsdp-to-runtime=device-memory --split-input-file --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --convert-fsdp-to-runtime --split-input-file | FileCheck %s --check-prefix=HOST

// A copy is the runtime's, and a constant is where the device has it.
// CHECK-LABEL: func.func @constant(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[BUFFERS:.+]]: !llvm.ptr) -> (i32 {fsdp.status})
// CHECK:         %[[SLOT:.+]] = llvm.alloca
// CHECK:         %[[C:.+]] = memref.get_global @c
// CHECK:         %[[WORD:.+]] = memref.extract_aligned_pointer_as_index %[[C]]
// CHECK:         %[[INT:.+]] = arith.index_cast %[[WORD]]
// CHECK:         %[[AT:.+]] = llvm.inttoptr %[[INT]]
// CHECK:         %[[SIX:.+]] = arith.constant 6 : i64
// CHECK:         call @fsdprtConstant(%[[CTX]], %[[AT]], %[[SIX]], %[[SLOT]])
// CHECK:         %[[DATA:.+]] = llvm.load %[[SLOT]]
// CHECK:         %[[PLACE:.+]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK:         %[[A:.+]] = llvm.load %[[PLACE]]
// CHECK:         call @fsdprtCopy(%[[CTX]], %[[DATA]], %[[A]], %{{.+}})
// CHECK-NOT:     memref.copy
// HOST-LABEL: func.func @constant(
// HOST-NEXT:    memref.get_global @c
// HOST-NEXT:    memref.copy
memref.global "private" constant @c : memref<3xbf16> = dense<[1.0, 2.0, 3.0]>
func.func @constant(%a: memref<3xbf16>) {
  %c = memref.get_global @c : memref<3xbf16>
  memref.copy %c, %a : memref<3xbf16> to memref<3xbf16>
  return
}

// The caller of such a function hands the context on.
// CHECK-LABEL: func.func @caller(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %{{.+}}: !llvm.ptr)
// CHECK:         call @constant(%[[CTX]],
func.func @caller(%a: memref<3xbf16>) {
  func.call @constant(%a) : (memref<3xbf16>) -> ()
  return
}
