// RUN: fsdp-opt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: fsdp-opt %s --canonicalize | FileCheck %s --check-prefix=DCE
// RUN: fsdp-opt %s --loop-invariant-code-motion | FileCheck %s --check-prefix=LICM
// RUN: fsdp-opt %s --control-flow-sink | FileCheck %s --check-prefix=SINK
// RUN: fsdp-opt %s --inline | FileCheck %s --check-prefix=INLINE
// RUN: fsdp-opt %s --canonicalize --symbol-dce | FileCheck %s --check-prefix=SYMBOL

// Local ops are pure. What communicates stays where it is and is never merged,
// but dies unused. Buffer forms read their inputs and write their outputs.

// Buckets die with their last user, units stay: they are the model.
// SYMBOL:     fsdp.unit @u
// SYMBOL:     fsdp.bucket @g gather
// SYMBOL:     fsdp.bucket @r reduce
// SYMBOL-NOT: fsdp.bucket
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.bucket @g gather @u[@w] : f32 align 4
fsdp.bucket @r reduce @u[@w] : f32 align 4
fsdp.bucket @without_users gather @u[@w] : f32
fsdp.bucket @dead_user gather @u[@w] : f32 align 4

// SYMBOL:     func.func @without_results
func.func @without_results(%s: tensor<1xf32>) {
  %0 = fsdp.concat %s into @dead_user : (tensor<1xf32>) -> tensor<1xf32>
  %1 = fsdp.all_gather %0 of @dead_user : (tensor<1xf32>) -> tensor<4x1xf32>
  return
}

//===----------------------------------------------------------------------===//
// Equal ops
//===----------------------------------------------------------------------===//

// CSE-LABEL:      func.func @equal_local
// CSE-COUNT-1:    fsdp.concat
// CSE-COUNT-1:    fsdp.unchunk
// CSE-COUNT-1:    fsdp.chunk_cat
// CSE-COUNT-1:    fsdp.split
// CSE-NEXT:       "test.use"
func.func @equal_local(%s: tensor<1xf32>, %p: tensor<4x1xf32>, %f: tensor<1xf32>, %g: tensor<4xf32>) {
  %0 = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
  %1 = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
  %2 = fsdp.unchunk %p of @g : (tensor<4x1xf32>) -> tensor<4xf32>
  %3 = fsdp.unchunk %p of @g : (tensor<4x1xf32>) -> tensor<4xf32>
  %4 = fsdp.chunk_cat %g into @r divide 2.0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %5 = fsdp.chunk_cat %g into @r divide 2.0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %6 = fsdp.split %f of @r : (tensor<1xf32>) -> tensor<1xf32>
  %7 = fsdp.split %f of @r : (tensor<1xf32>) -> tensor<1xf32>
  "test.use"(%0, %1, %2, %3, %4, %5, %6, %7) : (tensor<1xf32>, tensor<1xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>) -> ()
  return
}

// CSE-LABEL:      func.func @different_divisor
// CSE-COUNT-2:    fsdp.chunk_cat
func.func @different_divisor(%g: tensor<4xf32>) {
  %0 = fsdp.chunk_cat %g into @r divide 2.0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %1 = fsdp.chunk_cat %g into @r : (tensor<4xf32>) -> tensor<4x1xf32>
  "test.use"(%0, %1) : (tensor<4x1xf32>, tensor<4x1xf32>) -> ()
  return
}

// A second gather is a second gather.
// CSE-LABEL:      func.func @equal_collectives
// CSE-COUNT-2:    fsdp.unshard
// CSE-COUNT-2:    fsdp.reduce_grads
// CSE-COUNT-2:    fsdp.all_gather
// CSE-COUNT-2:    fsdp.reduce_scatter
// CSE-COUNT-2:    fsdp.all_reduce
func.func @equal_collectives(%s: tensor<1xf32>, %p: tensor<4x1xf32>, %g: tensor<4xf32>) {
  %0 = fsdp.unshard @u(%s) : (tensor<1xf32>) -> tensor<4xf32>
  %1 = fsdp.unshard @u(%s) : (tensor<1xf32>) -> tensor<4xf32>
  %2 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  %3 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  %4 = fsdp.all_gather %s of @g : (tensor<1xf32>) -> tensor<4x1xf32>
  %5 = fsdp.all_gather %s of @g : (tensor<1xf32>) -> tensor<4x1xf32>
  %6 = fsdp.reduce_scatter sum %p of @r : (tensor<4x1xf32>) -> tensor<1xf32>
  %7 = fsdp.reduce_scatter sum %p of @r : (tensor<4x1xf32>) -> tensor<1xf32>
  %8 = fsdp.all_reduce sum %s of @r : (tensor<1xf32>) -> tensor<1xf32>
  %9 = fsdp.all_reduce sum %s of @r : (tensor<1xf32>) -> tensor<1xf32>
  "test.use"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9) : (tensor<4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> ()
  return
}

