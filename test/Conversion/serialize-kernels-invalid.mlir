// RUN: fsdp-opt %s --fsdp-serialize-kernels --verify-diagnostics

// Upstream's other errors are passed on.
module attributes {gpu.container_module} {
  // expected-error @below {{the module has no target attributes}}
  gpu.module @fsdp_kernels {
  }
}
