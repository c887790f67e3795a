// RUN: fsdp-opt %s --fsdp-verify-device-memory --split-input-file --verify-diagnostics

// Allocation, views and collectives are the runtime's, and so are copies between
// dense buffers, and constants.
shard.grid @dp(shape = 2)
fsdp.unit @u on @dp {
  fsdp.param @w : tensor<4xf32>
}
fsdp.bucket @b gather @u[@w] : f32 align 1
memref.global "private" constant @c : memref<2xf32> = dense<[1.0, 2.0]>
func.func @runtime(%f: memref<2xf32>) {
  %g = memref.alloc() : memref<2x2xf32>
  %row = memref.subview %g[0, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1]>>
  fsdp.all_gather %f of @b outs(%g : memref<2x2xf32>) : (memref<2xf32>) -> ()
  %c = memref.get_global @c : memref<2xf32>
  memref.copy %c, %row : memref<2xf32> to memref<2xf32, strided<[1]>>
  memref.dealloc %g : memref<2x2xf32>
  return
}

// -----

func.func @negative_load(%f: memref<2xf32>, %i: index) -> f32 {
  // expected-error @below {{has no lowering to cuda: it runs on the host, but the buffer is the device's}}
  %x = memref.load %f[%i] : memref<2xf32>
  return %x : f32
}

// -----

func.func @negative_strided_copy(%f: memref<2xf32, strided<[2]>>, %g: memref<2xf32>) {
  // expected-error @below {{has no lowering to cuda: it runs on the host, but the buffer is the device's}}
  memref.copy %f, %g : memref<2xf32, strided<[2]>> to memref<2xf32>
  return
}

// -----

func.func @negative_stack() {
  // expected-error @below {{has no lowering to cuda: it runs on the host, but the buffer is the device's}}
  %a = memref.alloca() : memref<2xf32>
  return
}

// -----

memref.global "private" @variable : memref<2xf32> = dense<0.0>
func.func @negative_variable(%f: memref<2xf32>) {
  // expected-error @below {{has no lowering to cuda: it runs on the host, but the buffer is the device's}}
  %v = memref.get_global @variable : memref<2xf32>
  memref.copy %v, %f : memref<2xf32> to memref<2xf32>
  return
}
