// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision \
// RUN:   --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision=profile=grad_dtype \
// RUN:   --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s --check-prefix=GRAD
// A second run changes nothing.
// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision -o %t
// RUN: fsdp-opt %t --split-input-file --fsdp-resolve-precision | diff %t -
// RUN: fsdp-opt %s --split-input-file --fsdp-resolve-precision=profile=grad_dtype -o %t
// RUN: fsdp-opt %t --split-input-file --fsdp-resolve-precision=profile=grad_dtype | diff %t -

// What is not written is inherited: the parameter's entry, the unit's, the
// storage dtype. An absent reduce dtype is the param dtype.

// CHECK-LABEL: fsdp.unit @nothing_given
// CHECK-NEXT:  @a : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>{{$}}
// CHECK-NEXT:  @b : tensor<4xbf16> precision <param = bf16, reduce = bf16, grad = bf16>{{$}}
// CHECK-NEXT:  @c : tensor<4xf64> shard_dim 0 precision <param = f64, reduce = f64, grad = f64> frozen
// CHECK-LABEL: fsdp.unit @param_given on @dp precision <param = bf16>
// CHECK-NEXT:  @a : tensor<4xf32> precision <param = bf16, reduce = bf16, grad = f32>
// CHECK-NEXT:  @norm : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>
// CHECK-NEXT:  @kept : tensor<4xbf16> precision <param = bf16, reduce = bf16, grad = f32>
// CHECK-NEXT:  @gate : tensor<4xf32> precision <param = bf16, reduce = f64, grad = f32>
// CHECK-LABEL: fsdp.unit @all_given
// CHECK-NEXT:  @a : tensor<4xbf16> precision <param = f32, reduce = f64, grad = f64>
// CHECK-NEXT:  @b : tensor<4xbf16> precision <param = bf16, reduce = f64, grad = f64>
shard.grid @dp(shape = 4)
fsdp.unit @nothing_given on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xbf16>
  fsdp.param @c : tensor<4xf64> shard_dim 0 frozen
}
// expected-remark @below {{[Missed] ResolvePrecision | Category:fsdp | Reason="profile 'per_param' reduces in bf16 what is stored in f32: 'reduce = f32' or profile 'grad_dtype' keeps its bits", names=a}}
fsdp.unit @param_given on @dp precision <param = bf16> attributes {fsdp.profile = "per_param"} {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @norm : tensor<4xf32> precision <param = f32>
  fsdp.param @kept : tensor<4xbf16> precision <grad = f32>
  fsdp.param @gate : tensor<4xf32> precision <reduce = f64>
}
fsdp.unit @all_given on @dp precision <param = f32, reduce = f64, grad = f64> attributes {fsdp.profile = "per_param"} {
  fsdp.param @a : tensor<4xbf16>
  fsdp.param @b : tensor<4xbf16> precision <param = bf16>
}

// Without a reduce dtype `grad_dtype` reduces in the promoted grad dtypes of the
// trainable parameters; a profile in the IR wins over the option.
// GRAD-LABEL: fsdp.unit @nothing_given
// GRAD-NEXT:  @a : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32>
// GRAD-NEXT:  @b : tensor<4xbf16> precision <param = bf16, reduce = f32, grad = bf16>
// GRAD-NEXT:  @c : tensor<4xf64> shard_dim 0 precision <param = f64, reduce = f32, grad = f64> frozen
// GRAD-LABEL: fsdp.unit @param_given
// GRAD-NEXT:  @a : tensor<4xf32> precision <param = bf16, reduce = bf16, grad = f32>

// -----

// Opaque storage has a param dtype alone, whatever the unit says.

// CHECK-LABEL: fsdp.unit @opaque
// CHECK-NEXT:  @w : tensor<4xf32> precision <param = bf16, reduce = f32, grad = f32>
// CHECK-NEXT:  @ids : tensor<4xi64> precision <param = i64> frozen
// CHECK-NEXT:  @scale : tensor<4xf8E4M3FN> precision <param = f8E4M3FN> frozen
// CHECK-NEXT:  @mask : tensor<4xi8> precision <param = i8> frozen
shard.grid @dp(shape = 4)
fsdp.unit @opaque on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @ids : tensor<4xi64> frozen
  fsdp.param @scale : tensor<4xf8E4M3FN> precision <param = f8E4M3FN> frozen
  fsdp.param @mask : tensor<4xi8> frozen
}

// -----

// A unit's profile wins over its module's, the module's over the option.

// CHECK-LABEL: fsdp.unit @of_module
// CHECK-NEXT:  @w : tensor<4xf32> precision <param = bf16, reduce = f32, grad = f32>
// CHECK-LABEL: fsdp.unit @of_unit
// CHECK-NEXT:  @w : tensor<4xf32> precision <param = bf16, reduce = bf16, grad = f32>
module attributes {fsdp.profile = "grad_dtype"} {
  shard.grid @dp(shape = 4)
  fsdp.unit @of_module on @dp precision <param = bf16> {
    fsdp.param @w : tensor<4xf32>
  }
  // expected-remark @below {{profile 'stable' reduces in bf16 what is stored in f32: 'reduce = f32' or profile 'grad_dtype'}}
  fsdp.unit @of_unit on @dp precision <param = bf16> attributes {fsdp.profile = "stable"} {
    fsdp.param @w : tensor<4xf32>
    fsdp.param @other : tensor<4xbf16> precision <param = f32> frozen
  }
}

