// RUN: fsdp-opt %s --fsdp-verify-collectives | FileCheck %s --check-prefix=NONE
// RUN: fsdp-opt %s --fsdp-optimize=opt-level=0 --fsdp-print-plan=format=json \
// RUN:   | FileCheck %s
// RUN: fsdp-opt %s --fsdp-optimize --fsdp-print-plan=format=json | FileCheck %s
// RUN: sed 's/attributes {fsdp.plan_hash = ".*"}//' %s \
// RUN:   | fsdp-opt --fsdp-optimize=verify-collectives=false \
// RUN:   | FileCheck %s --check-prefix=NONE

// The module carries the hash of its own plan. At stage declared there is none,
// and an old one goes.

// CHECK:      "plan_hash": "[[HASH:[0-9a-f]{16}]]"
// CHECK:      module attributes {fsdp.plan_hash = "[[HASH]]"}
// NONE-NOT:   plan_hash
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
