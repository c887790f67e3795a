// RUN: split-file %s %t
// RUN: fsdp-opt %t/limit.mlir --fsdp-form-buckets=max-bytes=512 --remarks-filter=fsdp --remark-policy=all --verify-diagnostics | FileCheck %s --check-prefix=LIMIT
// RUN: fsdp-opt %t/limit.mlir --fsdp-form-buckets=max-bytes=512 --fsdp-form-buckets=max-bytes=512 | FileCheck %s --check-prefix=LIMIT
// RUN: fsdp-opt %t/limit.mlir --fsdp-form-buckets=max-bytes=511,768,4000 | FileCheck %s --check-prefix=LIST
// RUN: fsdp-opt %t/sizes.mlir --fsdp-resolve-precision --fsdp-expand-units=align=1 --fsdp-form-buckets=max-bytes=40 | FileCheck %s --check-prefix=CAP10
// RUN: fsdp-opt %t/sizes.mlir --fsdp-resolve-precision --fsdp-expand-units=align=1 --fsdp-form-buckets=max-bytes=8000 | FileCheck %s --check-prefix=CAP2000

// The limit itself is allowed; an item above it has a bucket of its own, which
// keeps its name; a closed bucket stays closed. Running again changes nothing.
// LIMIT:      fsdp.bucket @u_gather gather @u[@a, @b] : f32
// LIMIT-NEXT: fsdp.bucket @c gather @u[@c] : f32
// LIMIT-NEXT: fsdp.bucket @big gather @u[@big] : f32
// LIMIT-NEXT: fsdp.bucket @d gather @u[@d] : f32
// LIMIT:      concat %{{.+}}, %{{.+}} into @u_gather
// LIMIT-NEXT: all_gather %{{.+}} of @u_gather
// LIMIT-NEXT: unchunk %{{.+}} of @u_gather
// LIMIT-NEXT: concat %{{.+}} into @c
// LIMIT-NEXT: all_gather %{{.+}} of @c
// LIMIT-NEXT: unchunk %{{.+}} of @c
// LIMIT-NEXT: concat %{{.+}} into @big

// Bucket i obeys limit i, or the last.
// LIST:      fsdp.bucket @a gather @u[@a] : f32
// LIST-NEXT: fsdp.bucket @u_gather gather @u[@b, @c] : f32
// LIST-NEXT: fsdp.bucket @u_gather_0 gather @u[@big, @d] : f32

// CAP10:      fsdp.bucket @equal_gather gather @equal[@equal.a, @equal.b] : bf16 align 1
// CAP10-NEXT: fsdp.bucket @equal.c_gather
// CAP10:      fsdp.bucket @large_first.a_gather
// CAP10-NEXT: fsdp.bucket @large_first_gather gather @large_first[@large_first.b, @large_first.c]
// CAP10:      fsdp.bucket @large_between.a_gather
// CAP10-NEXT: fsdp.bucket @large_between.b_gather
// CAP10-NEXT: fsdp.bucket @large_between.c_gather
// CAP10:      fsdp.bucket @five_gather gather @five[@five.a, @five.b]
// CAP10-NEXT: fsdp.bucket @five.c_gather
// CAP10-NEXT: fsdp.bucket @five.d_gather
// CAP10-NEXT: fsdp.bucket @five.e_gather

// CAP2000:      fsdp.bucket @pairs_gather gather @pairs[@pairs.a, @pairs.b]
// CAP2000-NEXT: fsdp.bucket @pairs_gather_0 gather @pairs[@pairs.c, @pairs.d]
// CAP2000-NEXT: fsdp.bucket @pairs.e_gather
// CAP2000:      fsdp.bucket @second.a_gather
// CAP2000-NEXT: fsdp.bucket @second_gather gather @second[@second.b, @second.c]

//--- limit.mlir
// Sizes 256, 256, 256, 2048, 256.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @a : tensor<64xf32>
  fsdp.param @b : tensor<64xf32>
  fsdp.param @c : tensor<64xf32>
  fsdp.param @big : tensor<512xf32>
  fsdp.param @d : tensor<8xf32>
}
fsdp.bucket @a gather @u[@a] : f32
fsdp.bucket @b gather @u[@b] : f32
fsdp.bucket @c gather @u[@c] : f32
fsdp.bucket @big gather @u[@big] : f32
fsdp.bucket @d gather @u[@d] : f32
func.func @negative_R2_size_limit(%a: tensor<32xf32>, %b: tensor<32xf32>, %c: tensor<32xf32>,
                               %big: tensor<256xf32>, %d: tensor<4xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<512xf32>, tensor<8xf32>) {
  %fa = fsdp.concat %a into @a : (tensor<32xf32>) -> tensor<32xf32>
  // expected-remark @below {{[Passed] FormBuckets | Category:fsdp | Reason="formed u_gather", bytes=512, names="a,b"}}
  %ga = fsdp.all_gather %fa of @a : (tensor<32xf32>) -> tensor<2x32xf32>
  %wa = fsdp.unchunk %ga of @a : (tensor<2x32xf32>) -> tensor<64xf32>
  %fb = fsdp.concat %b into @b : (tensor<32xf32>) -> tensor<32xf32>
  %gb = fsdp.all_gather %fb of @b : (tensor<32xf32>) -> tensor<2x32xf32>
  %wb = fsdp.unchunk %gb of @b : (tensor<2x32xf32>) -> tensor<64xf32>
  %fc = fsdp.concat %c into @c : (tensor<32xf32>) -> tensor<32xf32>
  // expected-remark @below {{[Missed] FormBuckets | Category:fsdp | Reason=size-limit, bytes=768, limit=512, names="b,c"}}
  %gc = fsdp.all_gather %fc of @c : (tensor<32xf32>) -> tensor<2x32xf32>
  %wc = fsdp.unchunk %gc of @c : (tensor<2x32xf32>) -> tensor<64xf32>
  %fbig = fsdp.concat %big into @big : (tensor<256xf32>) -> tensor<256xf32>
  // expected-remark @below {{[Missed] FormBuckets | Category:fsdp | Reason=oversize, bytes=2048, limit=512, names="c,big"}}
  %gbig = fsdp.all_gather %fbig of @big : (tensor<256xf32>) -> tensor<2x256xf32>
  %wbig = fsdp.unchunk %gbig of @big : (tensor<2x256xf32>) -> tensor<512xf32>
  %fd = fsdp.concat %d into @d : (tensor<4xf32>) -> tensor<32xf32>
  // expected-remark @below {{Reason=oversize, bytes=2048, limit=512, names="big,d"}}
  %gd = fsdp.all_gather %fd of @d : (tensor<32xf32>) -> tensor<2x32xf32>
  %wd = fsdp.unchunk %gd of @d : (tensor<2x32xf32>) -> tensor<8xf32>
  return %wa, %wb, %wc, %wbig, %wd : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<512xf32>, tensor<8xf32>
}

