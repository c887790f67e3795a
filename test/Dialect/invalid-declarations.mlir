// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// One case per message, under the label of the constraint in FsdpOps.td.

//===----------------------------------------------------------------------===//
// fsdp.unit
//===----------------------------------------------------------------------===//

// unit C1
// expected-error @below {{unit 'u' is on the unknown grid @dp}}
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unit C1: the unit is a symbol table of its own; its grid is not looked for in it.
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' is on the unknown grid @w}}
fsdp.unit @u on @w { fsdp.param @w : tensor<4xf32> }

// -----

// unit C1
// expected-note @below {{it is 'func.func'}}
func.func private @dp()
// expected-error @below {{unit 'u' is on @dp, which is not a grid}}
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unit C1
// expected-note @below {{the grid}}
shard.grid @dp(shape = 2x?)
// expected-error @below {{unit 'u' needs a grid of static, positive sizes, but axis 1 of @dp is dynamic}}
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unit C1
// expected-note @below {{the grid}}
shard.grid @dp(shape = 0x2)
// expected-error @below {{unit 'u' needs a grid of static, positive sizes, but axis 0 of @dp is 0}}
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unit C1
shard.grid @dp(shape = 65536x65536)
// expected-error @below {{unit 'u' is on @dp, which has 2^31 ranks or more}}
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// unit C2
shard.grid @dp(shape = 2x4)
// expected-error @below {{unit 'u' names axis 2 in its axes, but @dp has 2}}
fsdp.unit @u on @dp shard_axes [2] { fsdp.param @w : tensor<4xf32> }

// -----

// unit C2
shard.grid @dp(shape = 2x4)
// expected-error @below {{unit 'u' names axis -1 in its axes, but @dp has 2}}
fsdp.unit @u on @dp replicate_axes [-1] { fsdp.param @w : tensor<4xf32> }

// -----

// unit C2
shard.grid @dp(shape = 2x4)
// expected-error @below {{unit 'u' names axis 1 twice in its axes}}
fsdp.unit @u on @dp shard_axes [1, 0, 1] { fsdp.param @w : tensor<4xf32> }

// -----

// unit C2
shard.grid @dp(shape = 2x4)
// expected-error @below {{unit 'u' names axis 0 twice in its axes}}
fsdp.unit @u on @dp shard_axes [0, 1] replicate_axes [0] { fsdp.param @w : tensor<4xf32> }

// -----

// unit C3
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the param dtype 'i32', expected the floating-point dtype f16, bf16, f32 or f64}}
fsdp.unit @u on @dp precision <param = i32> { fsdp.param @w : tensor<4xf32> }

// -----

// unit C3
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the reduce dtype 'f8E5M2', expected the floating-point dtype}}
fsdp.unit @u on @dp precision <reduce = f8E5M2> { fsdp.param @w : tensor<4xf32> }

// -----

// unit C3
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the grad dtype 'tf32', expected the floating-point dtype}}
fsdp.unit @u on @dp precision <grad = tf32> { fsdp.param @w : tensor<4xf32> }

// -----

// unit C4
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the divide factor 0.000000e+00 : f64, expected a positive finite one}}
fsdp.unit @u on @dp divide_factor 0.0 { fsdp.param @w : tensor<4xf32> }

// -----

// unit C4
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the divide factor -2.000000e+00 : f64, expected a positive finite one}}
fsdp.unit @u on @dp divide_factor -2.0 { fsdp.param @w : tensor<4xf32> }

// -----

// unit C4: infinity
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the divide factor 0x7FF0000000000000 : f64, expected a positive finite one}}
fsdp.unit @u on @dp divide_factor 0x7FF0000000000000 { fsdp.param @w : tensor<4xf32> }

// -----

// unit C4: NaN
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the divide factor 0x7FF8000000000000 : f64, expected a positive finite one}}
fsdp.unit @u on @dp divide_factor 0x7FF8000000000000 { fsdp.param @w : tensor<4xf32> }

// -----

// unit C5
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has no parameter}}
fsdp.unit @u on @dp {}

// -----

