// RUN: fsdp-opt %s --fsdp-verify-collectives --split-input-file \
// RUN:   --allow-unregistered-dialect --verify-diagnostics

// Control flow that depends on the rank.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_rank_decides(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  %first = arith.cmpi eq, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{of unit 'a' is under control flow that depends on the rank's coordinate on axis 0 of grid 'dp', expected the same on all ranks of its group, axis 0 of grid 'dp'}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// -----

// The seeded fault: two gathers swapped on rank 0.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }
fsdp.unit @b on @dp { fsdp.param @wb : tensor<8xf32> }

func.func @negative_swapped_on_rank_0(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %rank = shard.process_linear_index on @dp : index
  %first = arith.cmpi eq, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{unit 'b' is first here}}
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
    // expected-error @below {{of unit 'a' comes after unit 'b' here, but unit 'a' before unit 'b' in another branch of control flow that depends on the rank's coordinate on axis 0 of grid 'dp', expected one order on all ranks}}
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  } else {
    // expected-note @below {{unit 'a' is first in the other branch}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    // expected-note @below {{unit 'b' is second there}}
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// -----

// The seeded fault: a trip count that depends on the rank.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_trip_count_of_rank(%g: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %rank = shard.process_multi_index on @dp axes = [0] : index
  %n = arith.addi %rank, %c1 : index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{'fsdp.reduce_grads' op of unit 'a' is under control flow that depends on the rank's coordinate on axis 0}}
    %0 = fsdp.reduce_grads @a[@wa](%g) : (tensor<8xf32>) -> tensor<2xf32>
  }
  return
}

// -----

// What a loop carries depends on how often it ran.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_result_of_uneven_loop(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  %n = scf.for %i = %c0 to %rank step %c1 iter_args(%k = %c0) -> index {
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on the rank's coordinate}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// -----

// Control flow that depends on data.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

// expected-note @below {{it comes from argument #1 of 'negative_argument_decides', which is not marked 'fsdp.uniform'}}
func.func @negative_argument_decides(%s: tensor<2xf32>, %p: i1) {
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{of unit 'a' is under control flow that depends on data, expected the same on all ranks of its group, axis 0 of grid 'dp'}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_load_decides(%s: tensor<2xf32>, %m: memref<index>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{it comes from this 'memref.load'}}
  %n = memref.load %m[] : memref<index>
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// expected-note @below {{it comes from argument #0 of 'negative_element_decides'}}
func.func @negative_element_decides(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %x = tensor.extract %s[%c0] : tensor<2xf32>
  %p = arith.cmpf oeq, %x, %zero : f32
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_undefined_element_decides(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'tensor.empty'}}
  %e = tensor.empty() : tensor<1xi1>
  %p = tensor.extract %e[%c0] : tensor<1xi1>
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// expected-note @below {{it comes from argument #1 of 'negative_dynamic_size_decides'}}
func.func @negative_dynamic_size_decides(%s: tensor<2xf32>, %x: tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Pure, without operands, and still not the same everywhere.
func.func @negative_lane_decides(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'gpu.thread_id'}}
  %lane = gpu.thread_id x
  %p = arith.cmpi eq, %lane, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_unknown_op_decides(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'other.op'}}
  %p = "other.op"() : () -> i1
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func private @external() -> i1

func.func @negative_external_function_decides(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'func.call'}}
  %p = func.call @external() : () -> i1
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_while_on_data(%s: tensor<2xf32>, %m: memref<i1>) {
  // expected-note @below {{'scf.while' decides here}}
  scf.while : () -> () {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    // expected-note @below {{it comes from this 'memref.load'}}
    %go = memref.load %m[] : memref<i1>
    scf.condition(%go)
  } do {
    scf.yield
  }
  return
}

// Which value an op with branches gives depends on its condition.
// expected-note @below {{it comes from argument #1 of 'negative_chosen_value_decides'}}
func.func @negative_chosen_value_decides(%s: tensor<2xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = scf.if %p -> index {
    scf.yield %c0 : index
  } else {
    scf.yield %c1 : index
  }
  // expected-note @below {{'scf.index_switch' decides here}}
  scf.index_switch %n
  case 0 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    scf.yield
  }
  default {
  }
  return
}

