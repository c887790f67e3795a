// Packing a mixed unit for 8 ranks: 50,364,448 elements, four bf16 matrices
// beside small f32 parameters. One entry per way to do it; no entry communicates,
// so one rank can run it.
//
//   scripts/bench        compiles this file and compares the entries' speed

shard.grid @dp(shape = 8)
fsdp.unit @u on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @gate_up : tensor<6144x2048xf32>
  fsdp.param @q : tensor<2048x2048xf32>
  fsdp.param @mlp_in : tensor<8192x2048xf32>
  fsdp.param @mlp_out : tensor<2048x8192xf32>
  fsdp.param @norm_a : tensor<2048xf32> precision <param = f32>
  fsdp.param @norm_b : tensor<2048xf32> precision <param = f32>
  fsdp.param @norm_c : tensor<2048xf32> precision <param = f32>
  fsdp.param @norm_d : tensor<2048xf32> precision <param = f32>
  fsdp.param @bias : tensor<32xf32> precision <param = f32>
  fsdp.param @router : tensor<6144x4xf32> precision <param = f32>
}
fsdp.unit @v on @dp precision <reduce = bf16> {
  fsdp.param @v.gate_up : tensor<6144x2048xf32>
  fsdp.param @v.q : tensor<2048x2048xf32>
  fsdp.param @v.mlp_in : tensor<8192x2048xf32>
  fsdp.param @v.mlp_out : tensor<2048x8192xf32>
  fsdp.param @v.norm_a : tensor<2048xf32>
  fsdp.param @v.norm_b : tensor<2048xf32>
  fsdp.param @v.norm_c : tensor<2048xf32>
  fsdp.param @v.norm_d : tensor<2048xf32>
  fsdp.param @v.bias : tensor<32xf32>
  fsdp.param @v.router : tensor<6144x4xf32>
}
fsdp.bucket @reduce_f32 reduce @u[@gate_up, @q, @mlp_in, @mlp_out, @norm_a, @norm_b, @norm_c, @norm_d, @bias, @router] : f32
fsdp.bucket @reduce_bf16 reduce @v[@v.gate_up, @v.q, @v.mlp_in, @v.mlp_out, @v.norm_a, @v.norm_b, @v.norm_c, @v.norm_d, @v.bias, @v.router] : bf16

// Casts while it packs.
func.func @fused(
    %gate_up: tensor<6144x2048xbf16>,
    %q: tensor<2048x2048xbf16>,
    %mlp_in: tensor<8192x2048xbf16>,
    %mlp_out: tensor<2048x8192xbf16>,
    %norm_a: tensor<2048xf32>,
    %norm_b: tensor<2048xf32>,
    %norm_c: tensor<2048xf32>,
    %norm_d: tensor<2048xf32>,
    %bias: tensor<32xf32>,
    %router: tensor<6144x4xf32>) -> tensor<8x6295584xf32> {
  %packed = fsdp.chunk_cat %gate_up, %q, %mlp_in, %mlp_out, %norm_a, %norm_b, %norm_c, %norm_d, %bias, %router into @reduce_f32
      : (tensor<6144x2048xbf16>, tensor<2048x2048xbf16>, tensor<8192x2048xbf16>, tensor<2048x8192xbf16>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<32xf32>, tensor<6144x4xf32>) -> tensor<8x6295584xf32>
  return %packed : tensor<8x6295584xf32>
}

// What has to come before @same_type where nothing is fused.
func.func @cast(
    %gate_up: tensor<6144x2048xbf16>,
    %q: tensor<2048x2048xbf16>,
    %mlp_in: tensor<8192x2048xbf16>,
    %mlp_out: tensor<2048x8192xbf16>)
    -> (tensor<6144x2048xf32>, tensor<2048x2048xf32>, tensor<8192x2048xf32>, tensor<2048x8192xf32>) {
  %gate_up_f32 = arith.extf %gate_up : tensor<6144x2048xbf16> to tensor<6144x2048xf32>
  %q_f32 = arith.extf %q : tensor<2048x2048xbf16> to tensor<2048x2048xf32>
  %mlp_in_f32 = arith.extf %mlp_in : tensor<8192x2048xbf16> to tensor<8192x2048xf32>
  %mlp_out_f32 = arith.extf %mlp_out : tensor<2048x8192xbf16> to tensor<2048x8192xf32>
  return %gate_up_f32, %q_f32, %mlp_in_f32, %mlp_out_f32
      : tensor<6144x2048xf32>, tensor<2048x2048xf32>, tensor<8192x2048xf32>, tensor<2048x8192xf32>
}

// Packs what is f32 already.
func.func @same_type(
    %gate_up: tensor<6144x2048xf32>,
    %q: tensor<2048x2048xf32>,
    %mlp_in: tensor<8192x2048xf32>,
    %mlp_out: tensor<2048x8192xf32>,
    %norm_a: tensor<2048xf32>,
    %norm_b: tensor<2048xf32>,
    %norm_c: tensor<2048xf32>,
    %norm_d: tensor<2048xf32>,
    %bias: tensor<32xf32>,
    %router: tensor<6144x4xf32>) -> tensor<8x6295584xf32> {
  %packed = fsdp.chunk_cat %gate_up, %q, %mlp_in, %mlp_out, %norm_a, %norm_b, %norm_c, %norm_d, %bias, %router into @reduce_f32
      : (tensor<6144x2048xf32>, tensor<2048x2048xf32>, tensor<8192x2048xf32>, tensor<2048x8192xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<32xf32>, tensor<6144x4xf32>) -> tensor<8x6295584xf32>
  return %packed : tensor<8x6295584xf32>
}

// Narrows while it packs.
func.func @narrow(
    %gate_up: tensor<6144x2048xf32>,
    %q: tensor<2048x2048xf32>,
    %mlp_in: tensor<8192x2048xf32>,
    %mlp_out: tensor<2048x8192xf32>,
    %norm_a: tensor<2048xf32>,
    %norm_b: tensor<2048xf32>,
    %norm_c: tensor<2048xf32>,
    %norm_d: tensor<2048xf32>,
    %bias: tensor<32xf32>,
    %router: tensor<6144x4xf32>) -> tensor<8x6295616xbf16> {
  %packed = fsdp.chunk_cat %gate_up, %q, %mlp_in, %mlp_out, %norm_a, %norm_b, %norm_c, %norm_d, %bias, %router into @reduce_bf16
      : (tensor<6144x2048xf32>, tensor<2048x2048xf32>, tensor<8192x2048xf32>, tensor<2048x8192xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<32xf32>, tensor<6144x4xf32>) -> tensor<8x6295616xbf16>
  return %packed : tensor<8x6295616xbf16>
}