// unit C5
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' may hold fsdp.param ops only}}
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  // expected-note @below {{but holds 'test.op'}}
  "test.op"() : () -> ()
}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-note @below {{see existing symbol definition here}}
  fsdp.param @w : tensor<4xf32>
  // expected-error @below {{redefinition of symbol named 'w'}}
  fsdp.param @w : tensor<4xf32>
}

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'reduction' [sum, avg, premul]}}
fsdp.unit @u on @dp reduction max { fsdp.param @w : tensor<4xf32> }

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u' has the reduction premul, expected sum or avg: a divide_factor says by what it divides}}
fsdp.unit @u on @dp reduction premul { fsdp.param @w : tensor<4xf32> }

// -----

//===----------------------------------------------------------------------===//
// fsdp.param
//===----------------------------------------------------------------------===//

// expected-error @below {{expects parent op 'fsdp.unit'}}
fsdp.param @w : tensor<4xf32>

// -----

// param C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'logit_scale' has rank 0, expected rank 1 or more: declare it as 'tensor<1xf32>'}}
  fsdp.param @logit_scale : tensor<f32>
}

// -----

// param C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the type 'tensor<4x?xf32>', expected a static shape}}
  fsdp.param @w : tensor<4x?xf32>
}

// -----

// param C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{type attribute of ranked tensor}}
  fsdp.param @w : tensor<*xf32>
}

// -----

// param C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the type 'tensor<4xf32, "rowwise">', expected no encoding}}
  fsdp.param @w : tensor<4xf32, "rowwise">
}

// -----

// param C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the element type 'i1', expected f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f8E4M3FN, f8E5M2, f8E8M0FNU, f6E2M3FN, f6E3M2FN or f4E2M1FN}}
  fsdp.param @w : tensor<4xi1> frozen
}

// -----

// param C2
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the element type 'complex<f32>', expected}}
  fsdp.param @w : tensor<4xcomplex<f32>>
}

// -----

// param C2: files have integers without a sign and ordinary ones.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the element type 'si8', expected}}
  fsdp.param @w : tensor<4xsi8> frozen
}

// -----

// param C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has shard_dim 2, expected a dimension of 'tensor<4x3xf32>'}}
  fsdp.param @w : tensor<4x3xf32> shard_dim 2
}

// -----

// param C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has shard_dim -1, expected a dimension of 'tensor<4x3xf32>'}}
  fsdp.param @w : tensor<4x3xf32> shard_dim -1
}

// -----

// param C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'ids' has the element type 'i64', which cannot be reduced, expected it to be frozen}}
  fsdp.param @ids : tensor<4xi64>
}

// -----

// param C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the param dtype 'i32', expected the floating-point dtype f16, bf16, f32 or f64}}
  fsdp.param @w : tensor<4xf32> precision <param = i32>
}

// -----

// param C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the reduce dtype 'i8', expected the floating-point dtype}}
  fsdp.param @w : tensor<4xf32> precision <reduce = i8>
}

// -----

// param C5: the storage dtype is a param dtype, and nothing else.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'ids' has the grad dtype 'i64', expected the floating-point dtype}}
  fsdp.param @ids : tensor<4xi64> precision <param = i64, grad = i64> frozen
}

// -----

// param C6
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the type 'tensor<2147483648x2147483648xf32>', which is too large: expected fewer than 2^62 elements}}
  fsdp.param @w : tensor<2147483648x2147483648xf32>
}

// -----

//===----------------------------------------------------------------------===//
// fsdp.bucket
//===----------------------------------------------------------------------===//

// bucket C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has no member, expected at least one}}
fsdp.bucket @b reduce @u[] : f32

// -----

// bucket C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has the unknown member @u::@v}}
fsdp.bucket @b reduce @u[@w, @v] : f32

// -----

// bucket C1
// expected-error @below {{bucket 'b' has the unknown member @u::@w}}
fsdp.bucket @b reduce @u[@w] : f32

// -----

// bucket C1: what is no parameter is no member.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has the unknown member @u}}
"fsdp.bucket"() <{sym_name = "b", kind = 0 : i32, members = [@u], wire = f32}> : () -> ()

// -----

// bucket C1
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.unit @v on @dp { fsdp.param @x : tensor<4xf32> }
// expected-error @below {{bucket 'b' has the member @u::@w twice}}
fsdp.bucket @b gather @u[@w], @v[@x], @u[@w] : f32

// -----

