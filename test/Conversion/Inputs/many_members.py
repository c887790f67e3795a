"""Prints a module that packs a bucket of many small members."""

import sys

count = int(sys.argv[1])
names = ", ".join(f"@p{i}" for i in range(count))
arguments = ", ".join(f"%g{i}: memref<4xf32>" for i in range(count))
values = ", ".join(f"%g{i}" for i in range(count))
types = ", ".join(["memref<4xf32>"] * count)
print("shard.grid @dp(shape = 2)\nfsdp.unit @u on @dp {")
for i in range(count):
    print(f"  fsdp.param @p{i} : tensor<4xf32>")
print(f"""}}
fsdp.bucket @b reduce @u[{names}] : f32 align 8
func.func @pack({arguments}, %b: memref<2x{2 * count}xf32>) {{
  fsdp.chunk_cat {values} into @b outs(%b : memref<2x{2 * count}xf32>)
      : ({types}) -> ()
  return
}}""")
