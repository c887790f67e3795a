// Every chip gets the oldest PTX that knows it; the assembler's machine code is
// another test's.
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_80 | FileCheck %s --check-prefixes=ALL,PTX80,NOWAIT -DCHIP=sm_80
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_89 | FileCheck %s --check-prefixes=ALL,PTX80,NOWAIT -DCHIP=sm_89
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_90a | FileCheck %s --check-prefixes=ALL,PTX80,WAIT -DCHIP=sm_90a
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_100 | FileCheck %s --check-prefixes=ALL,PTX86,WAIT -DCHIP=sm_100
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_120 | FileCheck %s --check-prefixes=ALL,PTX87,WAIT -DCHIP=sm_120
// RUN: fsdp-opt %s --fsdp-to-cuda=chip=sm_110f | FileCheck %s --check-prefixes=ALL,PTX90,WAIT -DCHIP=sm_110f
// RUN: fsdp-opt %s --fsdp-to-cuda=features=+ptx86 | FileCheck %s --check-prefixes=ALL,PTX86,WAIT -DCHIP=sm_90

// Kernels may begin before the one in front of them ends, where the chip can:
// then they wait for it themselves.
// ALL:        @fsdp_kernel_image(
// PTX80-SAME: .version 8.0
// PTX86-SAME: .version 8.6
// PTX87-SAME: .version 8.7
// PTX90-SAME: .version 9.0
// ALL-SAME:   .target [[CHIP]]
// WAIT-SAME:  griddepcontrol.wait
// NOWAIT-NOT: griddepcontrol

// RUN: not fsdp-opt %s --fsdp-to-cuda=chip=sm_75 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: no kernels for chip 'sm_75', expected one of sm_80, sm_86, {{.*}}, sm_90, {{.*}}, sm_121f
// RUN: not fsdp-opt %s '--fsdp-to-cuda=chip=sm_120 features=+ptx80' 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: kernels for chip 'sm_120' have the features '+ptx80', expected '+ptx87' or a later version of PTX
// RUN: not fsdp-opt %s --fsdp-to-cuda=features=fast 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: error: kernels for chip 'sm_90' have the features 'fast', expected '+ptx80' or a later version of PTX

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<5x3xf32> precision <param = bf16, reduce = f32, grad = f32>
}
fsdp.bucket @b reduce @u[@w] : f32
func.func @pack(%g: tensor<5x3xbf16>) -> tensor<2x32xf32> {
  %b = fsdp.chunk_cat %g into @b : (tensor<5x3xbf16>) -> tensor<2x32xf32>
  return %b : tensor<2x32xf32>
}