// bucket C2: two grids of one shape are two sets of ranks.
shard.grid @dp(shape = 4)
shard.grid @other(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
fsdp.unit @v on @other { fsdp.param @x : tensor<4xf32> }
// expected-error @below {{bucket 'b' has members on different grids or axes: 'w' and 'x'}}
fsdp.bucket @b gather @u[@w], @v[@x] : f32

// -----

// bucket C2
shard.grid @hsdp(shape = 4x4)
fsdp.unit @u on @hsdp shard_axes [0] { fsdp.param @w : tensor<4xf32> }
fsdp.unit @v on @hsdp shard_axes [1] { fsdp.param @x : tensor<4xf32> }
// expected-error @below {{bucket 'b' has members on different grids or axes: 'w' and 'x'}}
fsdp.bucket @b gather @u[@w], @v[@x] : f32

// -----

// bucket C2
shard.grid @hsdp(shape = 4x4)
fsdp.unit @u on @hsdp shard_axes [0] { fsdp.param @w : tensor<4xf32> }
fsdp.unit @v on @hsdp shard_axes [0] replicate_axes [1] { fsdp.param @x : tensor<4xf32> }
// expected-error @below {{bucket 'b' has members on different grids or axes: 'w' and 'x'}}
fsdp.bucket @b reduce @u[@w], @v[@x] : f32

// -----

// bucket C2: a unit that stands behind its bucket is verified later.
shard.grid @dp(shape = 65536x65536x65536x65536)
// expected-error @below {{bucket 'b' has a member of unit 'u', whose grid or axes are not valid}}
fsdp.bucket @b gather @u[@w] : f32
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// bucket C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has the wire type bytes, expected the floating-point dtype f16, bf16, f32 or f64}}
fsdp.bucket @b reduce @u[@w] : bytes

// -----

// bucket C3
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has the wire type 'i32', expected the floating-point dtype f16, bf16, f32 or f64, or bytes}}
fsdp.bucket @b gather @u[@w] : i32

// -----

// bucket C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @base : tensor<4xf32> frozen
}
// expected-error @below {{bucket 'b' reduces the member 'base', which is frozen and has no gradient}}
fsdp.bucket @b reduce @u[@w, @base] : f32

// -----

// bucket C4: an opaque member is frozen.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @ids : tensor<4xi64> frozen
}
// expected-error @below {{bucket 'b' reduces the member 'ids', which is frozen and has no gradient}}
fsdp.bucket @b reduce @u[@w, @ids] : f32

// -----

// bucket C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
  fsdp.param @ids : tensor<4xi64> frozen
}
// expected-error @below {{bucket 'b' has the wire type 'f32', but its member 'ids' of 'i64' cannot be cast: expected bytes}}
fsdp.bucket @b gather @u[@w, @ids] : f32

// -----

// bucket C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has align 3, expected a power of two from 1 to 4096}}
fsdp.bucket @b gather @u[@w] : f32 align 3

// -----

// bucket C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has align 48, expected a power of two from 1 to 4096}}
fsdp.bucket @b gather @u[@w] : f32 align 48

// -----

// bucket C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has align 0, expected a power of two from 1 to 4096}}
fsdp.bucket @b gather @u[@w] : f32 align 0

// -----

// bucket C5
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket 'b' has align 8192, expected a power of two from 1 to 4096}}
fsdp.bucket @b gather @u[@w] : f32 align 8192

// -----

// bucket C6
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<1152921504606846976xf64> }
// expected-error @below {{bucket 'b' is too large: expected fewer than 2^62 bytes}}
fsdp.bucket @b gather @u[@w] : f64

// -----

// bucket C6: one element per rank over many ranks.
shard.grid @dp(shape = 1048576)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4398046511104x1xf32> shard_dim 1 }
// expected-error @below {{bucket 'b' has the member 'w', which is too large}}
fsdp.bucket @b gather @u[@w] : f32

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'kind' [gather, reduce]}}
fsdp.bucket @b scatter @u[@w] : f32

// -----

// unit C6
shard.grid @dp(shape = 4)
// expected-error @below {{unit 'u\FF' has a name that cannot be written into a plan, expected UTF-8 without zero bytes}}
fsdp.unit @"u\FF" on @dp { fsdp.param @w : tensor<4xf32> }

// -----

