// Every option of the pipeline reaches its pass.
//
// RUN: fsdp-opt --fsdp-optimize='profile=stable unused=zero accumulate=f32 average=after align=256 scope=global max-bytes=1024,2048 gather=per-dtype order=execution' --dump-pass-pipeline %s 2>&1 | FileCheck %s
// RUN: fsdp-opt --fsdp-optimize --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=DEFAULT
// RUN: fsdp-opt --fsdp-optimize='policy=megatron max-elements=3,4' --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: fsdp-opt --fsdp-optimize=opt-level=0 --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=NAIVE
// RUN: fsdp-opt --fsdp-optimize=verify-collectives=false --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=UNPROVED
// RUN: not fsdp-opt --fsdp-optimize=scope=nowhere %s 2>&1 | FileCheck %s --check-prefix=SCOPE
// RUN: not fsdp-opt --fsdp-optimize=policy=nobody %s 2>&1 | FileCheck %s --check-prefix=POLICY
// SCOPE: nowhere
// POLICY: nobody

// CHECK:      fsdp-verify-stage{mixed=false stage=input}
// CHECK-NEXT: fsdp-resolve-precision{profile=stable}
// CHECK-NEXT: fsdp-expand-units{accumulate=f32 align=256 average=after unused=zero}
// CHECK-NEXT: fsdp-verify-stage{mixed=true stage=explicit}
// CHECK-NEXT: fsdp-form-buckets{gather=per-dtype max-bytes={1024,2048} {{.*}}order=execution policy= scope=global}
// CHECK-NEXT: fsdp-fuse-casts
// CHECK-NEXT: fsdp-verify-stage{mixed=false stage=packed}
// CHECK-NEXT: fsdp-verify-collectives,
// CHECK-NEXT: fsdp-seal{drop=false}
// CHECK-NEXT: )

// DEFAULT:      fsdp-resolve-precision{profile=per_param}
// DEFAULT-NEXT: fsdp-expand-units{accumulate=wire align=128 average=before unused=skip}
// DEFAULT:      fsdp-form-buckets{gather= {{.*}}order= policy= scope=unit}

// NAMED: fsdp-form-buckets{gather= {{.*}}max-elements={3,4} order= policy=megatron scope=unit}

// NAIVE:      fsdp-verify-stage{mixed=true stage=explicit}
// NAIVE-NEXT: fsdp-verify-collectives,
// NAIVE-NEXT: fsdp-seal{drop=false}
// NAIVE-NEXT: )

// UNPROVED:      fsdp-verify-stage{mixed=false stage=packed},
// UNPROVED-NEXT: fsdp-seal{drop=true}
// UNPROVED-NEXT: )

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
}
