// A decoder layer of Llama-3-8B as one sharded unit. 9 parameters, 218,112,000
// elements, 4 ranks; stored in f32, computed in bf16, reduced in f32.
//
// Written by: scripts/make-examples --ranks 4 llama3_8b_layer
//
//   fsdp-opt examples/llama3_8b_layer.mlir --fsdp-optimize --fsdp-print-plan -o /dev/null
//   fsdp-compile examples/llama3_8b_layer.mlir --target=cpu -o llama3_8b_layer.so
//   fsdp-run llama3_8b_layer.so --ranks=4 --entry=backward --fill=1

shard.grid @dp(shape = 4)

fsdp.unit @model.layers.0 on @dp precision <param = bf16, reduce = f32> {
  fsdp.param @model.layers.0.self_attn.q_proj.weight : tensor<4096x4096xf32>
  fsdp.param @model.layers.0.self_attn.k_proj.weight : tensor<1024x4096xf32>
  fsdp.param @model.layers.0.self_attn.v_proj.weight : tensor<1024x4096xf32>
  fsdp.param @model.layers.0.self_attn.o_proj.weight : tensor<4096x4096xf32>
  fsdp.param @model.layers.0.mlp.gate_proj.weight : tensor<14336x4096xf32>
  fsdp.param @model.layers.0.mlp.up_proj.weight : tensor<14336x4096xf32>
  fsdp.param @model.layers.0.mlp.down_proj.weight : tensor<4096x14336xf32>
  fsdp.param @model.layers.0.input_layernorm.weight : tensor<4096xf32>
  fsdp.param @model.layers.0.post_attention_layernorm.weight : tensor<4096xf32>
}

// Shards in, full parameters out.
func.func @forward(
    %self_attn.q_proj.weight: tensor<1024x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.self_attn.q_proj.weight},
    %self_attn.k_proj.weight: tensor<256x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.self_attn.k_proj.weight},
    %self_attn.v_proj.weight: tensor<256x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.self_attn.v_proj.weight},
    %self_attn.o_proj.weight: tensor<1024x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.self_attn.o_proj.weight},
    %mlp.gate_proj.weight: tensor<3584x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.mlp.gate_proj.weight},
    %mlp.up_proj.weight: tensor<3584x4096xf32> {fsdp.shard = @model.layers.0::@model.layers.0.mlp.up_proj.weight},
    %mlp.down_proj.weight: tensor<1024x14336xf32> {fsdp.shard = @model.layers.0::@model.layers.0.mlp.down_proj.weight},
    %input_layernorm.weight: tensor<1024xf32> {fsdp.shard = @model.layers.0::@model.layers.0.input_layernorm.weight},
    %post_attention_layernorm.weight: tensor<1024xf32> {fsdp.shard = @model.layers.0::@model.layers.0.post_attention_layernorm.weight})
    -> (tensor<4096x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.self_attn.q_proj.weight},
        tensor<1024x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.self_attn.k_proj.weight},
        tensor<1024x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.self_attn.v_proj.weight},
        tensor<4096x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.self_attn.o_proj.weight},
        tensor<14336x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.mlp.gate_proj.weight},
        tensor<14336x4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.mlp.up_proj.weight},
        tensor<4096x14336xbf16> {fsdp.full = @model.layers.0::@model.layers.0.mlp.down_proj.weight},
        tensor<4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.input_layernorm.weight},
        tensor<4096xbf16> {fsdp.full = @model.layers.0::@model.layers.0.post_attention_layernorm.weight}) {
  %full0:9 = fsdp.unshard @model.layers.0(
      %self_attn.q_proj.weight,
      %self_attn.k_proj.weight,
      %self_attn.v_proj.weight,
      %self_attn.o_proj.weight,
      %mlp.gate_proj.weight,
      %mlp.up_proj.weight,
      %mlp.down_proj.weight,
      %input_layernorm.weight,
      %post_attention_layernorm.weight)
    : (tensor<1024x4096xf32>,
       tensor<256x4096xf32>,
       tensor<256x4096xf32>,
       tensor<1024x4096xf32>,
       tensor<3584x4096xf32>,
       tensor<3584x4096xf32>,
       tensor<1024x14336xf32>,
       tensor<1024xf32>,
       tensor<1024xf32>)
   -> (tensor<4096x4096xbf16>,
       tensor<1024x4096xbf16>,
       tensor<1024x4096xbf16>,
       tensor<4096x4096xbf16>,
       tensor<14336x4096xbf16>,
       tensor<14336x4096xbf16>,
       tensor<4096x14336xbf16>,
       tensor<4096xbf16>,
       tensor<4096xbf16>)
  return %full0#0,
         %full0#1,
         %full0#2,
         %full0#3,
         %full0#4,
         %full0#5,
         %full0#6,
         %full0#7,
         %full0#8
    : tensor<4096x4096xbf16>,
      tensor<1024x4096xbf16>,
      tensor<1024x4096xbf16>,
      tensor<4096x4096xbf16>,
      tensor<14336x4096xbf16>,
      tensor<14336x4096xbf16>,
      tensor<4096x14336xbf16>,
      tensor<4096xbf16>,
      tensor<4096xbf16>
}

