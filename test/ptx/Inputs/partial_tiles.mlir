// Tiles that end inside of vectors, in padding and in runs, in both directions.
shard.grid @dp(shape = 3)
fsdp.unit @u on @dp {
  fsdp.param @vector : tensor<307xf32> precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @runs : tensor<5x36x8xf32> shard_dim 1 precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @odd : tensor<7x5xf32> shard_dim 1 precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @full : tensor<12300xf32> precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @short : tensor<2xf32> precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @long : tensor<9002xf32> precision <param = bf16, reduce = bf16, grad = f32>
  fsdp.param @block : tensor<3x100x32xf32> shard_dim 1 precision <param = bf16, reduce = bf16, grad = f32>
}
fsdp.bucket @r reduce @u[@vector, @runs, @odd, @full, @short, @long, @block] : bf16 align 32
fsdp.bucket @g gather @u[@vector, @runs, @odd, @full, @short, @long, @block] : bf16 align 32

func.func @pack(%vector: memref<307xf32>, %runs: memref<5x36x8xf32>, %odd: memref<7x5xf32>, %full: memref<12300xf32>, %short: memref<2xf32>, %long: memref<9002xf32>, %block: memref<3x100x32xf32>, %rows: memref<3x11008xbf16>) {
  fsdp.chunk_cat %vector, %runs, %odd, %full, %short, %long, %block into @r
      outs(%rows : memref<3x11008xbf16>)
      : (memref<307xf32>, memref<5x36x8xf32>, memref<7x5xf32>, memref<12300xf32>, memref<2xf32>, memref<9002xf32>, memref<3x100x32xf32>) -> ()
  return
}

func.func @unpack(%vector: memref<307xf32>, %runs: memref<5x36x8xf32>, %odd: memref<7x5xf32>, %full: memref<12300xf32>, %short: memref<2xf32>, %long: memref<9002xf32>, %block: memref<3x100x32xf32>, %rows: memref<3x11008xbf16>) {
  fsdp.unchunk %rows of @g
      outs(%vector, %runs, %odd, %full, %short, %long, %block
      : memref<307xf32>, memref<5x36x8xf32>, memref<7x5xf32>, memref<12300xf32>, memref<2xf32>, memref<9002xf32>, memref<3x100x32xf32>)
      : (memref<3x11008xbf16>) -> ()
  return
}
