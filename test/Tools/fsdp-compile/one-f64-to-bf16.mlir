// One member with one dtype pair: LLVM then merges the stores of the branches of
// the kernel. A bf16 value in between would become a call of a function that no
// library here has, and the artefact would not link.
//
// RUN: fsdp-compile %s --target=cpu -o %t.so
// RUN: fsdp-run %t.so --fill=1 | FileCheck %s
// CHECK: result0@0 tensor<1x5x1xf32> checksum=

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <reduce = bf16> {
  fsdp.param @p : tensor<1x5x1xf32>
}
func.func @main(%g: tensor<1x5x1xf64>) -> tensor<1x5x1xf32> {
  %s = fsdp.reduce_grads @u[@p](%g) : (tensor<1x5x1xf64>) -> (tensor<1x5x1xf32>)
  return %s : tensor<1x5x1xf32>
}
