// RUN: %python %S/Inputs/bucket_vectors.py fsdp-opt %s --options "scope=global gather=per-dtype"

// The rules of docs/BucketingRules.md across units, in the notation of
// Inputs/bucket_vectors.py: every item is a unit of its own.

// R1: only items of one key share a bucket, and keys do not disturb each other.
// VECTOR R1_one_key: k k k -> {a,b,c}
// VECTOR negative_R1_other_dtype: k j -> {a} {b}
// VECTOR R1_mixed_as_bytes gather=bytes: k j w -> {a,b,c}
// VECTOR negative_R1_unit_scope scope=unit: k k k -> {a} {b} {c}
// VECTOR negative_R1_other_axes: k@0 k@1 k@0 -> {a,c} {b}
// VECTOR R1_reductions reduce: k k k -> {a,b,c}
// VECTOR negative_R1_other_wire reduce: k w k -> {a,c} {b}

// R2: the limit is hard and includes the limit itself; what is closed stays so.
// VECTOR R2_pairs cap=2000: 400 900 800 100 2100 -> {a,b} {c,d} {e}
// VECTOR R2_opens_with_second cap=2000: 400 1700 100 -> {a} {b,c}
// VECTOR R2_equal_fits cap=10: 5 5 1 -> {a,b} {c}
// VECTOR negative_R2_one_more cap=10: 5 6 1 -> {a} {b,c}
// VECTOR R2_oversize_first cap=10: 12 3 3 -> {a} {b,c}
// VECTOR R2_oversize_closes cap=10: 3 12 3 -> {a} {b} {c}
// VECTOR R2_five cap=10: 3 4 5 20 1 -> {a,b} {c} {d} {e}
// VECTOR R2_list_of_limits cap=3,7: 3 3 4 7 -> {a} {b,c} {d}
// VECTOR R2_list_repeats_last cap=3,7: 3 4 3 4 3 -> {a} {b,c} {d,e}
// VECTOR R2_limit_per_key cap=10: 5k 5j 5k 5j 1k -> {a,c} {b,d} {e}
// VECTOR R2_reductions cap=10 reduce: 5 5 1 -> {a,b} {c}

// R3: who waits for whom; a refused item is offered again.
// VECTOR R3_free_item_joins: 1 1<a 1 -> {a,c} {b}
// VECTOR R3_offered_again: 1 1<a 1 1<a -> {a,c} {b,d}
// VECTOR negative_R3_chain: 1 1<a 1<b -> {a} {b} {c}
// VECTOR negative_R3_buckets_are_nodes: k j k<b j<a -> {b} {a,c} {d}
// VECTOR negative_R3_through_other_key: k j<a k<b -> {a} {b} {c}
// VECTOR R3_refused_does_not_close cap=3: 1 1<a 1 1 1<b -> {a,c,d} {b} {e}
// VECTOR R3_third_round: 1 1 1<a 1<a 1<c 1<d -> {a,b} {c,d} {e,f}

// R4: the order of first members, except for what a bucket needs itself.
// VECTOR R4_not_adjacent: k j k -> {a,c} {b}
// VECTOR R4_two_before_one: k k j k -> {a,b,d} {c}
// VECTOR R4_alternating: k j k j -> {a,c} {b,d}
// VECTOR R4_needed_stands_in_front: k j k<b -> {b} {a,c}
// VECTOR R4_needed_pair_stands_in_front: k j j k<b -> {b,c} {a,d}
// VECTOR R4_others_stay_behind: k w j k<c -> {c} {a,d} {b}
// VECTOR R4_chains_side_by_side: 1 1 2=a 2=b 4=c 4=d -> {a,b} {c,d} {e,f}
// VECTOR R4_chains_one_after_the_other: 1 2=a 4=b 1 2=d 4=e -> {a,d} {b,e} {c,f}
// VECTOR R4_chains_interleaved: 1 2=a 1 4=b 2=c 4=e -> {a,c} {b,e} {d,f}
// VECTOR R4_chains_interleaved_late: 1 1 2=a 4=c 2=b 4=e -> {a,b} {c,e} {d,f}
// VECTOR R4_chains_with_casts gather=bytes: 1k 2w=a 1k 4k=b 2w=c 4k=e -> {a,c} {b,e} {d,f}
// VECTOR R4_three_chains: 1 2=a 4=b 1 2=d 1 2=f 4=e 4=g -> {a,d,f} {b,e,g} {c,h,i}
// VECTOR negative_R4_chain_waits_for_itself: 1 2=a 4=b -> {a} {b} {c}
// VECTOR negative_R4_chain_closes: 1k 1w 2w=a 2k=b -> {a} {b,c} {d}
// VECTOR negative_R4_ops_between_stay: 1 1<a 1 1<b 1<c 1<e -> {a,c} {b} {d,e} {f}
// VECTOR negative_R4_used_before reduce: k! k k -> {a} {b,c}
// VECTOR negative_R4_result_needed reduce: 1 1<a 1 1<a -> {a} {b,c,d}
// VECTOR R4_reduction_at_last reduce: k j k -> {a,c} {b}
// VECTOR negative_R4_other_used_before reduce: k j! k -> {a} {b} {c}

// R5: members as declared, units in the order of their ops; with order=execution
// all as in the program. Neither sizes nor dtypes sort anything.
// VECTOR R5_units_in_order_of_ops backward: 1 2 3 -> {c,b,a}
// VECTOR R5_declared_order one-unit scope=unit backward: 1 2 3 -> {a,b,c}
// VECTOR R5_order_of_execution one-unit scope=unit backward order=execution: 1 2 3 -> {c,b,a}
// VECTOR negative_R5_dtypes_do_not_sort one-unit scope=unit gather=bytes: 1w 1k 1j 1w 1k -> {a,b,c,d,e}
// VECTOR negative_R5_sizes_do_not_sort one-unit scope=unit: 3 9 1 5 -> {a,b,c,d}
// VECTOR negative_R5_first_member_decides one-unit scope=unit backward reduce: 1k 1w 1k 1w -> {b,d} {a,c}
