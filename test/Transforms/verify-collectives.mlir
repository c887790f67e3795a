// RUN: fsdp-opt %s --fsdp-verify-collectives --split-input-file \
// RUN:   --allow-unregistered-dialect --verify-diagnostics | FileCheck %s

// Programs that are accepted. The pass changes no op.

shard.grid @dp(shape = 4)
fsdp.unit @a on @dp { fsdp.param @wa : tensor<8xf32> }
fsdp.unit @b on @dp { fsdp.param @wb : tensor<8xf32> }

// CHECK-LABEL: func @straight_line(
// CHECK-NEXT:    fsdp.unshard @a
// CHECK-NEXT:    fsdp.unshard @b
// CHECK-NEXT:    fsdp.reduce_grads @a
// CHECK-NEXT:    return
func.func @straight_line(%s: tensor<2xf32>, %g: tensor<8xf32>) {
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  %2 = fsdp.reduce_grads @a[@wa](%g) : (tensor<8xf32>) -> tensor<2xf32>
  return
}

// CHECK-LABEL: func @constant_trip_count(
func.func @constant_trip_count(%s: tensor<2xf32>, %x: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<2xf32>
  scf.for %i = %c0 to %n step %c1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// A value that every iteration changes is still the same on all ranks, and the
// induction variable too.
// CHECK-LABEL: func @uniform_trip_count(
func.func @uniform_trip_count(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c2) -> index {
    scf.for %j = %i to %k step %c1 {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
    %next = arith.muli %k, %c2 : index
    scf.yield %next : index
  }
  scf.for %i = %c0 to %m step %c1 {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Data that the loop carries decides nothing.
// CHECK-LABEL: func @data_carried_by_loop(
func.func @data_carried_by_loop(%s: tensor<2xf32>, %n: index {fsdp.uniform})
    -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %s) -> tensor<2xf32> {
    %w = fsdp.unshard @a(%x) : (tensor<2xf32>) -> tensor<8xf32>
    %y = fsdp.reduce_grads @a[@wa](%w) : (tensor<8xf32>) -> tensor<2xf32>
    scf.yield %y : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// CHECK-LABEL: func @uniform_branches(
func.func @uniform_branches(%s: tensor<2xf32>, %p: i1 {fsdp.uniform},
                            %n: index {fsdp.uniform}) {
  scf.if %p {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  } else {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  scf.index_switch %n
  case 0 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    scf.yield
  }
  default {
  }
  scf.execute_region {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
    scf.yield
  }
  return
}

// CHECK-LABEL: func @uniform_while(
func.func @uniform_while(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.while (%i = %c0) : (index) -> index {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i : index
  } do {
  ^bb0(%i: index):
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  return
}

// CHECK-LABEL: func @uniform_affine(
func.func @uniform_affine(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  affine.for %i = 0 to affine_map<(d0) -> (d0 + 1)>(%n) {
    affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) {
      %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    }
  }
  return
}

// What depends on data or on the rank is beside the collectives.
// CHECK-LABEL: func @data_decides_about_other_ops(
func.func @data_decides_about_other_ops(%s: tensor<2xf32>, %p: i1,
                                        %m: memref<index>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.load %m[] : memref<index>
  %rank = shard.process_linear_index on @dp : index
  %k = scf.if %p -> index {
    "other.op"() : () -> ()
    scf.yield %n : index
  } else {
    scf.yield %rank : index
  }
  scf.for %i = %c0 to %k step %c1 {
    "other.op"() : () -> ()
  }
  "other.region"() ({
    "other.op"(%k) : (index) -> ()
  }) : () -> ()
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// Branches on data that meet again before and inside the loop.
// CHECK-LABEL: func @uniform_loop_of_blocks(
func.func @uniform_loop_of_blocks(%s: tensor<2xf32>, %p: i1,
                                  %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.cond_br %p, ^left, ^head(%c0 : index)
^left:
  "other.op"() : () -> ()
  cf.br ^join
^head(%x: index):
  "other.op"() : () -> ()
  cf.br ^join
^join:
  cf.br ^loop(%c0 : index)
^loop(%i: index):
  %go = arith.cmpi slt, %i, %n : index
  cf.cond_br %go, ^body, ^end
^body:
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  cf.cond_br %p, ^rare, ^latch
^rare:
  "other.op"() : () -> ()
  cf.br ^latch
^latch:
  %next = arith.addi %i, %c1 : index
  cf.br ^loop(%next : index)
^end:
  %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// CHECK-LABEL: func @uniform_early_exit(
func.func @uniform_early_exit(%s: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  cf.cond_br %p, ^stop, ^go
^stop:
  return
^go:
  %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// -----

// A condition may depend on axes outside the group.

shard.grid @hsdp(shape = 2x4)
fsdp.unit @a on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @wa : tensor<8xf32>
}
fsdp.unit @b on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @wb : tensor<8xf32>
}
fsdp.bucket @r reduce @a[@wa] : f32 align 1

// CHECK-LABEL: func @other_axis(
func.func @other_axis(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @hsdp axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  scf.for %j = %c0 to %i step %c1 {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// All-reduces meet over axis 0 alone.
// CHECK-LABEL: func @replicate_axes_only(
func.func @replicate_axes_only(%x: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %ij:2 = shard.process_multi_index on @hsdp : index, index
  %first = arith.cmpi eq, %ij#1, %c0 : index
  scf.if %first {
    %0 = fsdp.all_reduce sum %x of @r : (tensor<2xf32>) -> tensor<2xf32>
  }
  return
}

// Stages of a pipeline: each row of ranks has an order of its own, over one
// communicator per row.
// CHECK-LABEL: func @one_communicator_in_two_orders(
func.func @one_communicator_in_two_orders(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @hsdp axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
  } else {
    %0 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<8xf32>
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return
}

// Both calls tell the function the same about all ranks of a group.
// CHECK-LABEL: func private @helper(
func.func private @helper(%s: tensor<2xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<8xf32>
  }
  return %n : index
}

// CHECK-LABEL: func @calls(
func.func @calls(%s: tensor<2xf32>, %n: index {fsdp.uniform}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = shard.process_multi_index on @hsdp axes = [0] : index
  %m = func.call @helper(%s, %n) : (tensor<2xf32>, index) -> index
  %k = func.call @helper(%s, %i) : (tensor<2xf32>, index) -> index
  scf.for %j = %c0 to %k step %c1 {
    %l = func.call @helper(%s, %m) : (tensor<2xf32>, index) -> index
  }
  return
}

// -----

// Branches that agree in the order of two communicators.

shard.grid @g(shape = 2x2x2)
fsdp.unit @a on @g shard_axes [1] { fsdp.param @wa : tensor<4xf32> }
fsdp.unit @b on @g shard_axes [2] { fsdp.param @wb : tensor<4xf32> }

// CHECK-LABEL: func @same_order(
func.func @same_order(%s: tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  } else {
    %0 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %1 = fsdp.unshard @a(%s) : (tensor<2xf32>) -> tensor<4xf32>
    %2 = fsdp.unshard @b(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  return
}

// -----

// Axes of size 1 make no difference, and a group of one rank meets nobody.

shard.grid @g(shape = 1x2)
fsdp.unit @wide on @g { fsdp.param @w : tensor<4xf32> }
fsdp.unit @alone on @g shard_axes [0] { fsdp.param @v : tensor<4xf32> }

// CHECK-LABEL: func @axes_of_size_1(
func.func @axes_of_size_1(%s: tensor<2xf32>, %t: tensor<4xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %i = shard.process_multi_index on @g axes = [0] : index
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    %0 = fsdp.unshard @wide(%s) : (tensor<2xf32>) -> tensor<4xf32>
  }
  scf.if %p {
    %0 = fsdp.unshard @alone(%t) : (tensor<4xf32>) -> tensor<4xf32>
  }
  return
}

// -----

// Collectives as they are after expansion, and on buffers.

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<8xf32> }
fsdp.bucket @g gather @u[@w] : f32 align 1
fsdp.bucket @r reduce @u[@w] : f32 align 1

// CHECK-LABEL: func @explicit(
func.func @explicit(%f: tensor<2xf32>, %p: i1 {fsdp.uniform}) {
  scf.if %p {
    %0 = fsdp.all_gather %f of @g : (tensor<2xf32>) -> tensor<4x2xf32>
    %1 = fsdp.reduce_scatter sum %0 of @r : (tensor<4x2xf32>) -> tensor<2xf32>
  }
  return
}

// CHECK-LABEL: func @buffered(
func.func @buffered(%f: memref<2xf32>, %m: memref<4x2xf32>,
                    %p: i1 {fsdp.uniform}) {
  scf.if %p {
    fsdp.all_gather %f of @g outs(%m : memref<4x2xf32>)
        : (memref<2xf32>) -> ()
  }
  return
}
