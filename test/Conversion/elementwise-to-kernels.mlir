// RUN: fsdp-opt %s --convert-elementwise-to-kernels | FileCheck %s
// RUN: fsdp-opt %s --convert-elementwise-to-kernels=target=emulate | FileCheck %s --check-prefix=EMULATE

// Three addresses and the number of elements, in blocks of 2048 of them.
// CHECK-LABEL: func.func @sum(
// CHECK:         %[[WORDS:.+]] = llvm.alloca %{{.+}} x !llvm.ptr
// CHECK:         %[[N:.+]] = arith.constant 5000 : i64
// CHECK-COUNT-3: memref.extract_aligned_pointer_as_index
// CHECK:         llvm.store %[[N]],
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_addf_f32 blocks in (%[[BLOCKS:.+]], %{{.+}}, %{{.+}}) threads in
// CHECK-SAME:        args(%[[WORDS]] : !llvm.ptr,
// CHECK-NOT:     linalg.generic
// EMULATE-LABEL: func.func @sum(
// EMULATE:         llvm.call @elementwise_addf_f32(
func.func @sum(%a: memref<50x100xf32>, %b: memref<50x100xf32>, %c: memref<50x100xf32>) {
  linalg.add ins(%a, %b : memref<50x100xf32>, memref<50x100xf32>) outs(%c : memref<50x100xf32>)
  return
}

// The same kernel for another size.
// CHECK-LABEL: func.func @smaller_sum(
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_addf_f32 blocks
func.func @smaller_sum(%a: memref<7xf32>, %b: memref<7xf32>) {
  linalg.add ins(%a, %b : memref<7xf32>, memref<7xf32>) outs(%b : memref<7xf32>)
  return
}

// A number of the caller's is a word; a constant is in the code.
// CHECK-LABEL: func.func @fill(
// CHECK:         %[[BITS:.+]] = arith.bitcast %{{.+}} : f32 to i32
// CHECK:         arith.extui %[[BITS]] : i32 to i64
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_fill_f32
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_fill_f32_0
func.func @fill(%a: memref<7xf32>, %x: f32) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%x : f32) outs(%a : memref<7xf32>)
  linalg.fill ins(%one : f32) outs(%a : memref<7xf32>)
  return
}

// Dense copies are the runtime's, strided ones are not.
// CHECK-LABEL: func.func @copies(
// CHECK:         memref.copy
// CHECK-NOT:     memref.copy
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_copy_i8
func.func @copies(%a: memref<4x8xi8>, %b: memref<4x8xi8>, %c: memref<4x8xi8, strided<[16, 1]>>) {
  memref.copy %a, %b : memref<4x8xi8> to memref<4x8xi8>
  memref.copy %b, %c : memref<4x8xi8> to memref<4x8xi8, strided<[16, 1]>>
  return
}

// Strides that only the buffer knows are words behind the addresses.
// CHECK-LABEL: func.func @unknown_strides(
// CHECK:         %{{.+}}, %{{.+}}, %{{.+}}:2, %[[STRIDES:.+]]:2 = memref.extract_strided_metadata
// CHECK:         arith.index_cast %[[STRIDES]]#0 : index to i64
// CHECK:         arith.index_cast %{{.+}}#1 : index to i64
// CHECK:         gpu.launch_func @fsdp_kernels::@elementwise_negf_f32
func.func @unknown_strides(%a: memref<4x8xf32, strided<[?, ?], offset: ?>>, %b: memref<4x8xf32>) {
  linalg.negf ins(%a : memref<4x8xf32, strided<[?, ?], offset: ?>>) outs(%b : memref<4x8xf32>)
  return
}

// Nothing to do.
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT:    return
func.func @empty(%a: memref<0x3xf32>) {
  linalg.negf ins(%a : memref<0x3xf32>) outs(%a : memref<0x3xf32>)
  return
}

// CHECK:       gpu.module @fsdp_kernels
// CHECK:         llvm.func @elementwise_addf_f32(%{{.+}}: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<4 x i64>, nvvm.grid_constant}, %{{.+}}: !llvm.ptr<1>)
// CHECK-SAME:        nvvm.maxntid = array<i32: 256, 1, 1>
// CHECK:           nvvm.griddepcontrol wait
// CHECK-COUNT-4:   llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:           arith.addf %{{.+}}, %{{.+}} : vector<4xf32>
// CHECK:           llvm.store %{{.+}} {alignment = 16 : i64}
