// RUN: fsdp-opt %s --convert-fsdp-to-tiles=target=cuda | FileCheck %s
// RUN: fsdp-opt %s --convert-fsdp-to-tiles=target=emulate | FileCheck %s --check-prefix=EMULATE

shard.grid @dp(shape = 4)
fsdp.unit @"layers.0" on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}
fsdp.bucket @"layers.0_reduce" reduce @"layers.0"[@norm, @wq] : f32

// The addresses lie in an array, which the launch passes by value; the bucket's
// address is a parameter of its own. Two tiles, four rows, 256 threads.
// CHECK-LABEL: func @pack(
// CHECK:         %[[ADDRESSES:.+]] = llvm.alloca %{{.+}} x !llvm.ptr
// CHECK:         %[[BUCKET:.+]] = llvm.addrspacecast %{{.+}} : !llvm.ptr to !llvm.ptr<1>
// CHECK-DAG:     %[[ONE:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[TILES:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[ROWS:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[THREADS:.+]] = arith.constant 256 : index
// CHECK:         gpu.launch_func {{ *}}@fsdp_kernels::@layers_0_reduce_chunk_cat
// CHECK-SAME:      blocks in (%[[TILES]], %[[ROWS]], %[[ONE]]) threads in (%[[THREADS]], %[[ONE]], %[[ONE]])
// CHECK-SAME:      args(%[[ADDRESSES]] : !llvm.ptr, %[[BUCKET]] : !llvm.ptr<1>)
// CHECK:       gpu.module @fsdp_kernels [#nvvm.target<O = 3, chip = "sm_90", features = "+ptx80">]
// CHECK:         llvm.mlir.global internal constant @layers_0_reduce_chunk_cat_tiles({{.*}}) {addr_space = 1 : i32, alignment = 32 : i64}
// CHECK:         llvm.func @layers_0_reduce_chunk_cat(
// CHECK-SAME:      llvm.byval = !llvm.array<2 x i64>, nvvm.grid_constant
// CHECK-SAME:      gpu.kernel, nvvm.kernel, nvvm.maxnreg = 32 : i32, nvvm.maxntid = array<i32: 256, 1, 1>
// CHECK-DAG:       nvvm.read.ptx.sreg.ctaid.x
// CHECK-DAG:       nvvm.read.ptx.sreg.tid.x
// CHECK:           nvvm.griddepcontrol {{ *}}wait
// A store that depends on padding is predicated, not branched around.
// CHECK:           nvvm.inline_ptx "st.global.v4.b32 {{.*}}predicate =

// The host runs all rows, tiles and threads of the same body.
// EMULATE-LABEL: func @pack(
// EMULATE:         llvm.call @layers_0_reduce_chunk_cat(
// EMULATE-NOT:     gpu.
// EMULATE:       llvm.func internal @layers_0_reduce_chunk_cat(
// EMULATE-COUNT-3: scf.for
// EMULATE-NOT:     nvvm
func.func @pack(%n: memref<10xf32>, %q: memref<8x3xbf16>, %b: memref<4x64xf32>) {
  fsdp.chunk_cat %n, %q into @"layers.0_reduce" outs(%b : memref<4x64xf32>)
      : (memref<10xf32>, memref<8x3xbf16>) -> ()
  return
}
