//===- KernelModule.cpp - where kernels live, and their launches ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/KernelModule.h"

#include "fsdp/Codegen/GpuBuilder.h"
#include "fsdp/Codegen/RuntimeCalls.h"

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

int64_t KernelModule::maxAddresses() {
  if (isEmulated())
    return kMaxAddresses;
  // Whoever has made the module has chosen the version.
  getParent();
  std::optional<unsigned> version = parsePtxFeatures(features);
  if (ArrayAttr targets = gpuModule.getTargetsAttr())
    for (Attribute attribute : targets)
      if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute))
        version = parsePtxFeatures(target.getFeatures());
  int64_t room = getMaxParameterBytes(version.value_or(chip->ptxVersion)) -
                 getParameterBytes(0);
  return std::min<int64_t>(kMaxAddresses, room / 8);
}

void KernelModule::run(ImplicitLocOpBuilder &b, LLVM::LLVMFuncOp kernel,
                       Value words, Value operand, int64_t columns,
                       int64_t rows, bool rowsFirst) {
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
  if (rowsFirst)
    std::swap(columns, rows);
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
                                     int64_t parameterBytes,
                                     std::string &features) {
  const GpuChip *chip = GpuChip::lookup(name);
  if (!chip) {
    module.emitError("no kernels for chip '")
        << name << "', expected one of " << GpuChip::listNames();
    return nullptr;
  }
  if (features.empty())
    features = getPtxFeatures(chip->getPtxVersion(parameterBytes));
  std::optional<unsigned> version = parsePtxFeatures(features);
  if (!version || *version < chip->ptxVersion) {
    module.emitError("kernels for chip '")
        << chip->name << "' have the features '" << features << "', expected '"
        << getPtxFeatures(chip->ptxVersion) << "' or a later version of PTX";
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
