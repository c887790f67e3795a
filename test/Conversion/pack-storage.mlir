// RUN: fsdp-opt %s --fsdp-pack-storage --split-input-file --verify-diagnostics | FileCheck %s

// Rows of packed elements become rows of bytes, along every dimension and
// through control flow; other types stay.

shard.grid @dp(shape = 2)
// CHECK-LABEL: fsdp.unit @u
fsdp.unit @u on @dp {
  // CHECK-NEXT: fsdp.param @rows : tensor<4x3xi8> frozen
  // CHECK-NEXT: fsdp.param @columns : tensor<3x4xi8> shard_dim 1 frozen
  // CHECK-NEXT: fsdp.param @six : tensor<6xi8> precision <param = i8> frozen
  // CHECK-NEXT: fsdp.param @scale : tensor<4xf8E8M0FNU> frozen
  fsdp.param @rows : tensor<4x6xf4E2M1FN> frozen
  fsdp.param @columns : tensor<3x8xf4E2M1FN> shard_dim 1 frozen
  fsdp.param @six : tensor<8xf6E2M3FN> precision <param = f6E2M3FN> frozen
  fsdp.param @scale : tensor<4xf8E8M0FNU> frozen
}
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %{{.*}}: tensor<2x3xi8> {fsdp.shard = @u::@rows}, %{{.*}}: tensor<3x2xi8>, %{{.*}}: tensor<3xi8>, %{{.*}}: tensor<2xf8E8M0FNU>)
func.func @gather(%a: tensor<2x6xf4E2M1FN> {fsdp.shard = @u::@rows}, %b: tensor<3x4xf4E2M1FN>,
                  %c: tensor<4xf6E2M3FN>, %d: tensor<2xf8E8M0FNU>)
    -> (tensor<4x6xf4E2M1FN>, tensor<3x8xf4E2M1FN>, tensor<8xf6E2M3FN>, tensor<4xf8E8M0FNU>) {
  // CHECK: fsdp.unshard @u({{.*}}) : (tensor<2x3xi8>, tensor<3x2xi8>, tensor<3xi8>, tensor<2xf8E8M0FNU>) -> (tensor<4x3xi8>, tensor<3x4xi8>, tensor<6xi8>, tensor<4xf8E8M0FNU>)
  %f:4 = fsdp.unshard @u(%a, %b, %c, %d)
      : (tensor<2x6xf4E2M1FN>, tensor<3x4xf4E2M1FN>, tensor<4xf6E2M3FN>, tensor<2xf8E8M0FNU>)
      -> (tensor<4x6xf4E2M1FN>, tensor<3x8xf4E2M1FN>, tensor<8xf6E2M3FN>, tensor<4xf8E8M0FNU>)
  return %f#0, %f#1, %f#2, %f#3 : tensor<4x6xf4E2M1FN>, tensor<3x8xf4E2M1FN>, tensor<8xf6E2M3FN>, tensor<4xf8E8M0FNU>
}
// CHECK-LABEL: func.func @choose(
// CHECK: scf.if %{{.*}} -> (tensor<2x3xi8>)
func.func @choose(%c: i1, %a: tensor<2x6xf4E2M1FN>, %b: tensor<2x6xf4E2M1FN>) -> tensor<2x6xf4E2M1FN> {
  %r = scf.if %c -> tensor<2x6xf4E2M1FN> {
    scf.yield %a : tensor<2x6xf4E2M1FN>
  } else {
    scf.yield %b : tensor<2x6xf4E2M1FN>
  }
  return %r : tensor<2x6xf4E2M1FN>
}

// -----

func.func @negative_element(%a: tensor<2x6xf4E2M1FN>, %i: index) {
  // expected-error @below {{works on 'tensor<2x6xf4E2M1FN>', but elements of 'f4E2M1FN' are packed into bytes, which are gathered and passed on as whole rows and not computed with}}
  %e = tensor.extract %a[%i, %i] : tensor<2x6xf4E2M1FN>
  return
}

// -----

// expected-error @below {{works on 'tensor<3xf4E2M1FN>', but elements of 'f4E2M1FN' are packed into bytes}}
func.func @negative_half_a_byte(%a: tensor<3xf4E2M1FN>) {
  return
}

// -----

func.func private @negative_scalar() {
  // expected-error @below {{works on 'f6E3M2FN', but elements of 'f6E3M2FN' are packed into bytes}}
  %c = arith.constant 1.0 : f6E3M2FN
  return
}
