// RUN: fsdp-opt %s --fsdp-form-buckets=order=execution | FileCheck %s --check-prefix=EXECUTION
// RUN: fsdp-opt %s --fsdp-form-buckets=order=registration | FileCheck %s --check-prefix=REGISTRATION
// RUN: fsdp-opt %s --fsdp-form-buckets=gather=per-dtype | FileCheck %s --check-prefix=DTYPE
// RUN: not fsdp-opt %s --fsdp-form-buckets=scope=all 2>&1 | FileCheck %s --check-prefix=SCOPE
// RUN: not fsdp-opt %s --fsdp-form-buckets=gather=all 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not fsdp-opt %s --fsdp-form-buckets=order=name 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not fsdp-opt %s --fsdp-form-buckets=policy=nccl 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=torch-fsdp2 scope=global" 2>&1 | FileCheck %s --check-prefix=TORCH
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=torch-fsdp2 max-bytes=4" 2>&1 | FileCheck %s --check-prefix=TORCHLIMIT
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=deepspeed max-bytes=4" 2>&1 | FileCheck %s --check-prefix=COUNTS
// RUN: not fsdp-opt %s --fsdp-form-buckets=max-elements=4 2>&1 | FileCheck %s --check-prefix=COUNTED
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=deepspeed gather=bytes" 2>&1 | FileCheck %s --check-prefix=DTYPES
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=xla order=registration" 2>&1 | FileCheck %s --check-prefix=EXECUTES
// RUN: not fsdp-opt %s --fsdp-form-buckets="policy=megatron order=execution" 2>&1 | FileCheck %s --check-prefix=ORDERS
// RUN: not fsdp-opt %s --fsdp-form-buckets=max-elements=-1 2>&1 | FileCheck %s --check-prefix=ELEMENTS
// RUN: not fsdp-opt %s --fsdp-form-buckets=max-bytes=4,0 2>&1 | FileCheck %s --check-prefix=BYTES

// SCOPE:  error: fsdp-form-buckets: option scope is 'all', expected unit or global
// GATHER: error: fsdp-form-buckets: option gather is 'all', expected bytes or per-dtype
// ORDER:  error: fsdp-form-buckets: option order is 'name', expected registration or execution
// POLICY: error: fsdp-form-buckets: unknown policy 'nccl', expected deepspeed or inductor or megatron or torch-fsdp2 or xla
// TORCH:      error: fsdp-form-buckets: option scope is 'global', expected unit with policy 'torch-fsdp2'
// TORCHLIMIT: error: fsdp-form-buckets: option max-bytes does not go with policy 'torch-fsdp2', which has no limit
// COUNTS:     error: fsdp-form-buckets: option max-bytes does not go with policy 'deepspeed', which counts elements
// COUNTED:    error: fsdp-form-buckets: option max-elements does not go with the default policy, which counts bytes
// DTYPES:     error: fsdp-form-buckets: option gather is 'bytes', expected per-dtype with policy 'deepspeed'
// EXECUTES:   error: fsdp-form-buckets: option order is 'registration', expected execution with policy 'xla'
// ORDERS:     error: fsdp-form-buckets: option order does not go with policy 'megatron', which has an order of its own
// ELEMENTS:   error: fsdp-form-buckets: option max-elements is -1, expected a positive number
// BYTES:  error: fsdp-form-buckets: option max-bytes is 0, expected a positive number

// EXECUTION:         fsdp.bucket @u_gather gather @u[@c, @b, @a] : bytes align 1
// EXECUTION-LABEL:   func.func @gather(
// EXECUTION-SAME:        %[[A:.+]]: tensor<2xf32>, %[[B:.+]]: tensor<2xf32>, %[[C:.+]]: tensor<2xf32>)
// EXECUTION-NEXT:      %[[D:.+]] = arith.truncf
// EXECUTION-NEXT:      fsdp.concat %[[C]], %[[D]], %[[A]] into @u_gather
// EXECUTION-NEXT:      fsdp.all_gather
// EXECUTION-NEXT:      %[[W:.+]]:3 = fsdp.unchunk
// EXECUTION-NEXT:      return %[[W]]#2, %[[W]]#1, %[[W]]#0

// REGISTRATION: fsdp.bucket @u_gather gather @u[@a, @b, @c] : bytes align 1

// By dtype c and a merge around b. The gather of {c, a} stands at c's place and b
// where it was: in the order of first members.
// DTYPE:       fsdp.bucket @u_gather gather @u[@a, @c] : f32 align 1
// DTYPE:       fsdp.bucket @b gather @u[@b] : bf16 align 1
// DTYPE-LABEL: func.func @gather(
// DTYPE-SAME:      %[[A:.+]]: tensor<2xf32>, %[[B:.+]]: tensor<2xf32>, %[[C:.+]]: tensor<2xf32>)
// DTYPE-NEXT:    fsdp.concat %[[A]], %[[C]] into @u_gather
// DTYPE:         arith.truncf
// DTYPE-NEXT:    fsdp.concat %{{.+}} into @b

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32> precision <param = bf16>
  fsdp.param @c : tensor<4xf32>
}
fsdp.bucket @a gather @u[@a] : f32 align 1
fsdp.bucket @b gather @u[@b] : bf16 align 1
fsdp.bucket @c gather @u[@c] : f32 align 1
func.func @gather(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>)
    -> (tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>) {
  %fc = fsdp.concat %c into @c : (tensor<2xf32>) -> tensor<2xf32>
  %gc = fsdp.all_gather %fc of @c : (tensor<2xf32>) -> tensor<2x2xf32>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x2xf32>) -> tensor<4xf32>
  %h = arith.truncf %b : tensor<2xf32> to tensor<2xbf16>
  %fb = fsdp.concat %h into @b : (tensor<2xbf16>) -> tensor<2xbf16>
  %gb = fsdp.all_gather %fb of @b : (tensor<2xbf16>) -> tensor<2x2xbf16>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x2xbf16>) -> tensor<4xbf16>
  %fa = fsdp.concat %a into @a : (tensor<2xf32>) -> tensor<2xf32>
  %ga = fsdp.all_gather %fa of @a : (tensor<2xf32>) -> tensor<2x2xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x2xf32>) -> tensor<4xf32>
  return %wa, %wb, %wc : tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>
}
