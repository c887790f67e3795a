// RUN: fsdp-opt %s --fsdp-optimize --fsdp-to-cuda | FileCheck %s
// RUN: fsdp-opt %s --fsdp-optimize=opt-level=0 --fsdp-to-cuda | FileCheck %s --check-prefix=EXPLICIT

// An explicit cast is a kernel of its own.
// EXPLICIT: @fsdp_kernel_name{{.*}}("elementwise_truncf_bf16\00")

shard.grid @dp(shape = 4)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
}

// One image with the kernels, as PTX for the chip and PTX 8.0.
// CHECK-DAG: @fsdp_kernel_image_bytes(
// CHECK-DAG: @fsdp_kernel_image("{{.*}}.version 8.0{{.*}}.target sm_90{{.*}}.maxntid 256
// CHECK-DAG: @fsdp_kernel_name{{.*}}("layer0_gather_concat\00")
// CHECK-DAG: @fsdp_kernel_name{{.*}}("layer0_gather_unchunk\00")

// Launch, gather, launch; each status is checked.
// CHECK-LABEL: llvm.func @fsdprt_entry_forward(
// CHECK:         llvm.call @fsdprtAlloc(
// CHECK:         llvm.call @fsdprtCoordinate(
// CHECK:         %[[PACKED:.+]] = llvm.call @fsdprtLaunch(
// CHECK:         llvm.icmp {{.*}} %[[PACKED]]
// CHECK:         llvm.call @fsdprtRunCollectives(
// CHECK:         llvm.call @fsdprtLaunch(
// CHECK:         llvm.call @fsdprtFree(
func.func @forward(%n: tensor<3xf32> {fsdp.shard = @layer0::@norm},
                   %q: tensor<2x3xf32> {fsdp.shard = @layer0::@wq})
    -> (tensor<10xf32> {fsdp.full = @layer0::@norm}, tensor<8x3xbf16> {fsdp.full = @layer0::@wq}) {
  %w:2 = fsdp.unshard @layer0(%n, %q) : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<10xf32>, tensor<8x3xbf16>)
  return %w#0, %w#1 : tensor<10xf32>, tensor<8x3xbf16>
}
