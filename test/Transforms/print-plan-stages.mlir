// RUN: split-file %s %t

// The pipeline's decisions stand in the JSON. Folding casts leaves everything in
// which ranks must agree, so the hash stays, and the temporaries go.
// RUN: fsdp-opt %t/unit.mlir --fsdp-resolve-precision --fsdp-expand-units --fsdp-print-plan --fsdp-form-buckets --fsdp-print-plan --fsdp-fuse-casts --fsdp-print-plan --fsdp-print-plan=format=json -o /dev/null | FileCheck %s --check-prefix=STAGES
//
// STAGES:      all-gathers 2
// STAGES-NEXT: reduce-scatters 2
// STAGES-NEXT: all-reduces 0
// STAGES-NEXT: launches 8
// 12 and 2 bytes in front of concat, 96 and 16 of chunk_cat, 24 behind split.
// STAGES:      bytes of temporaries 150
// STAGES-NOT:  unit
// STAGES:      plan hash [[NAIVE:[0-9a-f]+]]
// STAGES:      all-gathers 1
// STAGES-NEXT: reduce-scatters 1
// STAGES:      launches 4
// STAGES:      bytes of temporaries 150
// STAGES-NEXT: bytes of padding
// STAGES-NEXT: plan hash [[MERGED:[0-9a-f]+]]
// STAGES:      bytes of temporaries 0
// STAGES-NEXT: bytes of padding
// STAGES-NEXT: plan hash [[MERGED]]
// STAGES:      "decisions": [
// STAGES:          "pass": "FormBuckets",
// STAGES-NEXT:     "outcome": "merged",
// STAGES-NEXT:     "reason": "formed u_gather",
// STAGES-NEXT:     "items": [
// STAGES-NEXT:       "a_gather",
// STAGES-NEXT:       "b_gather"
// STAGES-NEXT:     ]
// STAGES:          "pass": "FuseCasts",
// STAGES:      "plan_hash": "[[MERGED]]"

// Buffers have the same plan as values, and the same hash: also the temporaries,
// which are two here, one in front of chunk_cat and one behind split.
// RUN: fsdp-opt %t/buffers.mlir --fsdp-print-plan -o /dev/null > %t/plans
// RUN: fsdp-opt %t/values.mlir --fsdp-print-plan -o /dev/null >> %t/plans
// RUN: FileCheck %s --check-prefix=BUFFERS < %t/plans
//
// BUFFERS:      w 0 6 f32 f32 f32
// BUFFERS:      launches 2
// BUFFERS-NEXT: bytes read 120
// BUFFERS-NEXT: bytes written 132
// BUFFERS-NEXT: bytes of temporaries 72
// BUFFERS:      plan hash [[HASH:[0-9a-f]+]]
// BUFFERS:      w 0 6 f32 f32 f32
// BUFFERS:      launches 2
// BUFFERS-NEXT: bytes read 120
// BUFFERS-NEXT: bytes written 132
// BUFFERS-NEXT: bytes of temporaries 72
// BUFFERS:      plan hash [[HASH]]

// Everything in which ranks must agree changes the hash: with the program as it
// is, nine different ones.
// RUN: grep 'plan hash' %t/plans > %t/hashes
// RUN: sed 's/split %r of @b divide 1.5/split %r of @b divide 2.5/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/into @b/into @b divide 1.5/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/scatter avg/scatter sum/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/scatter avg/scatter premul 0.5/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/scatter avg/scatter avg accumulate f32/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/@b/@c/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/@w/@v/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sed 's/shape = 2/shape = 1x2/; s/on @dp {/on @dp shard_axes [1] {/' %t/values.mlir | fsdp-opt --fsdp-print-plan -o /dev/null | grep 'plan hash' >> %t/hashes
// RUN: sort -u %t/hashes | wc -l | FileCheck %s --check-prefix=DIFFERENT
// DIFFERENT: {{^}}9{{$}}

// RUN: not fsdp-opt %t/unit.mlir --fsdp-print-plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=DECLARED
// DECLARED: error: 'fsdp.unshard' op has no plan yet: run fsdp-expand-units first

//--- unit.mlir
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @a : tensor<8x3xf64>
  fsdp.param @b : tensor<4xf32>
}
func.func @step(%a: tensor<2x3xf64>, %b: tensor<1xf32>, %ga: tensor<8x3xbf16>, %gb: tensor<4xbf16>)
    -> (tensor<8x3xbf16>, tensor<4xbf16>, tensor<2x3xf64>, tensor<1xf32>) {
  %w:2 = fsdp.unshard @u(%a, %b) : (tensor<2x3xf64>, tensor<1xf32>) -> (tensor<8x3xbf16>, tensor<4xbf16>)
  %s:2 = fsdp.reduce_grads @u[@a, @b](%ga, %gb) : (tensor<8x3xbf16>, tensor<4xbf16>) -> (tensor<2x3xf64>, tensor<1xf32>)
  return %w#0, %w#1, %s#0, %s#1 : tensor<8x3xbf16>, tensor<4xbf16>, tensor<2x3xf64>, tensor<1xf32>
}

//--- values.mlir
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
}
fsdp.bucket @b reduce @u[@w] : f32 align 1
func.func @reduce(%g: tensor<4x3xbf16>) -> tensor<2x3xbf16> {
  %e = arith.extf %g : tensor<4x3xbf16> to tensor<4x3xf32>
  %b = fsdp.chunk_cat %e into @b : (tensor<4x3xf32>) -> tensor<2x6xf32>
  %r = fsdp.reduce_scatter avg %b of @b : (tensor<2x6xf32>) -> tensor<6xf32>
  %s = fsdp.split %r of @b divide 1.5 : (tensor<6xf32>) -> tensor<2x3xf32>
  %t = arith.truncf %s : tensor<2x3xf32> to tensor<2x3xbf16>
  return %t : tensor<2x3xbf16>
}

//--- buffers.mlir
#map = affine_map<(i, j) -> (i, j)>
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4x3xf32>
}
fsdp.bucket @b reduce @u[@w] : f32 align 1
func.func @reduce(%g: memref<4x3xbf16>, %t: memref<2x3xbf16>) {
  %e = memref.alloc() : memref<4x3xf32>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%g : memref<4x3xbf16>) outs(%e : memref<4x3xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %x = arith.extf %in : bf16 to f32
    linalg.yield %x : f32
  }
  %b = memref.alloc() : memref<2x6xf32>
  fsdp.chunk_cat %e into @b outs(%b : memref<2x6xf32>) : (memref<4x3xf32>) -> ()
  memref.dealloc %e : memref<4x3xf32>
  %r = memref.alloc() : memref<6xf32>
  fsdp.reduce_scatter avg %b of @b outs(%r : memref<6xf32>) : (memref<2x6xf32>) -> ()
  memref.dealloc %b : memref<2x6xf32>
  %s = memref.alloc() : memref<2x3xf32>
  fsdp.split %r of @b divide 1.5 outs(%s : memref<2x3xf32>) : (memref<6xf32>) -> ()
  memref.dealloc %r : memref<6xf32>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s : memref<2x3xf32>) outs(%t : memref<2x3xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %x = arith.truncf %in : f32 to bf16
    linalg.yield %x : bf16
  }
  memref.dealloc %s : memref<2x3xf32>
  return
}
