// PTX needs no toolkit, and its absence is not worth a word.
// RUN: fsdp-opt %s --fsdp-serialize-kernels=toolkit=%t.none > %t.out 2> %t.err
// RUN: FileCheck %s --input-file=%t.out
// RUN: test ! -s %t.err
// RUN: mkdir -p %t.empty
// RUN: fsdp-opt %s --fsdp-serialize-kernels=toolkit=%t.empty > %t.out 2> %t.err
// RUN: FileCheck %s --input-file=%t.out
// RUN: test ! -s %t.err

// CHECK-NOT: gpu.module
// CHECK: gpu.binary @fsdp_kernels [#gpu.object<#nvvm.target<chip = "sm_90"{{.*}}>, {{.*}}assembly = "{{.*}}.entry nothing()
module attributes {gpu.container_module} {
  gpu.module @fsdp_kernels [#nvvm.target<chip = "sm_90", features = "+ptx80">] {
    llvm.func @nothing() attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