//===----------------------------------------------------------------------===//
// Unused results
//===----------------------------------------------------------------------===//

// DCE-LABEL:      func.func @unused
// DCE-NEXT:         return
func.func @unused(%s: tensor<1xf32>, %p: tensor<4x1xf32>, %g: tensor<4xf32>) {
  %0 = fsdp.unshard @u(%s) : (tensor<1xf32>) -> tensor<4xf32>
  %1 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  %2 = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
  %3 = fsdp.all_gather %2 of @g : (tensor<1xf32>) -> tensor<4x1xf32>
  %4 = fsdp.unchunk %3 of @g : (tensor<4x1xf32>) -> tensor<4xf32>
  %5 = fsdp.chunk_cat %g into @r : (tensor<4xf32>) -> tensor<4x1xf32>
  %6 = fsdp.reduce_scatter sum %5 of @r : (tensor<4x1xf32>) -> tensor<1xf32>
  %7 = fsdp.all_reduce sum %6 of @r : (tensor<1xf32>) -> tensor<1xf32>
  %8 = fsdp.split %7 of @r : (tensor<1xf32>) -> tensor<1xf32>
  fsdp.reduce_grads @u[]() : () -> ()
  return
}

// Buffer forms write memory that others see.
// DCE-LABEL:      func.func @buffers
// DCE-NEXT:         fsdp.concat
// DCE-NEXT:         fsdp.concat
// DCE-NEXT:         fsdp.all_gather
// DCE-NEXT:         fsdp.unchunk
// DCE-NEXT:         fsdp.chunk_cat
// DCE-NEXT:         fsdp.reduce_scatter
// DCE-NEXT:         fsdp.all_reduce
// DCE-NEXT:         fsdp.split
// DCE-NEXT:         return
// CSE-LABEL:      func.func @buffers
// CSE-COUNT-2:      fsdp.concat
// CSE:              return
func.func @buffers(%s: memref<1xf32>, %p: memref<4x1xf32>, %f: memref<1xf32>, %g: memref<4xf32>) {
  fsdp.concat %s into @g outs(%f : memref<1xf32>) : (memref<1xf32>) -> ()
  fsdp.concat %s into @g outs(%f : memref<1xf32>) : (memref<1xf32>) -> ()
  fsdp.all_gather %f of @g outs(%p : memref<4x1xf32>) : (memref<1xf32>) -> ()
  fsdp.unchunk %p of @g outs(%g : memref<4xf32>) : (memref<4x1xf32>) -> ()
  fsdp.chunk_cat %g into @r outs(%p : memref<4x1xf32>) : (memref<4xf32>) -> ()
  fsdp.reduce_scatter sum %p of @r outs(%f : memref<1xf32>) : (memref<4x1xf32>) -> ()
  fsdp.all_reduce sum %f of @r outs(%f : memref<1xf32>) : (memref<1xf32>) -> ()
  fsdp.split %f of @r outs(%s : memref<1xf32>) : (memref<1xf32>) -> ()
  return
}

