// RUN: fsdp-opt %s --fsdp-expand-floats --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @bf16_to_f32(
// CHECK-NEXT:    %[[BITS:.+]] = arith.bitcast %{{.+}} : vector<8xbf16> to vector<8xi16>
// CHECK-NEXT:    %[[WORD:.+]] = arith.extui %[[BITS]]
// CHECK:         %[[SHIFTED:.+]] = arith.shli %[[WORD]], %{{.+}} : vector<8xi32>
// CHECK-NEXT:    arith.bitcast %[[SHIFTED]] : vector<8xi32> to vector<8xf32>
func.func @bf16_to_f32(%x: vector<8xbf16>) -> vector<8xf32> {
  %y = arith.extf %x : vector<8xbf16> to vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @native(
// CHECK-NEXT:    arith.truncf %{{.+}} : f32 to f16
// CHECK-NEXT:    arith.extf %{{.+}} : f16 to f32
// CHECK-NEXT:    arith.truncf %{{.+}} : f64 to f32
// CHECK-NEXT:    return
func.func @native(%x: f32, %y: f64) -> (f32, f32) {
  %h = arith.truncf %x : f32 to f16
  %s = arith.extf %h : f16 to f32
  %t = arith.truncf %y : f64 to f32
  return %s, %t : f32, f32
}

// Two additions are two roundings: each ends in the integer form.
// CHECK-LABEL: func.func @two_additions(
// CHECK:         arith.addf %{{.+}}, %{{.+}} : f32
// CHECK:         arith.trunci %{{.+}} : i32 to i16
// CHECK:         arith.addf %{{.+}}, %{{.+}} : f32
// CHECK:         arith.trunci %{{.+}} : i32 to i16
func.func @two_additions(%x: bf16, %y: bf16) -> bf16 {
  %a = arith.addf %x, %y : bf16
  %b = arith.addf %a, %y : bf16
  return %b : bf16
}

// CHECK-LABEL: func.func @compare(
// CHECK:         arith.cmpf olt, %{{.+}}, %{{.+}} : f32
// A select of bf16 could become a call of a function that no artefact has.
// CHECK:         arith.select %{{.+}} : i16
func.func @compare(%x: bf16, %y: bf16) -> bf16 {
  %c = arith.cmpf olt, %x, %y : bf16
  %m = arith.select %c, %x, %y : bf16
  return %m : bf16
}

// CHECK-LABEL: func.func @integer(
// CHECK-NEXT:    arith.sitofp %{{.+}} : i32 to f64
func.func @integer(%x: i32) -> f16 {
  %y = arith.sitofp %x : i32 to f16
  return %y : f16
}

// CHECK-LABEL: func.func @tensor(
// CHECK-NEXT:    arith.truncf %{{.+}} : tensor<4xf32> to tensor<4xbf16>
func.func @tensor(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %y = arith.truncf %x : tensor<4xf32> to tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// -----

func.func @negative_rounding(%x: f32) -> bf16 {
  // expected-error @below {{expected rounding to nearest even, but it is toward_zero}}
  %y = arith.truncf %x toward_zero : f32 to bf16
  return %y : bf16
}

// -----

func.func @negative_dtype(%x: f32) -> f8E5M2 {
  // expected-error @below {{expected a cast between f16, bf16, f32 and f64, but it is from 'f32' to 'f8E5M2'}}
  %y = arith.truncf %x : f32 to f8E5M2
  return %y : f8E5M2
}

// -----

func.func @negative_wide_integer(%x: i64) -> bf16 {
  // expected-error @below {{expected an integer of at most 32 bits, but it is 'i64'}}
  %y = arith.sitofp %x : i64 to bf16
  return %y : bf16
}
