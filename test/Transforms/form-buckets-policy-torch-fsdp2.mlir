// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options policy=torch-fsdp2

// One group per unit, no limit. The layout, byte by byte, is in
// form-buckets-torch-layout.mlir.

// VECTOR torch_one_gather_per_unit one-unit: 5k 4w 3j -> {a,b,c}
// VECTOR negative_torch_never_across_units: 1 1 1 -> {a} {b} {c}
// VECTOR negative_torch_one_reduction_per_dtype one-unit reduce: 1w 1k 1w -> {a,c} {b}
// VECTOR torch_one_reduction one-unit reduce: 1 1 1 -> {a,b,c}
// VECTOR torch_declaration_order one-unit reduce backward: 1 1 1 -> {a,b,c}
// VECTOR torch_no_limit one-unit: 300000000 300000000 -> {a,b}