// Full gradients in, averaged shards out; the last unit comes first.
func.func @backward(
    %self_attn.q_proj.weight.grad: tensor<4096x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.self_attn.q_proj.weight},
    %self_attn.k_proj.weight.grad: tensor<1024x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.self_attn.k_proj.weight},
    %self_attn.v_proj.weight.grad: tensor<1024x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.self_attn.v_proj.weight},
    %self_attn.o_proj.weight.grad: tensor<4096x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.self_attn.o_proj.weight},
    %mlp.gate_proj.weight.grad: tensor<14336x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.mlp.gate_proj.weight},
    %mlp.up_proj.weight.grad: tensor<14336x4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.mlp.up_proj.weight},
    %mlp.down_proj.weight.grad: tensor<4096x14336xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.mlp.down_proj.weight},
    %input_layernorm.weight.grad: tensor<4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.input_layernorm.weight},
    %post_attention_layernorm.weight.grad: tensor<4096xbf16> {fsdp.full_grad = @model.layers.0::@model.layers.0.post_attention_layernorm.weight})
    -> (tensor<1024x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.self_attn.q_proj.weight},
        tensor<256x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.self_attn.k_proj.weight},
        tensor<256x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.self_attn.v_proj.weight},
        tensor<1024x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.self_attn.o_proj.weight},
        tensor<3584x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.mlp.gate_proj.weight},
        tensor<3584x4096xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.mlp.up_proj.weight},
        tensor<1024x14336xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.mlp.down_proj.weight},
        tensor<1024xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.input_layernorm.weight},
        tensor<1024xf32> {fsdp.shard_grad = @model.layers.0::@model.layers.0.post_attention_layernorm.weight}) {
  %shard0:9 = fsdp.reduce_grads @model.layers.0[
      @model.layers.0.self_attn.q_proj.weight,
      @model.layers.0.self_attn.k_proj.weight,
      @model.layers.0.self_attn.v_proj.weight,
      @model.layers.0.self_attn.o_proj.weight,
      @model.layers.0.mlp.gate_proj.weight,
      @model.layers.0.mlp.up_proj.weight,
      @model.layers.0.mlp.down_proj.weight,
      @model.layers.0.input_layernorm.weight,
      @model.layers.0.post_attention_layernorm.weight](
      %self_attn.q_proj.weight.grad,
      %self_attn.k_proj.weight.grad,
      %self_attn.v_proj.weight.grad,
      %self_attn.o_proj.weight.grad,
      %mlp.gate_proj.weight.grad,
      %mlp.up_proj.weight.grad,
      %mlp.down_proj.weight.grad,
      %input_layernorm.weight.grad,
      %post_attention_layernorm.weight.grad)
    : (tensor<4096x4096xbf16>,
       tensor<1024x4096xbf16>,
       tensor<1024x4096xbf16>,
       tensor<4096x4096xbf16>,
       tensor<14336x4096xbf16>,
       tensor<14336x4096xbf16>,
       tensor<4096x14336xbf16>,
       tensor<4096xbf16>,
       tensor<4096xbf16>)
   -> (tensor<1024x4096xf32>,
       tensor<256x4096xf32>,
       tensor<256x4096xf32>,
       tensor<1024x4096xf32>,
       tensor<3584x4096xf32>,
       tensor<3584x4096xf32>,
       tensor<1024x14336xf32>,
       tensor<1024xf32>,
       tensor<1024xf32>)
  return %shard0#0,
         %shard0#1,
         %shard0#2,
         %shard0#3,
         %shard0#4,
         %shard0#5,
         %shard0#6,
         %shard0#7,
         %shard0#8
    : tensor<1024x4096xf32>,
      tensor<256x4096xf32>,
      tensor<256x4096xf32>,
      tensor<1024x4096xf32>,
      tensor<3584x4096xf32>,
      tensor<3584x4096xf32>,
      tensor<1024x14336xf32>,
      tensor<1024xf32>,
      tensor<1024xf32>
}