// param C8: the first half of a character.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'gew\C3' has a name that cannot be written into a plan, expected UTF-8 without zero bytes}}
  fsdp.param @"gew\C3" : tensor<4xf32>
}

// -----

// param C8: C would end the name here.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'a\00b' has a name that cannot be written into a plan, expected UTF-8 without zero bytes}}
  fsdp.param @"a\00b" : tensor<4xf32>
}

// -----

// bucket C7
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp { fsdp.param @w : tensor<4xf32> }
// expected-error @below {{bucket '\80' has a name that cannot be written into a plan, expected UTF-8 without zero bytes}}
fsdp.bucket @"\80" gather @u[@w] : f32

// -----

//===----------------------------------------------------------------------===//
// Attributes of other dialects' ops
//===----------------------------------------------------------------------===//

// expected-error @below {{expects 'fsdp.profile' to be "per_param", "stable" or "grad_dtype", but it is "fast"}}
module attributes {fsdp.profile = "fast"} {}

// -----

// expected-error @below {{expects 'fsdp.profile' to be "per_param", "stable" or "grad_dtype", but it is 1 : i64}}
module attributes {fsdp.profile = 1} {}

// -----

// expected-error @below {{is neither a module nor a unit, but has 'fsdp.profile'}}
func.func private @f() attributes {fsdp.profile = "stable"}

// -----

// expected-error @below {{does not expect the attribute 'fsdp.prfile'}}
module attributes {fsdp.prfile = "stable"} {}

// -----

// expected-error @below {{expects 'fsdp.shard' of argument 0 to name a parameter as @unit::@param, but it is @u}}
func.func private @f(tensor<4xf32> {fsdp.shard = @u})

// -----

// expected-error @below {{expects 'fsdp.full' of result 0 to name a parameter as @unit::@param, but it is "u.w"}}
func.func private @f() -> (tensor<4xf32> {fsdp.full = "u.w"})

// -----

// expected-error @below {{does not expect the attribute 'fsdp.gradient' on argument 1}}
func.func private @f(f32, tensor<4xf32> {fsdp.gradient = @u::@w})

// -----

// expected-error @below {{expects 'fsdp.uniform' to be a unit attribute of an argument}}
func.func private @f(index {fsdp.uniform = true})

// -----

// expected-error @below {{expects 'fsdp.uniform' to be a unit attribute of an argument}}
func.func private @f() -> (index {fsdp.uniform})

// -----

// expected-error @below {{expects 'fsdp.plan_hash' to be 16 hexadecimal digits, but it is "0123456789abcdeg"}}
module attributes {fsdp.plan_hash = "0123456789abcdeg"} {}

// -----

// expected-error @below {{expects 'fsdp.plan_hash' to be 16 hexadecimal digits, but it is 1 : i64}}
module attributes {fsdp.plan_hash = 1} {}

// -----

// expected-error @below {{is not a module, but has 'fsdp.plan_hash'}}
func.func private @f() attributes {fsdp.plan_hash = "0123456789abcdef"}

// -----

shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{has no name, which files and messages need}}
  fsdp.param @"" : tensor<4xf32>
}

// -----

shard.grid @dp(shape = 4)
// expected-error @below {{has no name}}
fsdp.unit @"" on @dp {
  fsdp.param @w : tensor<4xf32>
}

// -----

// param C4
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has the element type 'ui8', which cannot be reduced, expected it to be frozen}}
  fsdp.param @w : tensor<4xui8>
}

// -----

// param C7
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has rows of 7 elements of 'f4E2M1FN', expected rows of whole bytes}}
  fsdp.param @w : tensor<4x7xf4E2M1FN> frozen
}

// -----

// param C7
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has rows of 6 elements of 'f6E2M3FN', expected rows of whole bytes}}
  fsdp.param @w : tensor<4x6xf6E2M3FN> frozen
}

// -----

// param C7: 10 elements are 5 bytes, 3 are not.
shard.grid @dp(shape = 4)
fsdp.unit @u on @dp {
  // expected-error @below {{parameter 'w' has shards of 'tensor<2x3xf4E2M1FN>' on 4 ranks, expected rows of whole bytes}}
  fsdp.param @w : tensor<2x10xf4E2M1FN> shard_dim 1 frozen
}
