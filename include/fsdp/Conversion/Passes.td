//===- Passes.td - passes from buffers to calls and loops --*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CONVERSION_PASSES
#define FSDP_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ExpandCastsPass : Pass<"fsdp-expand-casts"> {
  let summary = "write out the casts that LLVM would get wrong on the CPU";
  let description = [{
    Replaces every `arith.extf` and `arith.truncf` between f16, bf16, f32 and f64
    that the CPU has no instruction for by integer arithmetic with the same bits:
    one rounding, to nearest even, NaN as a class. A cast with another rounding
    mode is refused.

    ```mlir
    func.func @f(%x: f32) -> bf16 {
      %y = arith.truncf %x : f32 to bf16
      return %y : bf16
    }
    ```
  }];
  let dependentDialects = ["arith::ArithDialect"];
}

#endif // FSDP_CONVERSION_PASSES
