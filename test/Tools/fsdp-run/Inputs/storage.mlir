// Each storage type, on 3 ranks with shares that are not equal, along rows and
// across them.
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp precision <param = bf16> {
  fsdp.param @u8 : tensor<20x1xui8> frozen
  fsdp.param @u16 : tensor<5xui16> frozen
  fsdp.param @u32 : tensor<4xui32> frozen
  fsdp.param @u64 : tensor<2x2xui64> shard_dim 1 frozen
  fsdp.param @norm : tensor<7xf32>
  fsdp.param @scale : tensor<5x2xf8E8M0FNU> frozen
  fsdp.param @f4 : tensor<5x6xf4E2M1FN> frozen
  fsdp.param @wide : tensor<3x10xf4E2M1FN> shard_dim 1 frozen
  fsdp.param @e2m3 : tensor<4x8xf6E2M3FN> frozen
  fsdp.param @e3m2 : tensor<12xf6E3M2FN> frozen
}
func.func @gather(%0: tensor<7x1xui8> {fsdp.shard = @u::@u8}, %1: tensor<2xui16> {fsdp.shard = @u::@u16},
                  %2: tensor<2xui32> {fsdp.shard = @u::@u32}, %3: tensor<2x1xui64> {fsdp.shard = @u::@u64},
                  %4: tensor<3xf32> {fsdp.shard = @u::@norm}, %5: tensor<2x2xf8E8M0FNU> {fsdp.shard = @u::@scale},
                  %6: tensor<2x6xf4E2M1FN> {fsdp.shard = @u::@f4}, %7: tensor<3x4xf4E2M1FN> {fsdp.shard = @u::@wide},
                  %8: tensor<2x8xf6E2M3FN> {fsdp.shard = @u::@e2m3}, %9: tensor<4xf6E3M2FN> {fsdp.shard = @u::@e3m2})
  -> (tensor<20x1xui8> {fsdp.full = @u::@u8}, tensor<5xui16> {fsdp.full = @u::@u16},
      tensor<4xui32> {fsdp.full = @u::@u32}, tensor<2x2xui64> {fsdp.full = @u::@u64},
      tensor<7xbf16> {fsdp.full = @u::@norm}, tensor<5x2xf8E8M0FNU> {fsdp.full = @u::@scale},
      tensor<5x6xf4E2M1FN> {fsdp.full = @u::@f4}, tensor<3x10xf4E2M1FN> {fsdp.full = @u::@wide},
      tensor<4x8xf6E2M3FN> {fsdp.full = @u::@e2m3}, tensor<12xf6E3M2FN> {fsdp.full = @u::@e3m2}) {
  %f:10 = fsdp.unshard @u(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9)
    : (tensor<7x1xui8>, tensor<2xui16>, tensor<2xui32>, tensor<2x1xui64>, tensor<3xf32>, tensor<2x2xf8E8M0FNU>,
       tensor<2x6xf4E2M1FN>, tensor<3x4xf4E2M1FN>, tensor<2x8xf6E2M3FN>, tensor<4xf6E3M2FN>)
    -> (tensor<20x1xui8>, tensor<5xui16>, tensor<4xui32>, tensor<2x2xui64>, tensor<7xbf16>, tensor<5x2xf8E8M0FNU>,
        tensor<5x6xf4E2M1FN>, tensor<3x10xf4E2M1FN>, tensor<4x8xf6E2M3FN>, tensor<12xf6E3M2FN>)
  return %f#0, %f#1, %f#2, %f#3, %f#4, %f#5, %f#6, %f#7, %f#8, %f#9
    : tensor<20x1xui8>, tensor<5xui16>, tensor<4xui32>, tensor<2x2xui64>, tensor<7xbf16>, tensor<5x2xf8E8M0FNU>,
      tensor<5x6xf4E2M1FN>, tensor<3x10xf4E2M1FN>, tensor<4x8xf6E2M3FN>, tensor<12xf6E3M2FN>
}
func.func @shards(%0: tensor<7x1xui8> {fsdp.shard = @u::@u8}, %6: tensor<2x6xf4E2M1FN> {fsdp.shard = @u::@f4},
                  %7: tensor<3x4xf4E2M1FN> {fsdp.shard = @u::@wide}, %9: tensor<4xf6E3M2FN> {fsdp.shard = @u::@e3m2})
  -> (tensor<7x1xui8> {fsdp.shard = @u::@u8}, tensor<2x6xf4E2M1FN> {fsdp.shard = @u::@f4},
      tensor<3x4xf4E2M1FN> {fsdp.shard = @u::@wide}, tensor<4xf6E3M2FN> {fsdp.shard = @u::@e3m2}) {
  return %0, %6, %7, %9 : tensor<7x1xui8>, tensor<2x6xf4E2M1FN>, tensor<3x4xf4E2M1FN>, tensor<4xf6E3M2FN>
}
