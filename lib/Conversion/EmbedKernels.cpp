//===- EmbedKernels.cpp - the compiled kernels as a constant --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "fsdp/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EMBEDKERNELSPASS
#include "fsdp/Conversion/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Defines the constant `name`, which launches may have declared.
static void define(ModuleOp module, StringRef name, Type type,
                   Attribute value) {
  if (Operation *declaration = SymbolTable::lookupSymbolIn(module, name))
    declaration->erase();
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  // Aligned as a fatbin's header asks.
  LLVM::GlobalOp::create(top, module.getLoc(), type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, name, value,
                         /*alignment=*/16);
}

namespace {
struct EmbedKernelsPass : fsdp::impl::EmbedKernelsPassBase<EmbedKernelsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto binaries = llvm::to_vector(module.getOps<gpu::BinaryOp>());
    if (binaries.empty())
      return;
    gpu::BinaryOp binary = binaries.front();
    if (binaries.size() > 1 || binary.getObjects().size() != 1) {
      binary.emitOpError("cannot be embedded: expected one binary with one "
                         "object, but there are ")
          << binaries.size() << " with " << binary.getObjects().size();
      return signalPassFailure();
    }
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    std::string bytes = object.getObject().getValue().str();
    bool isText = object.getFormat() == gpu::CompilationTarget::Assembly;
    if (isText && (bytes.empty() || bytes.back() != '\0'))
      bytes.push_back('\0');
    OpBuilder builder(&getContext());
    define(module, kKernelImageSymbol,
           LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size()),
           builder.getStringAttr(bytes));
    define(module, kKernelImageBytesSymbol, builder.getI64Type(),
           builder.getI64IntegerAttr(bytes.size()));
    binary.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};
} // namespace
