// RUN: fsdp-opt %s --convert-fsdp-to-runtime --split-input-file --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --convert-fsdp-to-runtime --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=RECORDS

shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @g gather @u[@w] : bytes
fsdp.bucket @r reduce @u[@w] : bf16

// The declarations have the types of the C header; units and buckets are gone.
// CHECK-NOT:   fsdp.unit
// CHECK-NOT:   shard.grid
// CHECK-DAG:   llvm.mlir.global internal constant @[[GNAME:fsdp_bucket_name.*]]("g\00")
// CHECK-DAG:   llvm.mlir.global internal constant @[[RNAME:fsdp_bucket_name.*]]("r\00")
// CHECK-DAG:   func.func private @fsdprtRunCollectives(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> (i32 {fsdp.status})

// A record is a constant: size, kind, dtype (4 is bytes, 1 is bf16), reduction,
// accumulate, number of axes, count, multiplier, name and axes. Axes that are
// equal are one list.
// CHECK-DAG:   llvm.mlir.global internal constant @[[SHARD:fsdp_axes.*]](dense<1> : tensor<1xi32>) {{.*}} : !llvm.array<1 x i32>
// CHECK-DAG:   llvm.mlir.global internal constant @[[REPLICATE:fsdp_axes.*]](dense<0> : tensor<1xi32>) {{.*}} : !llvm.array<1 x i32>

// RECORDS-LABEL: llvm.mlir.global internal constant @fsdp_collective_3() {{.*}} : !llvm.struct<(array<6 x i32>, i64, f64, ptr, ptr)>
// RECORDS:         constant(dense<[56, 2, 1, 1, 0, 1]> : tensor<6xi32>)
// RECORDS-NEXT:    insertvalue {{.*}}[0]
// RECORDS-NEXT:    constant(64 : i64)
// RECORDS-NEXT:    insertvalue {{.*}}[1]
// RECORDS-NEXT:    constant(0.000000e+00 : f64)
// RECORDS-NEXT:    insertvalue {{.*}}[2]
// RECORDS-NEXT:    addressof @fsdp_bucket_name_0 :
// RECORDS-NEXT:    insertvalue {{.*}}[3]
// RECORDS-NEXT:    addressof @fsdp_axes_2 :
// RECORDS-NEXT:    insertvalue {{.*}}[4]
// RECORDS-LABEL: llvm.mlir.global internal constant @fsdp_collective_1()
// RECORDS:         constant(dense<[56, 1, 1, 2, 1, 1]> : tensor<6xi32>)
// RECORDS:         constant(64 : i64)
// RECORDS:         constant(2.500000e-01 : f64)
// RECORDS:         addressof @fsdp_axes :
// RECORDS-LABEL: llvm.mlir.global internal constant @fsdp_collective()
// RECORDS:         constant(dense<[56, 0, 4, 0, 0, 1]> : tensor<6xi32>)
// RECORDS:         constant(128 : i64)
// RECORDS:         addressof @fsdp_bucket_name :

// Lists of one are on the frame, and one call has them all.
// CHECK-LABEL: func.func @all_gather(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[BUFFERS:.+]]: !llvm.ptr) -> (i32 {fsdp.status})
// Buffers are in a table, and nothing but their addresses is left of them.
// CHECK-NOT:     memref
// CHECK-DAG:     %[[LISTS:.+]] = llvm.alloca
// CHECK-DAG:     %[[RECORD:.+]] = llvm.mlir.addressof @fsdp_collective :
// CHECK-DAG:     %[[F:.+]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK-DAG:     %[[SEND:.+]] = llvm.load %[[F]] : !llvm.ptr -> !llvm.ptr
// CHECK-DAG:     %[[G:.+]] = llvm.getelementptr %[[BUFFERS]][1]
// CHECK-DAG:     %[[RECEIVE:.+]] = llvm.load %[[G]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[L0:.+]] = llvm.getelementptr %[[LISTS]][0]
// CHECK-NEXT:    llvm.store %[[RECORD]], %[[L0]]
// CHECK-NEXT:    %[[L1:.+]] = llvm.getelementptr %[[LISTS]][1]
// CHECK-NEXT:    llvm.store %[[SEND]], %[[L1]]
// CHECK-NEXT:    %[[L2:.+]] = llvm.getelementptr %[[LISTS]][2]
// CHECK-NEXT:    llvm.store %[[RECEIVE]], %[[L2]]
// CHECK-NEXT:    %[[ONE:.+]] = arith.constant 1 : i32
// CHECK-NEXT:    call @fsdprtRunCollectives(%[[CTX]], %[[L0]], %[[ONE]], %[[L1]], %[[L2]])
// CHECK-NEXT:    %[[OK:.+]] = arith.constant 0 : i32
// CHECK-NEXT:    return %[[OK]] : i32
func.func @all_gather(%f: memref<128xi8>, %g: memref<4x128xi8>) {
  fsdp.all_gather %f of @g outs(%g : memref<4x128xi8>) : (memref<128xi8>) -> ()
  return
}

