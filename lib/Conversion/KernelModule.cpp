//===- KernelModule.cpp - where kernels live, and their launches ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelModule.h"

#include "GpuBuilder.h"
#include "RuntimeCalls.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

Operation *KernelModule::getParent() {
  if (isEmulated())
    return module;
  if (gpuModule)
    return gpuModule;
  // Another pass may have made it.
  auto known = module.getOps<gpu::GPUModuleOp>();
  if (!known.empty())
    return gpuModule = *known.begin();
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  UnitAttr::get(module.getContext()));
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto target =
      NVVM::NVVMTargetAttr::get(module.getContext(), /*optLevel=*/3,
                                "nvptx64-nvidia-cuda", chip->name, features);
  gpuModule = gpu::GPUModuleOp::create(b, module.getLoc(), "fsdp_kernels",
                                       ArrayRef<Attribute>(target));
  symbolTables.getSymbolTable(module).insert(gpuModule);
  return gpuModule;
}

void KernelModule::run(ImplicitLocOpBuilder &b, LLVM::LLVMFuncOp kernel,
                       Value words, Value operand, int64_t columns,
                       int64_t rows) {
  operand = LLVM::AddrSpaceCastOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), kKernelAddressSpace),
      operand);
  if (isEmulated()) {
    LLVM::CallOp::create(b, kernel, ValueRange{words, operand});
    return;
  }
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value one = index(1);
  gpu::LaunchFuncOp::create(
      b,
      SymbolRefAttr::get(gpuModule.getNameAttr(),
                         {FlatSymbolRefAttr::get(kernel.getNameAttr())}),
      gpu::KernelDim3{index(columns), index(rows), one},
      gpu::KernelDim3{index(kThreads), one, one},
      /*dynamicSharedMemorySize=*/Value(), ValueRange{words, operand});
}

const GpuChip *mlir::fsdp::checkChip(ModuleOp module, StringRef name,
                                     std::string &features) {
  const GpuChip *chip = GpuChip::lookup(name);
  if (!chip) {
    module.emitError("no kernels for chip '")
        << name << "', expected one of " << GpuChip::listNames();
    return nullptr;
  }
  const std::string oldest = chip->getFeatures();
  if (features.empty())
    features = oldest;
  StringRef version = features;
  unsigned number;
  if (!version.consume_front("+ptx") || version.getAsInteger(10, number) ||
      number < chip->ptxVersion) {
    module.emitError("kernels for chip '")
        << chip->name << "' have the features '" << features << "', expected '"
        << oldest << "' or a later version of PTX";
    return nullptr;
  }
  return chip;
}

Value mlir::fsdp::createWordArray(ImplicitLocOpBuilder &b,
                                  FunctionOpInterface function,
                                  ValueRange values) {
  SmallVector<Value> words;
  for (Value value : values)
    words.push_back(
        isa<BaseMemRefType>(value.getType()) ? createPointer(b, value) : value);
  return createAddressArray(b, function, words);
}
