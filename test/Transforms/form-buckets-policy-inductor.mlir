// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options "policy=inductor scope=global"

// Neighbours of one key are a run; in a run first fit, and what depends on a
// member is skipped for good.

// VECTOR inductor_pairs cap=2000: 400 900 800 100 2100 -> {a,b} {c,d} {e}
// VECTOR inductor_opens_with_second cap=2000: 400 1700 100 -> {a} {b,c}
// VECTOR inductor_equal_fits cap=10: 5 5 1 -> {a,b} {c}
// VECTOR inductor_oversize_first cap=10: 12 3 3 -> {a} {b,c}
// VECTOR negative_inductor_oversize_closes cap=10: 3 12 3 -> {a} {b} {c}
// VECTOR inductor_five cap=10: 3 4 5 20 1 -> {a,b} {c} {d} {e}
// VECTOR negative_inductor_not_adjacent: k j k -> {a} {b} {c}
// VECTOR inductor_run_of_two: k k j k -> {a,b} {c} {d}
// VECTOR negative_inductor_alternating: k j k j -> {a} {b} {c} {d}
// VECTOR inductor_dependant_skipped: 1 1<a 1 -> {a,c} {b}
// VECTOR negative_inductor_never_offered_again: 1 1<a 1 1<a -> {a,c} {b} {d}
// VECTOR negative_inductor_chain: 1 1<a 1<b -> {a} {b} {c}

// VECTOR negative_inductor_all_dependants cap=2: 1 1 1<a 1<b -> {a,b} {c} {d}

// Whom a closed bucket keeps waiting does not matter for the next.
// VECTOR inductor_closed_by_size cap=2: 1 1 1 1<a -> {a,b} {c,d}

// The limit goes with the number of buckets formed so far, read once per run:
// the first run has 2 throughout, the second one 3.
// VECTOR inductor_limit_per_run cap=2,3: 1 1 1 1 1j 1j 1j -> {a,b} {c,d} {e,f,g}

// In the mode for several dtypes only the group is the key; for reductions
// the dtype stays in it.
// VECTOR inductor_several_dtypes gather=bytes: k j k -> {a,b,c}
// VECTOR inductor_reductions reduce: k k j k -> {a,b} {c} {d}
// VECTOR negative_inductor_reductions_have_a_dtype reduce gather=bytes: k j k -> {a} {b} {c}
// VECTOR negative_inductor_other_group: 1@0 1@0 1@1 1@0 -> {a,b} {c} {d}
// VECTOR inductor_default_limit: 262144000 262144000 1 -> {a,b} {c}