// Equal collectives share a record.
// CHECK-LABEL: func.func @reduce_scatter(
// CHECK:         llvm.mlir.addressof @fsdp_collective_1 :
// CHECK:         call @fsdprtRunCollectives(
// CHECK:         llvm.mlir.addressof @fsdp_collective_1 :
// CHECK:         call @fsdprtRunCollectives(
func.func @reduce_scatter(%b: memref<4x64xbf16>, %r: memref<64xbf16>, %s: memref<64xbf16>) {
  fsdp.reduce_scatter premul 0.25 accumulate f32 %b of @r outs(%r : memref<64xbf16>) : (memref<4x64xbf16>) -> ()
  fsdp.reduce_scatter premul 0.25 accumulate f32 %b of @r outs(%s : memref<64xbf16>) : (memref<4x64xbf16>) -> ()
  return
}

// Over the replicate axes.
// CHECK-LABEL: func.func @all_reduce(
// CHECK:         llvm.mlir.addressof @fsdp_collective_3 :
// CHECK:         call @fsdprtRunCollectives(
func.func @all_reduce(%r: memref<64xbf16>, %a: memref<64xbf16>) {
  fsdp.all_reduce avg %r of @r outs(%a : memref<64xbf16>) : (memref<64xbf16>) -> ()
  return
}

// -----

shard.grid @grid(shape = 2x3)

// CHECK-LABEL: func.func @buffers(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[N:.+]]: index)
// CHECK:         %[[SLOT:.+]] = llvm.alloca
// CHECK:         %[[BYTES:.+]] = arith.constant 48 : i64
// CHECK:         call @fsdprtAlloc(%[[CTX]], %[[BYTES]], %[[SLOT]])
// CHECK:         %[[DATA:.+]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[A:.+]] = builtin.unrealized_conversion_cast %{{.+}} to memref<4x6xf16>
// CHECK:         "use"(%[[A]])
// CHECK:         call @fsdprtFree(%[[CTX]], %[[DATA]])
// CHECK:         %[[ROW:.+]] = arith.constant 24 : i64
// CHECK:         %[[SIZE:.+]] = arith.index_cast %[[N]] : index to i64
// CHECK:         %[[PRODUCT:.+]] = arith.muli %[[ROW]], %[[SIZE]] : i64
// CHECK:         call @fsdprtAlloc(%[[CTX]], %[[PRODUCT]], %[[SLOT]])
// CHECK:         builtin.unrealized_conversion_cast %{{.+}} to memref<?x6xf32>
func.func @buffers(%n: index) {
  %a = memref.alloc() : memref<4x6xf16>
  "use"(%a) : (memref<4x6xf16>) -> ()
  memref.dealloc %a : memref<4x6xf16>
  %b = memref.alloc(%n) : memref<?x6xf32>
  "use"(%b) : (memref<?x6xf32>) -> ()
  memref.dealloc %b : memref<?x6xf32>
  return
}

