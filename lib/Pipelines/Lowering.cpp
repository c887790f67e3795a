//===- Lowering.cpp - fsdp-to-cpu and fsdp-to-cuda, pass by pass ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Target/Passes.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Tensors become buffers that live from their first to their last use.
static void addBufferization(OpPassManager &manager) {
  manager.addPass(createConvertElementwiseToLinalgPass());
  // Before there are buffers: a chain that is one op needs none in between, and
  // a constant of equal elements none at all.
  manager.addPass(createFuseElementwisePass());
  // Bufferization needs quadratic time for the arguments and results of a
  // function, so those of the large ones are buffers before.
  manager.addPass(createEntriesToBuffersPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.bufferAlignment = 128; // what the runtime gives
  // A loop may carry on what it has gathered, in a buffer of each iteration.
  options.allowReturnAllocsFromLoops = true;
  manager.addPass(bufferization::createOneShotBufferizePass(options));
  // An entry writes its results where the caller wants them. This stands before
  // the deallocations: it looks for buffers that are allocated and returned.
  manager.addPass(createResultsToArgumentsPass());
  manager.addPass(createGatherInPlacePass());
  // One computation of a rank's coordinates instead of one per gather.
  manager.addPass(createCSEPass());
  manager.addPass(createFreeBuffersPass());
}

/// In one function, whatever still has structure becomes plain loops over
/// scalars and small vectors, and views become address arithmetic.
static void addLoops(OpPassManager &function) {
  function.addPass(createLinalgGeneralizeNamedOpsPass());
  function.addPass(createCollapseLoopsPass());
  function.addPass(createConvertLinalgToLoopsPass());
  function.addPass(createLowerAffinePass());
  // What no library has, by ops that one has, in the same dtype.
  function.addPass(math::createMathExpandOpsPass(
      {/*opMnemonics=*/{"ctlz", "fpowi", "rsqrt"}}));
  // Behind the loops, whose bodies hold the arithmetic, and before anything
  // could fold two roundings into one.
  function.addPass(createExpandFloatsPass());
  function.addPass(createConvertVectorToSCFPass());
  // Address arithmetic is what the conversion to LLVM expects; this brings
  // affine.apply.
  function.addPass(memref::createExpandStridedMetadataPass());
  function.addPass(createLowerAffinePass());
}

/// From loops and calls to the LLVM dialect.
static void addLlvm(OpPassManager &manager) {
  // First, so that all that follows has functions of bounded size. One after
  // the other fits the caches, and on several cores they run side by side.
  manager.addPass(createSplitFunctionsPass());
  addLoops(manager.nest<func::FuncOp>());
  addLoops(manager.nest<LLVM::LLVMFuncOp>()); // of tiles
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createSCFToControlFlowPass());
  // Only a flat control flow can return early. Late, because it gives each call
  // a block of its own.
  manager.addPass(createPropagateStatusPass());
  // Calls first: this pass keeps a table of symbols, the general one looks
  // through the module for each call.
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createBf16MemoryPass());
  manager.addPass(createVerifyLoweredPass());
}

/// From values to buffers and calls of the runtime, with local ops as tiles for
/// `target`.
static void addTiles(OpPassManager &manager,
                     const FsdpToTilesPassOptions &tiles) {
  bool hasKernels = tiles.target != TileTarget::Cpu;
  VerifyLoweredPassOptions input;
  input.input = true;
  input.kernels = hasKernels;
  manager.addPass(createVerifyLoweredPass(input));
  // While the signatures still say which tensor is what.
  DeclareEntriesPassOptions entries;
  entries.target = tiles.target == TileTarget::Cuda ? "cuda" : "cpu";
  manager.addPass(createDeclareEntriesPass(entries));
  // Buffers have an address for each element.
  manager.addPass(createPackStoragePass());
  addBufferization(manager);
  manager.addPass(createVerifyStagePass({Stage::Buffered}));
  manager.addPass(createFsdpToTilesPass(tiles));
  FsdpToRuntimePassOptions runtime;
  if (!hasKernels) {
    manager.addPass(createShareLoopsPass());
  } else {
    // After the local ops, which may have asked for copies of strided buffers.
    manager.addPass(createElementwiseToKernelsPass(
        {tiles.target, tiles.chip, tiles.features}));
    // What is left would run on the host, on the device's buffers.
    manager.addPass(createVerifyDeviceMemoryPass());
    runtime.deviceMemory = true;
  }
  // Launches take the size of a kernel's parameters from the kernel, so they
  // are lowered before it is compiled.
  manager.addPass(createFsdpToRuntimePass(runtime));
}

void mlir::fsdp::buildFsdpToCpuPipeline(OpPassManager &manager,
                                        const FsdpToCpuOptions &options) {
  FsdpToTilesPassOptions tiles;
  tiles.target = options.emulate ? TileTarget::Emulate : TileTarget::Cpu;
  addTiles(manager, tiles);
  addLlvm(manager);
}

/// Kernels to code for the chip, and that to a constant of the module.
static void addKernels(OpPassManager &manager,
                       const FsdpToCudaOptions &options) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createConvertNVVMToLLVMPass()); // predicated stores
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createConvertGpuOpsToNVVMOps()); // arith and cf too
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  SerializeKernelsPassOptions serialize;
  serialize.format = options.format;
  serialize.toolkit = options.toolkit;
  manager.addPass(createSerializeKernelsPass(serialize));
  manager.addPass(createEmbedKernelsPass({options.toolkit}));
}

void mlir::fsdp::buildFsdpToCudaPipeline(OpPassManager &manager,
                                         const FsdpToCudaOptions &options) {
  FsdpToTilesPassOptions tiles;
  tiles.target = TileTarget::Cuda;
  tiles.chip = options.chip;
  tiles.features = options.features;
  addTiles(manager, tiles);
  addKernels(manager, options);
  addLlvm(manager);
}
