// RUN: fsdp-opt %s --fsdp-print-plan -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: fsdp-opt %s --fsdp-print-plan=format=json -o /dev/null | FileCheck %s --check-prefix=JSON
// RUN: fsdp-opt %s --fsdp-print-plan=format=json -o /dev/null | %python -c "import json, sys; json.load(sys.stdin)"
// RUN: fsdp-opt %s --fsdp-print-plan --verify-each=false 2>&1 | FileCheck %s --check-prefix=IR
// RUN: not fsdp-opt %s --fsdp-print-plan=format=yaml 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: fsdp-print-plan: option format is 'yaml', expected text or json

// The mixed unit: its byte offsets are 0, 128, 256, 384, its row has 512 bytes.
// Of 2048 bytes 40 + 48 + 48 + 64 hold elements.

// TEXT:      unit layer0
// TEXT-NEXT:   gather layer0_gather in bytes, 4 members, align 128
// TEXT-NEXT:     row 512 bytes, packed 2,048 bytes, 1,848 of them padding
// TEXT-NEXT:     parameter  offset  elements  from  wire  to
// TEXT-NEXT:     norm            0         3  f32   f32   f32
// TEXT-NEXT:     wq            128         6  f32   bf16  bf16
// TEXT-NEXT:     wv            256         6  bf16  bf16  bf16
// TEXT-NEXT:     table         384         8  bf16  bf16  f32
// TEXT-EMPTY:
// TEXT-NEXT: unit layer1
// TEXT-NEXT:   reduce b in f16, 1 member, align 1, group 7
// TEXT-NEXT:     chunk_cat divide 2, reduce_scatter premul 0.25, all_reduce sum accumulate f32, split divide 1.5
// TEXT-NEXT:     row 12 bytes, packed 24 bytes, 6 of them padding
// TEXT-NEXT:     parameter  offset  elements  from  wire  to
// TEXT-NEXT:     w               0         6  f64   f16   f32
// TEXT-EMPTY:
// TEXT-NEXT: unit unused: no buckets
// TEXT-EMPTY:
// TEXT-NEXT: total
// TEXT-NEXT:   all-gathers               1
// TEXT-NEXT:   reduce-scatters           1
// TEXT-NEXT:   all-reduces               1
// TEXT-NEXT:   launches                  4
// In the order of the ops: the cast reads 24 and writes 12 bytes, concat 64 and
// 512, unchunk 200 (no padding) and 264, chunk_cat 72 and 24, split 12 and 24.
// TEXT-NEXT:   bytes read              372
// TEXT-NEXT:   bytes written           836
// TEXT-NEXT:   bytes of temporaries     12
// TEXT-NEXT:   bytes of padding      1,854
// TEXT-NEXT:   plan hash {{[0-9a-f]+$}}