// CHECK-LABEL: func.func @ranks(
// CHECK:         call @fsdprtRank(%{{.+}}, %[[SLOT:[^)]+]])
// CHECK:         %[[RANK:.+]] = llvm.load %[[SLOT]] : !llvm.ptr -> i64
// CHECK:         arith.index_cast %[[RANK]] : i64 to index
// CHECK:         %[[AXIS:.+]] = arith.constant 1 : i32
// CHECK:         call @fsdprtCoordinate(%{{.+}}, %[[AXIS]], %{{.+}})
// No axes are all of them.
// CHECK:         %[[FIRST:.+]] = arith.constant 0 : i32
// CHECK:         call @fsdprtCoordinate(%{{.+}}, %[[FIRST]], %{{.+}})
// CHECK:         %[[SECOND:.+]] = arith.constant 1 : i32
// CHECK:         call @fsdprtCoordinate(%{{.+}}, %[[SECOND]], %{{.+}})
func.func @ranks() -> (index, index, index, index) {
  %rank = shard.process_linear_index on @grid : index
  %y = shard.process_multi_index on @grid axes = [1] : index
  %c:2 = shard.process_multi_index on @grid : index, index
  return %rank, %y, %c#0, %c#1 : index, index, index, index
}

// CHECK-LABEL: func.func @caller(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr) -> (index, i32 {fsdp.status})
// CHECK:         %[[R:[^:]+]]:5 = call @ranks(%[[CTX]]) : (!llvm.ptr) -> (index, index, index, index, i32)
// CHECK:         return %[[R]]#2, %{{.+}} : index, i32
func.func @caller() -> index {
  %c:4 = call @ranks() : () -> (index, index, index, index)
  return %c#2 : index
}

// What does not reach the runtime stays as it is.
// CHECK-LABEL: func.func @pure(
// CHECK-SAME:      %{{.+}}: index) -> index
func.func @pure(%n: index) -> index {
  return %n : index
}

// -----

// The entry reads its pointers in order, each where it is used.
// CHECK-NOT:   @step
// CHECK-LABEL: func.func @fsdprt_entry_step(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[ARGUMENTS:.+]]: !llvm.ptr, %[[RESULTS:.+]]: !llvm.ptr) -> (i32 {fsdp.status})
// CHECK-NOT:     llvm.getelementptr %[[ARGUMENTS]][1]
// CHECK-DAG:     llvm.getelementptr %[[ARGUMENTS]][0]
// CHECK-DAG:     %[[A:.+]] = builtin.unrealized_conversion_cast %{{.+}} to memref<4xf32>
// CHECK-DAG:     llvm.getelementptr %[[RESULTS]][0]
// CHECK-DAG:     %[[C:.+]] = builtin.unrealized_conversion_cast %{{.+}} to memref<4xf32>
// CHECK:         memref.copy
// CHECK:         return
func.func @step(%a: memref<4xf32>, %b: memref<2xbf16>, %c: memref<4xf32>) attributes {fsdp.entry = 2 : i64} {
  memref.copy %a, %c : memref<4xf32> to memref<4xf32>
  return
}

// -----

// CHECK-LABEL: func.func @fsdprt_entry_scalars(
// CHECK-DAG:     %[[WORD:.+]] = llvm.load %{{.+}} : !llvm.ptr -> i64
// CHECK-DAG:     %[[N:.+]] = arith.index_cast %[[WORD]] : i64 to index
// CHECK-DAG:     %[[BYTE:.+]] = llvm.load %{{.+}} : !llvm.ptr -> i8
// CHECK-DAG:     %[[C:.+]] = arith.cmpi ne, %[[BYTE]], %{{.+}} : i8
// CHECK-DAG:     %[[X:.+]] = llvm.load %{{.+}} : !llvm.ptr -> bf16
// CHECK:         "use"(%[[N]], %[[C]], %[[X]])
func.func @scalars(%n: index, %c: i1, %x: bf16) attributes {fsdp.entry = 3 : i64} {
  "use"(%n, %c, %x) : (index, i1, bf16) -> ()
  return
}