// expected-note @below {{it comes from argument #1 of 'negative_affine_bound'}}
func.func @negative_affine_bound(%s: tensor<2xf32>, %n: index) {
  // expected-note @below {{'affine.for' decides here}}
  affine.for %i = 0 to %n {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// One error for what one op decides; a second for another op.
// expected-note @below {{it comes from argument #1 of}}
// expected-note @below {{it comes from argument #2 of}}
func.func @negative_one_error_per_cause(%s: tensor<2xf32>, %p: i1, %q: i1) {
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    // expected-note @below {{'scf.if' decides here}}
    scf.if %q {
      // expected-error @below {{control flow that depends on data}}
      %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
  }
  return
}

// -----

// Branches between blocks.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

// expected-note @below {{it comes from argument #1 of 'negative_early_exit'}}
func.func @negative_early_exit(%s: tensor<2xf32>, %p: i1) {
  // expected-note @below {{'cf.cond_br' decides here}}
  cf.cond_br %p, ^stop, ^go
^stop:
  return
^go:
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// expected-note @below {{it comes from argument #1 of 'negative_block_argument'}}
func.func @negative_block_argument(%s: tensor<2xf32>, %p: i1) {
  %true = arith.constant true
  %false = arith.constant false
  cf.cond_br %p, ^join(%true : i1), ^join(%false : i1)
^join(%q: i1):
  // expected-note @below {{'scf.if' decides here}}
  scf.if %q {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// The loop ends for each rank with another value of the same induction.
func.func @negative_value_behind_uneven_loop(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  cf.br ^loop(%c0 : index)
^loop(%i: index):
  %next = arith.addi %i, %c1 : index
  %go = arith.cmpi slt, %next, %rank : index
  cf.cond_br %go, ^loop(%next : index), ^end
^end:
  // expected-note @below {{'scf.for' decides here}}
  scf.for %j = %c0 to %next step %c1 {
    // expected-error @below {{control flow that depends on the rank's coordinate}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Leaving a loop in the middle decides about all of its body.
func.func @negative_break_on_data(%s: tensor<2xf32>, %m: memref<i1>,
                                  %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^loop(%c0 : index)
^loop(%i: index):
  %go = arith.cmpi slt, %i, %n : index
  cf.cond_br %go, ^body, ^end
^body:
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  // expected-note @below {{it comes from this 'memref.load'}}
  %stop = memref.load %m[] : memref<i1>
  // expected-note @below {{'cf.cond_br' decides here}}
  cf.cond_br %stop, ^end, ^latch
^latch:
  %next = arith.addi %i, %c1 : index
  cf.br ^loop(%next : index)
^end:
  return
}

func.func @negative_switch_on_rank(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  %flag = arith.index_cast %rank : index to i32
  // expected-note @below {{'cf.switch' decides here}}
  cf.switch %flag : i32, [
    default: ^end,
    0: ^first
  ]
^first:
  // expected-error @below {{control flow that depends on the rank's coordinate}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  cf.br ^end
^end:
  return
}

// expected-note @below {{the order of blocks is not known: a branch leads into a loop}}
func.func @negative_loop_with_two_entries(%s: tensor<2xf32>,
                                          %p: i1 {fsdp.uniform}) {
  cf.cond_br %p, ^one, ^two
^one:
  // expected-error @below {{of unit 'a' is under control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  cf.br ^two
^two:
  cf.cond_br %p, ^one, ^end
^end:
  return
}

// -----

// Calls.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func private @gathers(%s: tensor<2xf32>) {
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// expected-note @below {{it comes from argument #1 of 'negative_call_under_data'}}
func.func @negative_call_under_data(%s: tensor<2xf32>, %p: i1) {
  func.call @gathers(%s) : (tensor<2xf32>) -> ()
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-note @below {{called from here}}
    func.call @gathers(%s) : (tensor<2xf32>) -> ()
  }
  return
}

func.func private @repeats(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on the rank's coordinate}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// What a caller passes counts, not the mark.
func.func @negative_call_with_rank(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  func.call @repeats(%s, %rank) : (tensor<2xf32>, index) -> ()
  return
}

func.func private @returns_rank() -> index {
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  return %rank : index
}

func.func @negative_returned_rank(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = func.call @returns_rank() : () -> index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on the rank's coordinate}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// expected-note @below {{function 'called_through_value' is not only called by 'func.call', so that nothing is known about when it runs}}
func.func private @called_through_value(%s: tensor<2xf32>) {
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

func.func @negative_used_as_value(%s: tensor<2xf32>) {
  %f = func.constant @called_through_value : (tensor<2xf32>) -> ()
  func.call_indirect %f(%s) : (tensor<2xf32>) -> ()
  return
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func private @inner(%s: tensor<2xf32>, %n: index) {
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  // expected-error @below {{calls itself in a circle that issues the collective of unit 'a', which is control flow of unknown depth}}
  func.call @outer(%s, %n) : (tensor<2xf32>, index) -> ()
  return
}

func.func private @outer(%s: tensor<2xf32>, %n: index) {
  func.call @inner(%s, %n) : (tensor<2xf32>, index) -> ()
  return
}

func.func @negative_recursion(%s: tensor<2xf32>, %n: index) {
  func.call @outer(%s, %n) : (tensor<2xf32>, index) -> ()
  return
}

// -----

// Ops that may not run their region in order.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_parallel(%s: tensor<2xf32>) {
  // expected-note @below {{around it here}}
  scf.forall (%i) in (4) {
    // expected-error @below {{of unit 'a' is under control flow of unknown order: 'scf.forall' is not known to run its region in order}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_async(%s: tensor<2xf32>) {
  // expected-note @below {{around it here}}
  %t = async.execute {
    // expected-error @below {{'async.execute' is not known to run its region in order}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    async.yield
  }
  return
}

func.func @negative_omp(%s: tensor<2xf32>) {
  // expected-note @below {{around it here}}
  omp.parallel {
    // expected-error @below {{'omp.parallel' is not known to run its region in order}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    omp.terminator
  }
  return
}

func.func @negative_unknown_region(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  // expected-note @below {{around it here}}
  "other.region"() ({
    scf.if %p {
      // expected-error @below {{unregistered op 'other.region' is not known to run its region in order}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
  }, {
  }) : () -> ()
  return
}

func.func private @gathers(%s: tensor<2xf32>) {
  // expected-error @below {{of unit 'a' is under control flow of unknown order: 'scf.parallel' is not known to run its region in order}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

func.func @negative_call_in_parallel(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{around it here}}
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    // expected-note @below {{called from here}}
    func.call @gathers(%s) : (tensor<2xf32>) -> ()
  }
  return
}

// -----

// Groups: a coordinate of the group is refused, whatever the op.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @a on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @wa : tensor<8xf32>
}
fsdp.bucket @r reduce @a[@wa] : f32 align 1

func.func @negative_shard_axis(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %ij:2 = shard.process_multi_index on @hsdp : index, index
  %first = arith.cmpi eq, %ij#1, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{of unit 'a' is under control flow that depends on the rank's coordinate on axis 1 of grid 'hsdp', expected the same on all ranks of its group, axis 1 of grid 'hsdp'}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_replicate_axis(%x: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %i = shard.process_multi_index on @hsdp axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{'fsdp.all_reduce' op of bucket 'r' is under control flow that depends on the rank's coordinate on axis 0 of grid 'hsdp', expected the same on all ranks of its group, axis 0 of grid 'hsdp'}}
    %0 = fsdp.all_reduce sum %x of @r : (tensor<2xf32>) -> tensor<2xf32>
  }
  return
}

// The unit op reduces over both groups.
func.func @negative_reduce_grads(%g: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @hsdp : index
  %first = arith.cmpi eq, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{depends on the rank's coordinate on axes 0 and 1 of grid 'hsdp', expected the same on all ranks of its group, axes 0 and 1 of grid 'hsdp'}}
    %0 = fsdp.reduce_grads @a[@wa](%g) : (tensor<8xf32>) -> tensor<2xf32>
  }
  return
}

// -----

// The seeded fault: two communicators in opposite orders. Ranks 0 and 2
// are in both, and each would wait for the other in the one that it uses first.

shard.grid @hsdp(shape = 2x2)
fsdp.unit @all on @hsdp { fsdp.param @w : tensor<8xf32> }
fsdp.unit @columns on @hsdp shard_axes [0] { fsdp.param @v : tensor<4xf32> }
fsdp.bucket @ga gather @all[@w] : f32 align 1
fsdp.bucket @gc gather @columns[@v] : f32 align 1

func.func @negative_opposite_orders(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @hsdp axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{bucket 'ga' is first here}}
    %0 = fsdp.all_gather %s of @ga : (tensor<2xf32>) -> tensor<4x2xf32>
    // expected-error @below {{of bucket 'gc' comes after bucket 'ga' here, but bucket 'gc' before bucket 'ga' in another branch of control flow that depends on the rank's coordinate on axis 0 of grid 'hsdp', expected one order on all ranks}}
    %1 = fsdp.all_gather %s of @gc : (tensor<2xf32>) -> tensor<2x2xf32>
  } else {
    // expected-note @below {{bucket 'gc' is first in the other branch}}
    %0 = fsdp.all_gather %s of @gc : (tensor<2xf32>) -> tensor<2x2xf32>
    // expected-note @below {{bucket 'ga' is second there}}
    %1 = fsdp.all_gather %s of @ga : (tensor<2xf32>) -> tensor<4x2xf32>
  }
  return
}

// -----

// The same after expansion, where each branch has buckets of its own.

shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<4xf32>
  fsdp.param @b : tensor<4xf32>
}
fsdp.bucket @a0 gather @u[@a] : f32 align 1
fsdp.bucket @b0 gather @u[@b] : f32 align 1
fsdp.bucket @a1 gather @u[@a] : f32 align 1
fsdp.bucket @b1 gather @u[@b] : f32 align 1

func.func @negative_swapped_members(%s: tensor<2xf32>, %p: i1) {
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-note @below {{bucket 'a0' is first here}}
    %0 = fsdp.all_gather %s of @a0 : (tensor<2xf32>) -> tensor<2x2xf32>
    // expected-error @below {{of bucket 'b0' comes after bucket 'a0' here, but bucket 'b1' before bucket 'a1' in another branch of control flow that depends on data, expected one order on all ranks}}
    %1 = fsdp.all_gather %s of @b0 : (tensor<2xf32>) -> tensor<2x2xf32>
  } else {
    // expected-note @below {{bucket 'b1' is first in the other branch}}
    %0 = fsdp.all_gather %s of @b1 : (tensor<2xf32>) -> tensor<2x2xf32>
    // expected-note @below {{bucket 'a1' is second there}}
    %1 = fsdp.all_gather %s of @a1 : (tensor<2xf32>) -> tensor<2x2xf32>
  }
  return
}

// -----

// The condition is the same for the ranks of each group, but not the order of
// the two communicators that every rank has.

shard.grid @g(shape = 2x2x2)
fsdp.unit @a on @g shard_axes [1] { fsdp.param @wa : tensor<4xf32> }
fsdp.unit @b on @g shard_axes [2] { fsdp.param @wb : tensor<4xf32> }

func.func private @gather_b(%s: tensor<2xf32>) {
  // expected-note @below {{unit 'b' is first here}}
  %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}

func.func @negative_order_of_communicators(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{unit 'a' is first in the other branch}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    // expected-note @below {{unit 'b' is second there}}
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  } else {
    func.call @gather_b(%s) : (tensor<2xf32>) -> ()
    // expected-error @below {{of unit 'a' comes after unit 'b' here, but unit 'a' before unit 'b' in another branch of control flow that depends on the rank's coordinate on axis 0 of grid 'g', expected one order on all ranks}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

func.func @negative_order_between_blocks(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'cf.cond_br' decides here}}
  cf.cond_br %first, ^left, ^right
^left:
  // expected-note @below {{unit 'a' is first here}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error @below {{of unit 'b' comes after unit 'a' here}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^right:
  // expected-note @below {{unit 'b' is first in the other branch}}
  %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-note @below {{unit 'a' is second there}}
  %3 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^end:
  return
}

// -----

// Coordinates of a grid of another shape say nothing about this one.

shard.grid @dp(shape = 4)
shard.grid @other(shape = 2x2)
fsdp.unit @a on @other shard_axes [1] { fsdp.param @wa : tensor<4xf32> }

func.func @negative_other_grid(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  %first = arith.cmpi eq, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{depends on the rank's coordinate on axis 0 of grid 'dp', expected the same on all ranks of its group, axis 1 of grid 'other'}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}