//--- sizes.mlir
// An item of size n is tensor<2nxbf16>, 4n bytes packed; a cap of n is 4n bytes.
shard.grid @dp(shape = 2)
fsdp.unit @equal on @dp {
  fsdp.param @equal.a : tensor<10xbf16>
  fsdp.param @equal.b : tensor<10xbf16>
  fsdp.param @equal.c : tensor<2xbf16>
}
fsdp.unit @large_first on @dp {
  fsdp.param @large_first.a : tensor<24xbf16>
  fsdp.param @large_first.b : tensor<6xbf16>
  fsdp.param @large_first.c : tensor<6xbf16>
}
fsdp.unit @large_between on @dp {
  fsdp.param @large_between.a : tensor<6xbf16>
  fsdp.param @large_between.b : tensor<24xbf16>
  fsdp.param @large_between.c : tensor<6xbf16>
}
fsdp.unit @five on @dp {
  fsdp.param @five.a : tensor<6xbf16>
  fsdp.param @five.b : tensor<8xbf16>
  fsdp.param @five.c : tensor<10xbf16>
  fsdp.param @five.d : tensor<40xbf16>
  fsdp.param @five.e : tensor<2xbf16>
}
fsdp.unit @pairs on @dp {
  fsdp.param @pairs.a : tensor<800xbf16>
  fsdp.param @pairs.b : tensor<1800xbf16>
  fsdp.param @pairs.c : tensor<1600xbf16>
  fsdp.param @pairs.d : tensor<200xbf16>
  fsdp.param @pairs.e : tensor<4200xbf16>
}
fsdp.unit @second on @dp {
  fsdp.param @second.a : tensor<800xbf16>
  fsdp.param @second.b : tensor<3400xbf16>
  fsdp.param @second.c : tensor<200xbf16>
}
func.func @small(%a: tensor<5xbf16>, %b: tensor<5xbf16>, %c: tensor<1xbf16>,
                 %d: tensor<12xbf16>, %e: tensor<3xbf16>, %f: tensor<3xbf16>,
                 %g: tensor<4xbf16>, %h: tensor<20xbf16>) {
  %0:3 = fsdp.unshard @equal(%a, %b, %c) : (tensor<5xbf16>, tensor<5xbf16>, tensor<1xbf16>)
      -> (tensor<10xbf16>, tensor<10xbf16>, tensor<2xbf16>)
  %1:3 = fsdp.unshard @large_first(%d, %e, %f) : (tensor<12xbf16>, tensor<3xbf16>, tensor<3xbf16>)
      -> (tensor<24xbf16>, tensor<6xbf16>, tensor<6xbf16>)
  %2:3 = fsdp.unshard @large_between(%e, %d, %f) : (tensor<3xbf16>, tensor<12xbf16>, tensor<3xbf16>)
      -> (tensor<6xbf16>, tensor<24xbf16>, tensor<6xbf16>)
  %3:5 = fsdp.unshard @five(%e, %g, %a, %h, %c)
      : (tensor<3xbf16>, tensor<4xbf16>, tensor<5xbf16>, tensor<20xbf16>, tensor<1xbf16>)
      -> (tensor<6xbf16>, tensor<8xbf16>, tensor<10xbf16>, tensor<40xbf16>, tensor<2xbf16>)
  return
}
func.func @large(%a: tensor<400xbf16>, %b: tensor<900xbf16>, %c: tensor<800xbf16>,
                 %d: tensor<100xbf16>, %e: tensor<2100xbf16>, %f: tensor<1700xbf16>) {
  %0:5 = fsdp.unshard @pairs(%a, %b, %c, %d, %e)
      : (tensor<400xbf16>, tensor<900xbf16>, tensor<800xbf16>, tensor<100xbf16>, tensor<2100xbf16>)
      -> (tensor<800xbf16>, tensor<1800xbf16>, tensor<1600xbf16>, tensor<200xbf16>, tensor<4200xbf16>)
  %1:3 = fsdp.unshard @second(%a, %f, %d) : (tensor<400xbf16>, tensor<1700xbf16>, tensor<100xbf16>)
      -> (tensor<800xbf16>, tensor<3400xbf16>, tensor<200xbf16>)
  return
}
