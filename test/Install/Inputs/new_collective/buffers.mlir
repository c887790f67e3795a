shard.grid @hsdp(shape = 2x4)
fsdp.unit @u on @hsdp shard_axes [1] replicate_axes [0] {
  fsdp.param @w : tensor<8x3xf32> precision <param = f32, reduce = f32, grad = f32>
}
fsdp.bucket @b gather @u[@w] : f32
func.func @start(%g: memref<4x32xf32>, %r: memref<4x32xf32>) {
  test.broadcast_rows %g of @b outs(%r : memref<4x32xf32>) : (memref<4x32xf32>) -> ()
  return
}
