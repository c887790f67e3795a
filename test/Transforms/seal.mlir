// RUN: fsdp-opt %s --fsdp-optimize=opt-level=0 --fsdp-print-plan=format=json \
// RUN:   | FileCheck %s
// RUN: fsdp-opt %s --fsdp-optimize --fsdp-print-plan=format=json | FileCheck %s

// The proof alone writes nothing, and what is not proved has no hash.
// RUN: fsdp-opt %s --fsdp-verify-collectives | FileCheck %s --check-prefix=OLD
// RUN: fsdp-opt %s --fsdp-optimize=verify-collectives=false \
// RUN:   | FileCheck %s --check-prefix=NONE

// A module that changes after the seal makes no artefact.
// RUN: fsdp-opt %s --fsdp-optimize=opt-level=0 -o %t.sealed.mlir
// RUN: fsdp-opt %t.sealed.mlir --fsdp-declare-entries | FileCheck %s --check-prefix=DECLARED
// RUN: fsdp-opt %t.sealed.mlir --fsdp-fuse-casts --fsdp-declare-entries \
// RUN:   | FileCheck %s --check-prefix=DECLARED
// RUN: not fsdp-opt %t.sealed.mlir --fsdp-form-buckets --fsdp-declare-entries 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CHANGED
// RUN: not fsdp-opt %s --fsdp-seal 2>&1 | FileCheck %s --check-prefix=EARLY

// CHECK:      "plan_hash": "[[HASH:[0-9a-f]{16}]]"
// CHECK:      module attributes {fsdp.plan_hash = "[[HASH]]"}
// OLD:        fsdp.plan_hash = "0123456789abcdef"
// NONE-NOT:   plan_hash
// DECLARED:   fsdprt_artefact_manifest
// CHANGED:    error: 'builtin.module' op has changed since fsdp-seal: its plan has hash {{[0-9a-f]+}}, expected "{{[0-9a-f]+}}": run fsdp-verify-collectives and fsdp-seal after the last pass that moves or changes a collective
// EARLY:      error: 'fsdp.unshard' op has no plan yet, expected stage explicit or later: run fsdp-expand-units before fsdp-seal
module attributes {fsdp.plan_hash = "0123456789abcdef"} {
  shard.grid @dp(shape = 2)
  fsdp.unit @u on @dp precision <param = bf16> {
    fsdp.param @w : tensor<4xf32>
    fsdp.param @v : tensor<6xf32>
  }
  func.func @gather(%w: tensor<2xf32>, %v: tensor<3xf32>)
      -> (tensor<4xbf16>, tensor<6xbf16>) {
    %0:2 = fsdp.unshard @u(%w, %v) : (tensor<2xf32>, tensor<3xf32>)
        -> (tensor<4xbf16>, tensor<6xbf16>)
    return %0#0, %0#1 : tensor<4xbf16>, tensor<6xbf16>
  }
}
