// RUN: fsdp-opt %s --fsdp-to-cpu --split-input-file --verify-diagnostics

func.func @unknown_op(%a: tensor<4xf32>, %i: index) {
  // expected-error @below {{'foreign.op' op has no lowering to the cpu}}
  "foreign.op"(%i) : (index) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<8x3xf32>
}
func.func @declared(%w: tensor<2x3xf32>) -> tensor<8x3xf32> {
  // expected-error @below {{'fsdp.unshard' op}}
  %f = fsdp.unshard @u(%w) : (tensor<2x3xf32>) -> tensor<8x3xf32>
  return %f : tensor<8x3xf32>
}

// -----

// Its bytes do not fit 62 bits.
func.func @too_large(%i: index) {
  // expected-error @below {{has no lowering to the cpu: 'tensor<4611686018427387904xf32>' is too large, expected fewer than 2^62 bytes}}
  %e = tensor.empty() : tensor<4611686018427387904xf32>
  return
}

// -----

// It has no elements, but a stride that cannot be counted.
// expected-error @below {{has no lowering to the cpu: 'tensor<0x4294967296x4294967296xf32>' is too large, expected fewer than 2^62 bytes}}
func.func @strides(%a: tensor<0x4294967296x4294967296xf32>) {
  return
}

// -----

// expected-error @below {{is for a grid of 2^31 ranks or more}}
shard.grid @dp(shape = 65536x65536)
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// expected-error @below {{entry '\FE' has a name that cannot be written into a plan, expected UTF-8 without zero bytes}}
func.func @"\FE"(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// No library has it, and nothing makes it of something that one has.
func.func @left_over(%a: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'math.ctpop' op has no lowering to the cpu}}
  %r = math.ctpop %a : tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

func.func @in_a_body(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.map ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>)
    (%x: f32, %y: f32) {
      // expected-error @below {{'math.copysign' op has no lowering to the cpu}}
      %z = math.copysign %x, %x : f32
      linalg.yield %z : f32
    }
  return %r : tensor<4xf32>
}
