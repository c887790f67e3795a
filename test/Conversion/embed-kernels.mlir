// RUN: fsdp-opt %s --split-input-file --fsdp-embed-kernels --verify-diagnostics | FileCheck %s

// The launches' declarations get their definitions; PTX ends with a zero.
// CHECK-NOT: gpu.container_module
// CHECK-DAG: llvm.mlir.global internal constant @fsdp_kernel_image("abc\00")
// CHECK-DAG: llvm.mlir.global internal constant @fsdp_kernel_image_bytes(4 : i64)
// CHECK-NOT: gpu.binary
module attributes {gpu.container_module} {
  llvm.mlir.global external constant @fsdp_kernel_image() : !llvm.array<0 x i8>
  llvm.mlir.global external constant @fsdp_kernel_image_bytes() : i64
  gpu.binary @fsdp_kernels [#gpu.object<#nvvm.target<chip = "sm_90">, assembly = "abc">]
}

// -----

// CHECK: llvm.mlir.global internal constant @fsdp_kernel_image("abc")
module {
  gpu.binary @fsdp_kernels [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "abc">]
}

// -----

module {
  // expected-error @below {{cannot be embedded: expected one binary with one object, but there are 2 with 1}}
  gpu.binary @a [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "abc">]
  gpu.binary @b [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "abc">]
}