// What a buffer form writes is read afterwards, not before.
// CSE-LABEL:      func.func @write_between_loads
// CSE:              memref.load
// CSE-NEXT:         fsdp.concat
// CSE-NEXT:         memref.load
func.func @write_between_loads(%s: memref<1xf32>, %f: memref<1xf32>) -> (f32, f32) {
  %0 = arith.constant 0 : index
  %1 = memref.load %f[%0] : memref<1xf32>
  fsdp.concat %s into @g outs(%f : memref<1xf32>) : (memref<1xf32>) -> ()
  %2 = memref.load %f[%0] : memref<1xf32>
  return %1, %2 : f32, f32
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

// LICM-LABEL:     func.func @loop
// LICM:             fsdp.concat
// LICM:             scf.for
// LICM-NEXT:          fsdp.all_gather
// LICM-NEXT:          fsdp.unshard
// LICM-NEXT:          fsdp.reduce_grads
// LICM-NEXT:          fsdp.reduce_scatter
// LICM-NEXT:          fsdp.all_reduce
// LICM-NEXT:          "test.use"
func.func @loop(%s: tensor<1xf32>, %p: tensor<4x1xf32>, %g: tensor<4xf32>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    %f = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
    %2 = fsdp.all_gather %f of @g : (tensor<1xf32>) -> tensor<4x1xf32>
    %3 = fsdp.unshard @u(%s) : (tensor<1xf32>) -> tensor<4xf32>
    %4 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
    %5 = fsdp.reduce_scatter sum %p of @r : (tensor<4x1xf32>) -> tensor<1xf32>
    %6 = fsdp.all_reduce sum %s of @r : (tensor<1xf32>) -> tensor<1xf32>
    "test.use"(%2, %3, %4, %5, %6) : (tensor<4x1xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> ()
  }
  return
}

// LICM-LABEL:     func.func @loop_of_buffers
// LICM:             scf.for
// LICM-NEXT:          fsdp.concat
// LICM-NEXT:          fsdp.all_gather
func.func @loop_of_buffers(%s: memref<1xf32>, %f: memref<1xf32>, %p: memref<4x1xf32>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    fsdp.concat %s into @g outs(%f : memref<1xf32>) : (memref<1xf32>) -> ()
    fsdp.all_gather %f of @g outs(%p : memref<4x1xf32>) : (memref<1xf32>) -> ()
  }
  return
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

// A local op may sink into the one branch that needs it, a collective may not:
// ranks might take different branches.
// SINK-LABEL:     func.func @branch
// SINK-NEXT:        fsdp.unshard
// SINK-NEXT:        fsdp.reduce_grads
// SINK-NEXT:        fsdp.all_gather
// SINK-NEXT:        fsdp.reduce_scatter
// SINK-NEXT:        fsdp.all_reduce
// SINK-NEXT:        scf.if
// SINK-NEXT:          fsdp.concat
func.func @branch(%s: tensor<1xf32>, %p: tensor<4x1xf32>, %g: tensor<4xf32>, %c: i1) {
  %0 = fsdp.unshard @u(%s) : (tensor<1xf32>) -> tensor<4xf32>
  %1 = fsdp.reduce_grads @u[@w](%g) : (tensor<4xf32>) -> tensor<1xf32>
  %2 = fsdp.all_gather %s of @g : (tensor<1xf32>) -> tensor<4x1xf32>
  %3 = fsdp.reduce_scatter sum %p of @r : (tensor<4x1xf32>) -> tensor<1xf32>
  %4 = fsdp.all_reduce sum %s of @r : (tensor<1xf32>) -> tensor<1xf32>
  %5 = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
  scf.if %c {
    "test.use"(%0, %1, %2, %3, %4, %5) : (tensor<4xf32>, tensor<1xf32>, tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> ()
  }
  return
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

func.func private @gather(%s: tensor<1xf32>) -> tensor<4x1xf32> {
  %0 = fsdp.concat %s into @g : (tensor<1xf32>) -> tensor<1xf32>
  %1 = fsdp.all_gather %0 of @g : (tensor<1xf32>) -> tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

func.func private @gather_buffers(%s: memref<1xf32>, %p: memref<4x1xf32>) {
  fsdp.all_gather %s of @g outs(%p : memref<4x1xf32>) : (memref<1xf32>) -> ()
  return
}

// INLINE-LABEL:   func.func @caller
// INLINE-NEXT:      fsdp.concat
// INLINE-NEXT:      %[[A:.+]] = fsdp.all_gather
// INLINE-NEXT:      fsdp.concat
// INLINE-NEXT:      %[[B:.+]] = fsdp.all_gather
// INLINE-NEXT:      fsdp.all_gather %{{.+}} of @g outs
// INLINE-NEXT:      return %[[A]], %[[B]]
func.func @caller(%s: tensor<1xf32>, %m: memref<1xf32>, %p: memref<4x1xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %0 = call @gather(%s) : (tensor<1xf32>) -> tensor<4x1xf32>
  %1 = call @gather(%s) : (tensor<1xf32>) -> tensor<4x1xf32>
  call @gather_buffers(%m, %p) : (memref<1xf32>, memref<4x1xf32>) -> ()
  return %0, %1 : tensor<4x1xf32>, tensor<4x1xf32>
}
