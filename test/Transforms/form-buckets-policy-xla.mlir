// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options "policy=xla scope=global"

// Program order; stop at the first item that does not fit or depends on one that
// was taken, combine, start again. An item above the limit is out for good.

// VECTOR xla_pairs cap=2000: 400 900 800 100 2100 -> {a,b} {c,d} {e}
// VECTOR xla_opens_with_second cap=2000: 400 1700 100 -> {a} {b,c}
// VECTOR xla_equal_fits cap=10: 5 5 1 -> {a,b} {c}
// VECTOR xla_oversize_first cap=10: 12 3 3 -> {a} {b,c}
// VECTOR xla_oversize_taken_out cap=10: 3 12 3 -> {a,c} {b}
// VECTOR xla_five cap=10: 3 4 5 20 1 -> {a,b} {c,e} {d}
// VECTOR xla_not_adjacent: k j k -> {a,c} {b}
// VECTOR xla_two_and_one: k k j k -> {a,b,d} {c}
// VECTOR xla_alternating: k j k j -> {a,c} {b,d}
// VECTOR negative_xla_stops_at_dependant: 1 1<a 1 -> {a} {b,c}
// VECTOR xla_starts_again: 1 1<a 1 1<a -> {a} {b,c,d}
// VECTOR negative_xla_chain: 1 1<a 1<b -> {a} {b} {c}

// Reachability is looked at afresh: {a,c} needs b, so d, which needs a, cannot
// join b.
// VECTOR negative_xla_fresh_reachability: k j k<b j<a -> {b} {a,c} {d}

// Reductions count their output, half of what gathers of this size do.
// VECTOR xla_reductions_count_output cap=5 reduce: 5 5 1 -> {a,b} {c}
// VECTOR xla_reductions_by_dtype reduce: k w k -> {a,c} {b}
// VECTOR negative_xla_other_group: 1@0 1@1 1@0 -> {a,c} {b}
// VECTOR xla_several_dtypes gather=bytes: k j -> {a,b}

// The default is 30 MiB + 7 bytes.
// VECTOR xla_default_limit: 3932160 3932160 1 -> {a,b,c}
// VECTOR negative_xla_default_limit_passed: 3932160 3932160 2 -> {a,b} {c}