// A call of an entry makes its tables, one of scalars by address.
// CHECK-LABEL: func.func @call_entry(
// CHECK-SAME:      %[[CTX:.+]]: !llvm.ptr, %[[N:.+]]: index, %[[C:.+]]: i1, %[[X:.+]]: bf16)
// CHECK-DAG:     %[[WORD:.+]] = arith.index_cast %[[N]] : index to i64
// CHECK-DAG:     llvm.store %[[WORD]], %{{.+}} : i64, !llvm.ptr
// CHECK-DAG:     %[[BYTE:.+]] = arith.extui %[[C]] : i1 to i8
// CHECK-DAG:     llvm.store %[[BYTE]], %{{.+}} : i8, !llvm.ptr
// CHECK-DAG:     llvm.store %[[X]], %{{.+}} : bf16, !llvm.ptr
// CHECK-DAG:     %[[NONE:.+]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         call @fsdprt_entry_scalars(%[[CTX]], %{{.+}}, %[[NONE]]) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
func.func @call_entry(%n: index, %c: i1, %x: bf16) {
  call @scalars(%n, %c, %x) : (index, i1, bf16) -> ()
  return
}

// -----

// A function that is no entry has its dense buffers in a table, other arguments
// as they are.
// CHECK-LABEL: func.func @private_call(
// CHECK-SAME:      %{{.+}}: !llvm.ptr, %[[BUFFERS:.+]]: !llvm.ptr, %[[V:.+]]: memref<?xf32>)
// CHECK:         %[[TABLE:[^ ]+]] = llvm.alloca
// CHECK:         %[[OLD:.+]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK:         %[[ADDRESS:.+]] = llvm.load %[[OLD]]
// CHECK:         %[[NEW:.+]] = llvm.getelementptr %[[TABLE]][0]
// CHECK:         llvm.store %[[ADDRESS]], %[[NEW]] : !llvm.ptr, !llvm.ptr
// CHECK:         call @private_callee(%{{.+}}, %[[TABLE]], %[[V]]) : (!llvm.ptr, !llvm.ptr, memref<?xf32>) -> i32
func.func @private_call(%v: memref<?xf32>, %a: memref<4xf32>) {
  call @private_callee(%a, %v) : (memref<4xf32>, memref<?xf32>) -> ()
  return
}
// CHECK-LABEL: func.func private @private_callee(
// CHECK-SAME:      %{{.+}}: !llvm.ptr, %{{.+}}: !llvm.ptr, %{{.+}}: memref<?xf32> {some.name}) -> (i32 {fsdp.status})
func.func private @private_callee(%a: memref<4xf32>, %v: memref<?xf32> {some.name}) {
  %b = memref.alloc() : memref<4xf32>
  memref.dealloc %b : memref<4xf32>
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
func.func @negative_unit_op(%w: tensor<2x3xf32>) -> tensor<8x3xf32> {
  // expected-error @below {{has no lowering to the runtime: expected fsdp-expand-units to have removed it}}
  %f = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  return %f : tensor<8x3xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @negative_value_form(%f: tensor<32xf32>) -> tensor<4x32xf32> {
  // expected-error @below {{has no lowering to the runtime: expected the buffer form, after bufferization}}
  %g = fsdp.all_gather %f of @b : (tensor<32xf32>) -> tensor<4x32xf32>
  return %g : tensor<4x32xf32>
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @negative_local_op(%w: memref<2x3xf32>, %f: memref<32xf32>) {
  // expected-error @below {{has no lowering to the runtime: expected convert-fsdp-to-tiles to have removed it}}
  fsdp.concat %w into @b outs(%f : memref<32xf32>) : (memref<2x3xf32>) -> ()
  return
}

// -----

func.func @negative_memory_space() {
  // expected-error @below {{expected a dense buffer in the default memory space, but it is 'memref<4xf32, 1>'}}
  %a = memref.alloc() : memref<4xf32, 1>
  return
}

// -----

// expected-error @below {{cannot be an entry: expected 1 inputs, which are scalars or dense buffers of static shape, then such buffers, and no result}}
func.func @negative_entry(%a: memref<?xf32>) attributes {fsdp.entry = 1 : i64} {
  return
}