// -----

// bf16 and f16 meet in f32. Frozen parameters are given the unit's reduce dtype
// but have no vote, unless there are no others.

// CHECK-LABEL: fsdp.unit @promoted
// CHECK-NEXT:  @a : tensor<4xbf16> precision <param = bf16, reduce = f32, grad = bf16>
// CHECK-NEXT:  @b : tensor<4xf16> precision <param = f16, reduce = f32, grad = f16>
// CHECK-NEXT:  @base : tensor<4xf64> precision <param = f64, reduce = f32, grad = f64> frozen
// CHECK-LABEL: fsdp.unit @widest
// CHECK-NEXT:  @a : tensor<4xbf16> precision <param = bf16, reduce = f64, grad = bf16>
// CHECK-NEXT:  @b : tensor<4xf64> precision <param = f64, reduce = f64, grad = f64>
// CHECK-NEXT:  @c : tensor<4xf32> precision <param = f32, reduce = f64, grad = f32>
// CHECK-LABEL: fsdp.unit @all_frozen
// CHECK-NEXT:  @a : tensor<4xbf16> precision <param = bf16, reduce = f32, grad = bf16> frozen
// CHECK-NEXT:  @b : tensor<4xf32> precision <param = f32, reduce = f32, grad = f32> frozen
// CHECK-NEXT:  @ids : tensor<4xi32> precision <param = i32> frozen
// CHECK-LABEL: fsdp.unit @by_unit
// CHECK-NEXT:  @a : tensor<4xf32> precision <param = f32, reduce = bf16, grad = f32>
// CHECK-NEXT:  @b : tensor<4xf32> precision <param = bf16, reduce = bf16, grad = f64>
module attributes {fsdp.profile = "grad_dtype"} {
  shard.grid @dp(shape = 4)
  fsdp.unit @promoted on @dp {
    fsdp.param @a : tensor<4xbf16>
    fsdp.param @b : tensor<4xf16>
    fsdp.param @base : tensor<4xf64> frozen
  }
  fsdp.unit @widest on @dp {
    fsdp.param @a : tensor<4xbf16>
    fsdp.param @b : tensor<4xf64>
    fsdp.param @c : tensor<4xf32>
  }
  fsdp.unit @all_frozen on @dp {
    fsdp.param @a : tensor<4xbf16> frozen
    fsdp.param @b : tensor<4xf32> frozen
    fsdp.param @ids : tensor<4xi32> frozen
  }
  fsdp.unit @by_unit on @dp precision <param = bf16, reduce = bf16> {
    fsdp.param @a : tensor<4xf32> precision <param = f32>
    fsdp.param @b : tensor<4xf32> precision <grad = f64>
  }
}

// -----

// One remark per unit that reduces in f16, with the parameters that count.

shard.grid @dp(shape = 4)
// expected-remark @below {{ResolvePrecision | Category:fsdp | Reason="gradients reduced in f16 need loss scaling", names="a,c"}}
fsdp.unit @scaled on @dp precision <reduce = f16> attributes {fsdp.profile = "per_param"} {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32> precision <reduce = f32>
  fsdp.param @c : tensor<4xf16>
  fsdp.param @frozen : tensor<4xf16> frozen
}
fsdp.unit @frozen_only on @dp {
  fsdp.param @d : tensor<4xf32>
  fsdp.param @e : tensor<4xf16> frozen
}

// -----

// Where nobody asked for a reduce dtype, a profile that takes one with fewer bits
// than the storage says so: once for each pair of dtypes, never for a frozen
// parameter, an opaque one, a wider or an equal reduction, or where an entry asks.

// CHECK-LABEL: fsdp.unit @narrowed
module attributes {fsdp.profile = "per_param"} {
  shard.grid @dp(shape = 4)
  // expected-remark @below {{reduces in bf16 what is stored in f32: 'reduce = f32' or profile 'grad_dtype' keeps its bits", names="a,c"}}
  // expected-remark @below {{reduces in bf16 what is stored in f64: 'reduce = f64' or profile 'grad_dtype' keeps its bits", names=b}}
  fsdp.unit @narrowed on @dp precision <param = bf16> {
    fsdp.param @a : tensor<4xf32>
    fsdp.param @b : tensor<4xf64>
    fsdp.param @c : tensor<4xf32>
    fsdp.param @negative_frozen : tensor<4xf32> frozen
    fsdp.param @negative_opaque : tensor<4xi32> frozen
    fsdp.param @negative_wide : tensor<4xbf16> precision <param = f32>
    fsdp.param @negative_equal : tensor<4xf16>
    fsdp.param @negative_own_entry : tensor<4xf64> precision <reduce = f32>
  }
  fsdp.unit @negative_entry_of_unit on @dp precision <param = bf16, reduce = bf16> {
    fsdp.param @d : tensor<4xf32>
  }
  // It is the grad dtype that is narrow here.
  // expected-remark @below {{profile 'grad_dtype' reduces in bf16 what is stored in f32: 'reduce = f32' keeps its bits", names=e}}
  fsdp.unit @grad on @dp precision <grad = bf16> attributes {fsdp.profile = "grad_dtype"} {
    fsdp.param @e : tensor<4xf32>
  }
}