// JSON:      {
// JSON-NEXT:   "version": 1,
// JSON-NEXT:   "units": [
// JSON-NEXT:     {
// JSON-NEXT:       "name": "layer0",
// JSON-NEXT:       "buckets": [
// JSON-NEXT:         {
// JSON-NEXT:           "name": "layer0_gather",
// JSON-NEXT:           "kind": "gather",
// JSON-NEXT:           "wire": "bytes",
// JSON-NEXT:           "align": 128,
// JSON-NEXT:           "group": null,
// JSON-NEXT:           "members": [
// JSON-NEXT:             {
// JSON-NEXT:               "param": "norm",
// JSON-NEXT:               "offset_bytes": 0,
// JSON-NEXT:               "elements": 3,
// JSON-NEXT:               "dtype": "f32",
// JSON-NEXT:               "from": "f32",
// JSON-NEXT:               "to": "f32"
// JSON-NEXT:             },
// JSON:                  "param": "table",
// JSON:                ],
// JSON-NEXT:           "row_bytes": 512,
// JSON-NEXT:           "row_elements": 512,
// JSON-NEXT:           "packed_bytes": 2048,
// JSON-NEXT:           "padding_bytes": 1848,
// JSON-NEXT:           "reduce_scatter": null,
// JSON-NEXT:           "premul": null,
// JSON-NEXT:           "all_reduce": null,
// JSON-NEXT:           "divide": null,
// JSON-NEXT:           "split_divide": null,
// JSON-NEXT:           "accumulate": null
// JSON-NEXT:         }
// JSON:            "name": "b",
// JSON-NEXT:       "kind": "reduce",
// JSON-NEXT:       "wire": "f16",
// JSON-NEXT:       "align": 1,
// JSON-NEXT:       "group": 7,
// JSON:            "row_bytes": 12,
// JSON-NEXT:       "row_elements": 6,
// JSON-NEXT:       "packed_bytes": 24,
// JSON-NEXT:       "padding_bytes": 6,
// JSON-NEXT:       "reduce_scatter": "premul",
// JSON-NEXT:       "premul": 0.25,
// JSON-NEXT:       "all_reduce": "sum",
// JSON-NEXT:       "divide": 2,
// JSON-NEXT:       "split_divide": 1.5,
// JSON-NEXT:       "accumulate": "f32"
// JSON:          "name": "unused",
// JSON-NEXT:     "buckets": []
// JSON:        "counts": {
// JSON-NEXT:     "all_gather": 1,
// JSON-NEXT:     "reduce_scatter": 1,
// JSON-NEXT:     "all_reduce": 1,
// JSON-NEXT:     "launches": 4
// JSON-NEXT:   },
// JSON-NEXT:   "bytes": {
// JSON-NEXT:     "read": 372,
// JSON-NEXT:     "written": 836,
// JSON-NEXT:     "temporaries": 12
// JSON-NEXT:   },
// JSON-NEXT:   "decisions": [],
// JSON-NEXT:   "plan_hash": "{{[0-9a-f]+}}"
// JSON-NEXT: }

// The program itself is left as it is.
// IR:     plan hash
// IR:     func.func @gather
// IR:       arith.truncf
// IR:       fsdp.all_gather

shard.grid @dp(shape = 4)
shard.grid @hsdp(shape = 2x2)
fsdp.unit @layer0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @norm : tensor<10xf32> precision <param = f32>
  fsdp.param @wq : tensor<8x3xf32>
  fsdp.param @wv : tensor<3x8xf32> shard_dim 1
  fsdp.param @table : tensor<16x2xbf16> frozen
}
fsdp.unit @layer1 on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<3x3xf32>
}
fsdp.unit @unused on @dp {
  fsdp.param @w : tensor<4xf32>
}
fsdp.bucket @b reduce @layer1[@w] : f16 align 1 group 7
fsdp.bucket @layer0_gather gather @layer0[@norm, @wq, @wv, @table] : bytes
func.func @gather(%n: tensor<3xf32>, %q: tensor<2x3xf32>, %v: tensor<3x2xf32>, %t: tensor<4x2xbf16>)
    -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xf32>) {
  %h = arith.truncf %v : tensor<3x2xf32> to tensor<3x2xbf16>
  %f = fsdp.concat %n, %q, %h, %t into @layer0_gather
      : (tensor<3xf32>, tensor<2x3xf32>, tensor<3x2xbf16>, tensor<4x2xbf16>) -> tensor<512xi8>
  %g = fsdp.all_gather %f of @layer0_gather : (tensor<512xi8>) -> tensor<4x512xi8>
  %w:4 = fsdp.unchunk %g of @layer0_gather
      : (tensor<4x512xi8>) -> (tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xf32>)
  return %w#0, %w#1, %w#2, %w#3 : tensor<10xf32>, tensor<8x3xbf16>, tensor<3x8xbf16>, tensor<16x2xf32>
}
func.func @reduce(%g: tensor<3x3xf64>) -> tensor<2x3xf32> {
  %b = fsdp.chunk_cat %g into @b divide 2.0 : (tensor<3x3xf64>) -> tensor<2x6xf16>
  %r = fsdp.reduce_scatter premul 0.25 accumulate f32 %b of @b : (tensor<2x6xf16>) -> tensor<6xf16>
  %a = fsdp.all_reduce sum accumulate f32 %r of @b : (tensor<6xf16>) -> tensor<6xf16>
  %s = fsdp.split %a of @b divide 1.5 : (tensor<6xf16>) -> tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}
