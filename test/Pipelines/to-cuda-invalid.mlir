// What a GPU has no kernel for is refused in the words of the program, at its op,
// whether the kernels are for a device or emulated.
//
// RUN: fsdp-opt %s --fsdp-to-cuda --split-input-file --verify-diagnostics
// RUN: fsdp-opt %s --fsdp-to-cpu=emulate --split-input-file --verify-diagnostics

func.func @product(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{'linalg.matmul' op has no lowering to cuda: expected an op of fsdp, a fill, a copy, or elementwise arithmetic}}
  %d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x2xf32>) outs(%c : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %d : tensor<4x2xf32>
}

// -----

// One error, however many ops are refused.
func.func @function_of_math(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'math.exp' op has no lowering to cuda: expected an op of fsdp, a fill, a copy, or elementwise arithmetic}}
  %b = math.exp %a : tensor<4xf32>
  %c = math.rsqrt %b : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

func.func @in_a_body(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %b = linalg.map ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) (%x: f32, %o: f32) {
    // expected-error @below {{'math.tanh' op has no lowering to cuda}}
    %y = math.tanh %x : f32
    linalg.yield %y : f32
  }
  return %b : tensor<4xf32>
}

// -----

func.func @remainder(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'arith.remf' op has no lowering to cuda}}
  %c = arith.remf %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

func.func @element(%a: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  // expected-error @below {{'tensor.extract' op has no lowering to cuda}}
  %x = tensor.extract %a[%i] : tensor<4xf32>
  %s = tensor.splat %x : tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

func.func @sum(%a: tensor<4x8xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'linalg.reduce' op has no lowering to cuda}}
  %s = linalg.reduce {arith.addf} ins(%a : tensor<4x8xf32>) outs(%z : tensor<4xf32>) dimensions = [1]
  return %s : tensor<4xf32>
}

// -----

func.func @numbers(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    // expected-error @below {{'linalg.index' op has no lowering to cuda}}
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %x = arith.sitofp %n : i32 to f32
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

func.func @indices(%a: tensor<4xindex>, %b: tensor<4xindex>) -> tensor<4xindex> {
  // expected-error @below {{'arith.addi' op has no lowering to cuda: expected elements of f16, bf16, f32, f64, i1, i8, i16, i32 or i64, but they are of 'index'}}
  %c = arith.addi %a, %b : tensor<4xindex>
  return %c : tensor<4xindex>
}

// -----

func.func @unknown_shape(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{'arith.negf' op has no lowering to cuda: expected a static shape, but it is 'tensor<?xf32>'}}
  %b = arith.negf %a : tensor<?xf32>
  return %b : tensor<?xf32>
}

// -----

func.func @rounding(%a: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @below {{'arith.truncf' op has no lowering to cuda: expected rounding to nearest even, but it is toward_zero}}
  %b = arith.truncf %a toward_zero : tensor<4xf32> to tensor<4xbf16>
  return %b : tensor<4xbf16>
}

// -----

func.func @two_roundings(%a: tensor<4xi64>) -> tensor<4xbf16> {
  // expected-error @below {{'arith.sitofp' op has no lowering to cuda: expected an integer of at most 32 bits, but it is 'i64'}}
  %b = arith.sitofp %a : tensor<4xi64> to tensor<4xbf16>
  return %b : tensor<4xbf16>
}

// -----

func.func @map(%a: tensor<8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{'linalg.generic' op has no lowering to cuda: expected operands whose dimensions are loops, but operand #0 has the map affine_map<(d0) -> (d0 * 2)>}}
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (2 * i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Buffers of the program's own are the device's too.
func.func private @buffer(%a: memref<4xf32>, %i: index) -> f32 {
  // expected-error @below {{'memref.load' op has no lowering to cuda: it runs on the host, but the buffer is the device's}}
  %x = memref.load %a[%i] : memref<4xf32>
  return %x : f32
}
