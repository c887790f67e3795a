// RUN: fsdp-opt %s --fsdp-verify-collectives --split-input-file \
// RUN:   --allow-unregistered-dialect --verify-diagnostics

// The order in which ranks first use two communicators, where they take
// different ways. All ranks of a group take the same way here: nobody waits for
// ever, but the orders must agree. Functions without `negative_` are accepted.

shard.grid @g(shape = 2x2x2)
fsdp.unit @a on @g shard_axes [1] { fsdp.param @wa : tensor<4xf32> }
fsdp.unit @b on @g shard_axes [2] { fsdp.param @wb : tensor<4xf32> }

func.func @negative_several_uses(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{unit 'a' is first here}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch of control flow that depends on the rank's coordinate on axis 0 of grid 'g', expected one order on all ranks}}
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %3 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  } else {
    // expected-note @below {{unit 'b' is first in the other branch}}
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    // expected-note @below {{unit 'a' is second there}}
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// The same order, once in a loop and once unrolled.
func.func @loop_and_unrolled(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    scf.for %k = %c0 to %n step %c1 {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  } else {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %3 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

func.func @negative_orders_of_loops(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  // expected-note @below {{'scf.index_switch' decides here}}
  scf.index_switch %i
  case 0 {
    scf.for %k = %c0 to %n step %c1 {
      // expected-note @below {{unit 'b' is first in the other branch}}
      %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-note @below {{unit 'a' is second there}}
      %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
    scf.yield
  }
  default {
    scf.for %k = %c0 to %n step %c1 {
      // expected-note @below {{unit 'a' is first here}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-error @below {{of unit 'b' comes after unit 'a' here}}
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// A way that ends the function, and one that goes on.
func.func @negative_early_exit(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'cf.cond_br' decides here}}
  cf.cond_br %first, ^stop, ^go
^stop:
  // expected-note @below {{unit 'a' is first here}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error @below {{of unit 'b' comes after unit 'a' here}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
^go:
  // expected-note @below {{unit 'b' is first in the other branch}}
  %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-note @below {{unit 'a' is second there}}
  %3 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// A uniform condition: all ranks take one way, whatever order it has.
func.func @uniform_condition(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  scf.if %p {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  } else {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// Inside of ways that are chosen alike.
func.func @negative_nested(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %p {
    // expected-note @below {{'scf.if' decides here}}
    scf.if %first {
      // expected-note @below {{unit 'a' is first here}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-error @below {{of unit 'b' comes after unit 'a' here}}
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    } else {
      // expected-note @below {{unit 'b' is first in the other branch}}
      %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-note @below {{unit 'a' is second there}}
      %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// Once each in opposite places of two functions.
func.func private @a_then_b(%s: tensor<2xf32>) {
  // expected-note @below {{unit 'a' is first here}}
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error @below {{of unit 'b' comes after unit 'a' here}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}
func.func private @b_then_a(%s: tensor<2xf32>) {
  // expected-note @below {{unit 'b' is first in the other branch}}
  %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-note @below {{unit 'a' is second there}}
  %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}
func.func @negative_calls(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    func.call @a_then_b(%s) : (tensor<2xf32>) -> ()
  } else {
    func.call @b_then_a(%s) : (tensor<2xf32>) -> ()
  }
  return
}

// -----

// Decisions one after the other.

shard.grid @g(shape = 2x2x2)
fsdp.unit @a on @g shard_axes [1] { fsdp.param @wa : tensor<4xf32> }
fsdp.unit @b on @g shard_axes [2] { fsdp.param @wb : tensor<4xf32> }

func.func @negative_two_branches(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %other = arith.cmpi ne, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{unit 'a' is first here}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch of control flow that depends on the rank's coordinate on axis 0 of grid 'g', expected one order on all ranks}}
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.if %other {
    // expected-note @below {{unit 'b' is first in the other branch}}
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    // expected-note @below {{unit 'a' is second there}}
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// Before for some ranks, behind for others.
func.func @negative_around(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %other = arith.cmpi ne, %i, %c0 : index
  // expected-note @below {{'scf.if' decides here}}
  scf.if %first {
    // expected-note @below {{unit 'a' is first here}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch}}
  // expected-note @below {{unit 'b' is first in the other branch}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  scf.if %other {
    // expected-note @below {{unit 'a' is second there}}
    %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// One condition value is one decision: who has not been there before is not there
// behind. A gather, what all ranks do, and the gather of the backward pass.
func.func @one_condition_twice(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.for %k = %c0 to %n step %c1 {
    scf.if %first {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    scf.if %first {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// The branches of one condition exclude each other, wherever they stand.
func.func @branches_exclude(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
  } else {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// Each iteration has a condition of its own: rank 0 of the axis begins with a,
// rank 1 with b.
func.func @negative_over_iterations(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  scf.for %k = %c0 to %c2 step %c1 {
    %mine = arith.cmpi eq, %i, %k : index
    // expected-note @below {{'scf.if' decides here}}
    scf.if %mine {
      // expected-note @below {{unit 'a' is first here}}
      // expected-note @below {{unit 'a' is second there}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    } else {
      // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch}}
      // expected-note @below {{unit 'b' is first in the other branch}}
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// The same loop with a uniform condition.
func.func @uniform_over_iterations(%s: tensor<2xf32>, %m: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.for %k = %c0 to %c2 step %c1 {
    %mine = arith.cmpi eq, %m, %k : index
    scf.if %mine {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    } else {
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  // Some ranks go on with a, which all have used.
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// Either order, but one for all.
func.func @uniform_choice_of_order(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %other = arith.cmpi ne, %i, %c0 : index
  scf.if %p {
    scf.if %first {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  } else {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    scf.if %other {
      %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// Where all begin with a, nobody begins with b.
func.func @uniform_beginning(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %other = arith.cmpi ne, %i, %c0 : index
  scf.if %p {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.if %first {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.if %other {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// What decides is named: not the outer condition, which both orders share.
func.func @negative_inner_decides(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %outer = arith.cmpi sge, %i, %c0 : index
  %inner = arith.cmpi eq, %i, %c0 : index
  scf.if %outer {
    // expected-note @below {{'scf.if' decides here}}
    scf.if %inner {
      // expected-note @below {{unit 'a' is first here}}
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-error @below {{of unit 'b' comes after unit 'a' here}}
      %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    } else {
      // expected-note @below {{unit 'b' is first in the other branch}}
      %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
      // expected-note @below {{unit 'a' is second there}}
      %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    }
  }
  return
}

// Ranks with no iteration begin with b.
func.func @negative_loop_that_may_not_run(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  // expected-note @below {{'scf.for' decides here}}
  scf.for %k = %c0 to %i step %c1 {
    // expected-note @below {{unit 'a' is first here}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch}}
  // expected-note @below {{unit 'b' is first in the other branch}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-note @below {{unit 'a' is second there}}
  %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// A pipeline's warm-up: some ranks go round more often, all begin with a.
func.func @warm_up(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  scf.for %k = %c0 to %i step %c1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.for %k = %c0 to %n step %c1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// Blocks: what comes before the ways part, and what behind they meet.
func.func @blocks_in_one_order(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.cond_br %first, ^left, ^right
^left:
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^right:
  %2 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^end:
  %3 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// Nobody comes through both blocks.
func.func @blocks_exclude(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  cf.cond_br %first, ^left, ^right
^left:
  %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^right:
  %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^end:
  return
}

func.func @blocks_exclude_in_another_order(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  cf.cond_br %first, ^left, ^right
^left:
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^right:
  %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^end:
  return
}

func.func @negative_blocks(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note @below {{'cf.cond_br' decides here}}
  cf.cond_br %first, ^left, ^end
^left:
  // expected-note @below {{unit 'b' is first here}}
  %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  cf.br ^end
^end:
  // expected-error @below {{of unit 'a' comes after unit 'b' here, but unit 'a' before unit 'b' in another branch}}
  // expected-note @below {{unit 'a' is first in the other branch}}
  %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  // expected-note @below {{unit 'b' is second there}}
  %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// A function that decides by coordinates decides alike in each call.
func.func private @a_on_first(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}
func.func @around_calls(%s: tensor<2xf32>) {
  func.call @a_on_first(%s) : (tensor<2xf32>) -> ()
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  func.call @a_on_first(%s) : (tensor<2xf32>) -> ()
  return
}

// One that decides by an argument may not.
func.func private @a_if(%s: tensor<2xf32>, %p: i1) {
  // expected-note @below {{'scf.if' decides here}}
  scf.if %p {
    // expected-note @below {{unit 'a' is first here}}
    // expected-note @below {{unit 'a' is second there}}
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}
func.func @negative_around_calls(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  %other = arith.cmpi ne, %i, %c0 : index
  func.call @a_if(%s, %first) : (tensor<2xf32>, i1) -> ()
  // expected-error @below {{of unit 'b' comes after unit 'a' here, but unit 'b' before unit 'a' in another branch}}
  // expected-note @below {{unit 'b' is first in the other branch}}
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  func.call @a_if(%s, %other) : (tensor<2xf32>, i1) -> ()
  return
}
