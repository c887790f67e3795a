// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options "policy=deepspeed scope=global"

// Elements are counted.

// Reductions: flush before the limit would be passed, in ready order; members
// lie as they were declared.
// VECTOR deepspeed_reduce cap=10 elements reduce: 3 4 5 20 1 -> {a,b} {c} {d} {e}
// VECTOR deepspeed_reduce_equal_fits cap=7 elements reduce: 3 4 1 -> {a,b} {c}
// VECTOR deepspeed_reduce_sorted cap=10 elements reduce backward: 3 4 5 20 1 -> {e} {d} {b,c} {a}
// One bucket per dtype. What is left at the end goes by the name of the dtype:
// bf16, f16, f32.
// VECTOR negative_deepspeed_reduce_by_dtype elements reduce: 3w 4k 5w 6j -> {b} {d} {a,c}
// VECTOR deepspeed_reduce_flushed_first cap=10 elements reduce: 8k 4w 5k -> {a} {c} {b}
// Another group flushes the bucket of the dtype, the same one does not.
// VECTOR negative_deepspeed_reduce_other_group elements reduce: 1@0 1@1 1@0 -> {a} {b} {c}
// VECTOR deepspeed_reduce_same_group elements reduce: 1@0 1@0 1@1 -> {a,b} {c}
// VECTOR negative_deepspeed_reduce_depends elements reduce: 1 1<a 1 -> {a} {b,c}

// Gathers: a fetch takes parameters until the limit is reached or passed.
// VECTOR deepspeed_fetch cap=10 elements: 3 4 5 20 1 -> {a,b,c} {d} {e}
// VECTOR deepspeed_fetch_reached cap=7 elements: 3 4 1 -> {a,b} {c}
// One gather per dtype of a fetch, by the name of the dtype; the elements of all
// dtypes count.
// VECTOR negative_deepspeed_fetch_by_dtype cap=10 elements: 3w 4k 5w 1k 1k -> {b} {a,c} {d,e}
// VECTOR deepspeed_fetch_by_group elements: 1k@1 1j@0 1k@0 1k@1 -> {a,d} {c} {b}
// VECTOR negative_deepspeed_fetch_depends elements: 1 1<a 1 -> {a} {b,c}

// Defaults: 5e8 elements of reductions, 5e7 of a fetch.
// VECTOR deepspeed_reduce_default elements reduce: 250000000 250000000 1 -> {a,b} {c}
// VECTOR deepspeed_fetch_default elements: 25000000 24999999 1 1 -> {a,b,c} {d}
