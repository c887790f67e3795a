//===- ToCpu.cpp - fsdp-to-cpu, pass by pass ------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Tensors become buffers that live from their first to their last use.
static void addBufferization(OpPassManager &manager) {
  manager.addPass(createConvertElementwiseToLinalgPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.bufferAlignment = 128; // what the runtime gives
  manager.addPass(bufferization::createOneShotBufferizePass(options));
  // An entry writes its results where the caller wants them. This stands before
  // the deallocations: it looks for buffers that are allocated and returned.
  manager.addPass(createResultsToArgumentsPass());
  manager.addPass(createGatherInPlacePass());
  // One computation of a rank's coordinates instead of one per gather.
  manager.addPass(createCSEPass());
  bufferization::buildBufferDeallocationPipeline(manager);
  // Deallocations stand at the ends of blocks; move them to the last uses.
  manager.addNestedPass<func::FuncOp>(
      bufferization::createOptimizeAllocationLivenessPass());
}

/// Whatever still has structure becomes plain loops over scalars and vectors.
static void addLoops(OpPassManager &manager) {
  manager.addPass(createLinalgGeneralizeNamedOpsPass());
  manager.addPass(createCollapseLoopsPass());
  manager.addPass(createConvertLinalgToLoopsPass());
  manager.addPass(createLowerAffinePass());
  // Behind the loops, whose bodies hold the arithmetic, and before anything
  // could fold two roundings into one.
  manager.addPass(createExpandFloatsPass());
}

/// From loops and calls to the LLVM dialect.
static void addLlvm(OpPassManager &manager) {
  manager.addPass(createConvertVectorToSCFPass());
  manager.addPass(createSCFToControlFlowPass());
  // Only a flat control flow can return early.
  manager.addPass(createPropagateStatusPass());
  // Views become address arithmetic, which the conversion below expects; this
  // brings affine.apply.
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createVerifyLoweredPass());
}

void mlir::fsdp::buildFsdpToCpuPipeline(OpPassManager &manager,
                                        const FsdpToCpuOptions &options) {
  VerifyLoweredPassOptions input;
  input.input = true;
  manager.addPass(createVerifyLoweredPass(input));
  // While the signatures still say which tensor is what.
  manager.addPass(createDeclareEntriesPass());
  addBufferization(manager);
  manager.addPass(createVerifyStagePass({Stage::Buffered}));
  FsdpToTilesPassOptions tiles;
  tiles.target = options.emulate ? TileTarget::Emulate : TileTarget::Cpu;
  manager.addPass(createFsdpToTilesPass(tiles));
  manager.addPass(createFsdpToRuntimePass());
  addLoops(manager);
  addLlvm(manager);
}
