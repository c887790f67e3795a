//===- Pipelines.cpp - which passes run, and in which order ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pass with the reason why it stands where it stands. At every border
// between stages fsdp-verify-stage checks what the passes before have promised.
// No pass needs canonicalisation before it or is harmed by it.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Transforms/BufferizableOpInterfaceImpl.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/Transforms/SubsetOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;
using namespace mlir::fsdp;

/// From stage explicit to packed.
static void addPackingPasses(OpPassManager &manager,
                             const FsdpOptimizeOptions &options) {
  // Casts are still ops of their own here, so that a member's operand can move
  // to the merged op whatever its dtype; afterwards there is one local op per
  // bucket to fold them into.
  FormBucketsPassOptions form;
  form.scope = options.scope;
  form.maxBytes = llvm::to_vector(ArrayRef<int64_t>(options.maxBytes));
  form.maxElements = llvm::to_vector(ArrayRef<int64_t>(options.maxElements));
  form.gather = options.gather;
  form.order = options.order;
  form.policy = options.policy;
  manager.addPass(createFormBucketsPass(form));

  // Last, because it looks only at what is beside a local op, and what
  // stands there is final now.
  manager.addPass(createFuseCastsPass());
  manager.addPass(createVerifyStagePass({Stage::Packed}));
}

void mlir::fsdp::buildFsdpOptimizePipeline(OpPassManager &manager,
                                           const FsdpOptimizeOptions &options) {
  // The input first, while every mistake is still where it was made.
  manager.addPass(createVerifyStagePass({Stage::Input}));

  // Before anything else, because all that follows reads dtypes off the
  // parameters, and the result must not depend on which pass looked first.
  ResolvePrecisionPassOptions resolve;
  resolve.profile = options.profile;
  manager.addPass(createResolvePrecisionPass(resolve));

  // The only pass that gives unit ops their meaning. It makes the naive form
  // and no choices, so that opt-level 0 is the reference for all that follows.
  ExpandUnitsPassOptions expand;
  expand.unused = options.unused;
  expand.accumulate = options.accumulate;
  expand.average = options.average;
  expand.align = options.align;
  manager.addPass(createExpandUnitsPass(expand));
  // A module may declare one unit and spell out another one.
  manager.addPass(createVerifyStagePass({Stage::Explicit, /*mixed=*/true}));
  if (options.optLevel == OptLevel::Packed)
    addPackingPasses(manager, options);

  // The proof is about what is issued, so no pass that moves or merges
  // collectives may follow. What follows anyway, of another compiler, is found
  // out by the seal.
  if (options.verifyCollectives)
    manager.addPass(createVerifyCollectivesPass());
  SealPassOptions seal;
  seal.drop = !options.verifyCollectives;
  manager.addPass(createSealPass(seal));
}

void mlir::fsdp::registerFsdpPipelines() {
  PassPipelineRegistration<FsdpOptimizeOptions>(
      "fsdp-optimize",
      "from declared units to the fewest collectives and temporaries",
      buildFsdpOptimizePipeline);
  PassPipelineRegistration<FsdpToCpuOptions>(
      "fsdp-to-cpu", "from explicit or packed IR to the LLVM dialect",
      buildFsdpToCpuPipeline);
  PassPipelineRegistration<FsdpToCudaOptions>(
      "fsdp-to-cuda",
      "from packed IR to the LLVM dialect and kernels for a GPU",
      buildFsdpToCudaPipeline);
}

void mlir::fsdp::registerFsdpPipelineDialects(DialectRegistry &registry) {
  // What programs are written in beside our ops, and what passes make.
  registry.insert<FsdpDialect, affine::AffineDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, cf::ControlFlowDialect,
                  func::FuncDialect, gpu::GPUDialect, index::IndexDialect,
                  linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                  shard::ShardDialect, tensor::TensorDialect, ub::UBDialect,
                  vector::VectorDialect>();
  registerShardGridExternalModel(registry);
  // Inlining: a program may be in several functions.
  func::registerInlinerExtension(registry);
  LLVM::registerInlinerInterface(registry);
  // Bufferization, and what it asks about sizes and subsets.
  registerBufferizableOpInterfaceExternalModels(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerSubsetOpInterfaceExternalModels(registry);
  affine::registerValueBoundsOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  memref::registerValueBoundsOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerValueBoundsOpInterfaceExternalModels(registry);
  // Buffer deallocation.
  arith::registerBufferDeallocationOpInterfaceExternalModels(registry);
  cf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  gpu::registerBufferDeallocationOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  memref::registerAllocationOpInterfaceExternalModels(registry);
  // convert-to-llvm, for the host and for kernels.
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  // Kernels are compiled in the middle of a pipeline.
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}
