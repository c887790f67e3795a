// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options "policy=megatron scope=global"

// Parameters in reverse; a bucket is closed once it has reached the limit.

// VECTOR megatron_gathers cap=10 elements: 3 4 5 20 1 -> {e,d} {c,b,a}
// VECTOR megatron_reductions cap=10 elements reduce: 3 4 5 20 1 -> {e,d} {c,b,a}
// VECTOR megatron_backward cap=10 elements reduce backward: 3 4 5 20 1 -> {e,d} {c,b,a}
// VECTOR megatron_reached cap=5 elements: 1 1 4 -> {c,b} {a}
// VECTOR megatron_one_less cap=6 elements: 1 1 4 -> {c,b,a}

// The order of issue is that of closing, unless a result is used too early.
// VECTOR negative_megatron_used_early cap=2 elements: 1! 1 1 1 -> {b,a} {d,c}
// VECTOR negative_megatron_depends cap=10 elements: 1 1<a 1 -> {a} {c,b}

// The storage dtype is in the key, the group of ranks too.
// VECTOR negative_megatron_by_dtype cap=10 elements: 1k 1w 1k 1w -> {d,b} {c,a}
// VECTOR negative_megatron_by_group cap=10 elements: 1@0 1@1 1@0 -> {c,a} {b}

// Default: the larger of 4e7 elements and 1e6 per rank.
// VECTOR megatron_default elements: 1 1 39999999 -> {c,b} {a}
