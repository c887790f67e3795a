// RUN: fsdp-opt %s --fsdp-verify-collectives --split-input-file \
// RUN:   --allow-unregistered-dialect --verify-diagnostics

// Ways by which a value or a block comes to depend on the rank or on data, where
// a look at the nearest op does not show it. Functions without `negative_` are
// accepted.

// Values that are constants for the op that makes them, and yet not the same on
// all ranks.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_poison(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'ub.poison'}}
  %p = ub.poison : i1
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_undef(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'llvm.mlir.undef'}}
  %p = llvm.mlir.undef : i1
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

llvm.mlir.global internal @global() : i8

// Where a loader puts it.
func.func @negative_address(%s: tensor<2xf32>) {
  // expected-note @below {{it comes from this 'llvm.mlir.addressof'}}
  %address = llvm.mlir.addressof @global : !llvm.ptr
  %n = builtin.unrealized_conversion_cast %address : !llvm.ptr to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @constants(%s: tensor<2xf32>) {
  %i = arith.constant 3 : index
  %j = index.constant 3
  %p = index.cmp eq(%i, %j)
  %t = arith.constant dense<[true, false]> : tensor<2xi1>
  %c0 = arith.constant 0 : index
  %q = tensor.extract %t[%c0] : tensor<2xi1>
  %r = arith.andi %p, %q : i1
  scf.if %r {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Memory is data, even where only constants were written to it.
func.func @negative_constant_through_memory(%s: tensor<2xf32>) {
  %true = arith.constant true
  %m = memref.alloca() : memref<i1>
  memref.store %true, %m[] : memref<i1>
  // expected-note @below {{it comes from this 'memref.load'}}
  %p = memref.load %m[] : memref<i1>
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// What a collective gives is equal on all ranks of the group, but nobody says so
// here.
func.func @negative_gathered_value(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-note @below {{it comes from this 'fsdp.unshard'}}
  %w = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  %x = tensor.extract %w[%c0] : tensor<8xf32>
  %p = arith.cmpf ogt, %x, %zero : f32
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// -----

// Values carried by loops.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

// In the first iteration it is a constant, from the second on it is not.
// expected-note @below {{it comes from argument #2 of 'negative_later_iterations'}}
func.func @negative_later_iterations(%s: tensor<2xf32>, %n: index {fsdp.uniform}, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  scf.for %i = %c0 to %n step %c1 iter_args(%q = %true) -> i1 {
    // expected-note @below {{'scf.if' decides here}}
    scf.if %q {
      // expected-error @below {{control flow that depends on data}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
    scf.yield %p : i1
  }
  return
}

// Two values change places; the first result is the second argument after an odd
// number of iterations.
// expected-note @below {{it comes from argument #2 of 'negative_values_change_places'}}
func.func @negative_values_change_places(%s: tensor<2xf32>, %n: index {fsdp.uniform}, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %true, %y = %p) -> (i1, i1) {
    scf.yield %y, %x : i1, i1
  }
  // expected-note @below {{'scf.if' decides here}}
  scf.if %r#0 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @uniform_values_change_places(%s: tensor<2xf32>, %n: index {fsdp.uniform}, %p: i1 {fsdp.uniform}, %d: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %true, %y = %p, %z = %d) -> (i1, i1, i1) {
    scf.if %x {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
    scf.yield %y, %x, %z : i1, i1, i1
  }
  scf.if %r#1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// The values are constants, how often the loop runs is not.
func.func @negative_count_of_while(%s: tensor<2xf32>, %m: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = scf.while (%k = %c0) : (index) -> index {
    // expected-note @below {{it comes from this 'memref.load'}}
    %go = memref.load %m[] : memref<i1>
    scf.condition(%go) %k : index
  } do {
  ^bb0(%k: index):
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// A break: the body is left by a flag that depends on data.
func.func @negative_flag_leaves_while(%s: tensor<2xf32>, %n: index {fsdp.uniform}, %m: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  // expected-note @below {{'scf.while' decides here}}
  scf.while (%k = %c0, %go = %true) : (index, i1) -> index {
    %less = arith.cmpi slt, %k, %n : index
    %both = arith.andi %less, %go : i1
    scf.condition(%both) %k : index
  } do {
  ^bb0(%k: index):
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    // expected-note @below {{it comes from this 'memref.load'}}
    %stop = memref.load %m[] : memref<i1>
    %next = arith.addi %k, %c1 : index
    %go = arith.xori %stop, %true : i1
    scf.yield %next, %go : index, i1
  }
  return
}

// Blocks inside an op that runs its region once.
// expected-note @below {{it comes from argument #1 of 'negative_blocks_of_a_region'}}
func.func @negative_blocks_of_a_region(%s: tensor<2xf32>, %p: i1) {
  %true = arith.constant true
  %false = arith.constant false
  %r = scf.execute_region -> i1 {
    cf.cond_br %p, ^one, ^two
  ^one:
    scf.yield %true : i1
  ^two:
    scf.yield %false : i1
  }
  // expected-note @below {{'scf.if' decides here}}
  scf.if %r {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Whatever a region decides, what stands behind it runs.
func.func @behind_a_region(%s: tensor<2xf32>, %p: i1) {
  scf.execute_region {
    cf.cond_br %p, ^one, ^two
  ^one:
    scf.yield
  ^two:
    "other.op"() : () -> ()
    scf.yield
  }
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// The induction variables of what may run in parallel are unknown.
func.func @negative_value_of_reduction(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{it comes from this 'scf.parallel'}}
  %n = scf.parallel (%i) = (%c0) to (%c1) step (%c1) init (%c0) -> index {
    scf.reduce(%i : index) {
    ^bb0(%x: index, %y: index):
      %sum = arith.addi %x, %y : index
      scf.reduce.return %sum : index
    }
  }
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// expected-note @below {{it comes from argument #1 of 'negative_selected_value'}}
func.func @negative_selected_value(%s: tensor<2xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.select %p, %c0, %c1 : index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %i = %c0 to %c1 step %n {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// -----

// Calls.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

// Returns early: which return it is depends on data.
// expected-note @below {{it comes from argument #0 of 'chooses'}}
func.func @chooses(%p: i1) -> i1 {
  %true = arith.constant true
  %false = arith.constant false
  cf.cond_br %p, ^one, ^two
^one:
  return %true : i1
^two:
  return %false : i1
}

func.func @negative_early_return_decides(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  %q = func.call @chooses(%p) : (i1) -> i1
  // expected-note @below {{'scf.if' decides here}}
  scf.if %q {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// The same for callers inside alone, whose arguments are known.
func.func private @chooses_inside(%p: i1) -> i1 {
  %true = arith.constant true
  %false = arith.constant false
  cf.cond_br %p, ^one, ^two
^one:
  return %true : i1
^two:
  return %false : i1
}

func.func @early_return(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  %q = func.call @chooses_inside(%p) : (i1) -> i1
  scf.if %q {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// A function that calls itself computes a value; it issues no collective.
func.func private @counts(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.cmpi eq, %n, %c0 : index
  %r = scf.if %end -> index {
    scf.yield %c0 : index
  } else {
    %less = arith.subi %n, %c1 : index
    %k = func.call @counts(%less) : (index) -> index
    scf.yield %k : index
  }
  return %r : index
}

func.func @recursive_value(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = func.call @counts(%n) : (index) -> index
  scf.for %i = %c0 to %k step %c1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Three calls deep, and only the outermost one is under a condition.
func.func private @third(%s: tensor<2xf32>) {
  // expected-error @below {{control flow that depends on the rank's coordinate}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}
func.func private @second(%s: tensor<2xf32>) {
  // expected-note @below {{called from here}}
  func.call @third(%s) : (tensor<2xf32>) -> ()
  return
}
func.func private @first(%s: tensor<2xf32>) {
  // expected-note @below {{called from here}}
  func.call @second(%s) : (tensor<2xf32>) -> ()
  return
}
func.func @negative_three_calls_deep(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @dp : index
  %p = arith.cmpi ne, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-note @below {{called from here}}
    func.call @first(%s) : (tensor<2xf32>) -> ()
  }
  return
}

// -----

// Calls of other dialects may run their callee later.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

// expected-note @below {{function 'negative_run_later' is not only called by 'func.call', so that nothing is known about when it runs}}
async.func @negative_run_later(%s: tensor<2xf32>) -> !async.token {
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

func.func @runs_later(%s: tensor<2xf32>) {
  %t = async.call @negative_run_later(%s) : (tensor<2xf32>) -> !async.token
  return
}

// expected-note @below {{function 'negative_named_by_unknown_op' is not only called by 'func.call'}}
func.func private @negative_named_by_unknown_op(%s: tensor<2xf32>) {
  // expected-error @below {{control flow that depends on data}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

func.func @names_it(%s: tensor<2xf32>) {
  func.call @negative_named_by_unknown_op(%s) : (tensor<2xf32>) -> ()
  "other.run"(%s) {body = [@negative_named_by_unknown_op]} : (tensor<2xf32>) -> ()
  return
}

// -----

// A function that calls itself and gathers, without any condition.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_calls_itself(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  // expected-error @below {{calls itself in a circle that issues the collective of unit 'a'}}
  func.call @negative_calls_itself(%s, %n) : (tensor<2xf32>, index) -> ()
  return
}

// -----

// Regions that do not run as they stand.

#map = affine_map<(d0) -> (d0)>
shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_per_element(%s: tensor<2xf32>) -> tensor<2xf32> {
  // expected-note @below {{around it here}}
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%s : tensor<2xf32>) outs(%s : tensor<2xf32>) {
  ^bb0(%x: f32, %y: f32):
    // expected-error @below {{'linalg.generic' is not known to run its region in order}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    linalg.yield %x : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

func.func @negative_generated(%s: tensor<2xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  // expected-note @below {{around it here}}
  %r = tensor.generate {
  ^bb0(%i: index):
    // expected-error @below {{'tensor.generate' is not known to run its region in order}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    tensor.yield %zero : f32
  } : tensor<4xf32>
  return %r : tensor<4xf32>
}

// In order, inside of what is not.
func.func @negative_loop_in_parallel(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{around it here}}
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    scf.for %j = %c0 to %c1 step %c1 {
      // expected-error @below {{'scf.parallel' is not known to run its region in order}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
  }
  return
}

// -----

// Coordinates and what arithmetic makes of them. The analysis follows where a
// value comes from, not what is left of it.

shard.grid @g(shape = 2x4)
fsdp.unit @row on @g shard_axes [1] { fsdp.param @r : tensor<8xf32> }
fsdp.unit @column on @g shard_axes [0] { fsdp.param @c : tensor<8xf32> }

// The axes are named in another order than they have.
func.func @named_axes(%s: tensor<2xf32>, %t: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %ji:2 = shard.process_multi_index on @g axes = [1, 0] : index, index
  %top = arith.cmpi eq, %ji#1, %c0 : index
  scf.if %top {
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  %left = arith.cmpi eq, %ji#0, %c0 : index
  scf.if %left {
    %0 = fsdp.unshard @column(%t) : (tensor<4xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_named_axes(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %ji:2 = shard.process_multi_index on @g axes = [1, 0] : index, index
  %left = arith.cmpi eq, %ji#0, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %left {
    // expected-error @below {{depends on the rank's coordinate on axis 1 of grid 'g', expected the same on all ranks of its group, axis 1 of grid 'g'}}
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// The column of a rank.
func.func @negative_linear_index_modulo(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @g : index
  %column = arith.remui %rank, %c4 : index
  %left = arith.cmpi eq, %column, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %left {
    // expected-error @below {{depends on the rank's coordinate on axis 1 of grid 'g', expected the same on all ranks of its group, axis 1 of grid 'g'}}
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// The row would do; that the division takes the column away is not seen, so
// `shard.process_multi_index` is the way to ask for it.
func.func @negative_linear_index_divided(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @g : index
  %ij:2 = affine.delinearize_index %rank into (2, 4) : index, index
  %top = arith.cmpi eq, %ij#0, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %top {
    // expected-error @below {{depends on the rank's coordinate on axis 1 of grid 'g'}}
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

func.func @negative_mixed_coordinates(%s: tensor<2xf32>, %t: tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_multi_index'}}
  %ij:2 = shard.process_multi_index on @g : index, index
  %sum = arith.addi %ij#0, %ij#1 : index
  %diagonal = arith.cmpi eq, %sum, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %diagonal {
    // expected-error @below {{depends on the rank's coordinate on axis 1 of grid 'g'}}
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @column(%t) : (tensor<4xf32>) -> tensor<8xf32>
  }
  return
}

// A coordinate counts down: as often as it says.
func.func @coordinate_counts_down(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  scf.while (%k = %i) : (index) -> index {
    %more = arith.cmpi sgt, %k, %c0 : index
    scf.condition(%more) %k : index
  } do {
  ^bb0(%k: index):
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %less = arith.subi %k, %c1 : index
    scf.yield %less : index
  }
  return
}

// Which of two coordinates decides is data.
// expected-note @below {{it comes from argument #1 of 'negative_chosen_coordinate'}}
func.func @negative_chosen_coordinate(%s: tensor<2xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %n = scf.if %p -> index {
    scf.yield %i : index
  } else {
    scf.yield %c0 : index
  }
  // expected-note @below {{'scf.index_switch' decides here}}
  scf.index_switch %n
  case 1 {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @row(%s) : (tensor<2xf32>) -> tensor<8xf32>
    scf.yield
  }
  default {
  }
  return
}

// -----

// A grid of other ranks than those that meet: the index of a rank on a grid of
// one is not 0 for all.

shard.grid @one(shape = 1)
shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }

func.func @negative_grid_of_other_size(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{it comes from this 'shard.process_linear_index'}}
  %rank = shard.process_linear_index on @one : index
  %first = arith.cmpi eq, %rank, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-error @below {{control flow that depends on data}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}
