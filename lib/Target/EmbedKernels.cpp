//===- EmbedKernels.cpp - the compiled kernels as a constant --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/GpuChip.h"
#include "fsdp/Codegen/RuntimeCalls.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Target/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_EMBEDKERNELSPASS
#include "fsdp/Target/Passes.h.inc"
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

//===----------------------------------------------------------------------===//
// The least driver
//===----------------------------------------------------------------------===//

/// The oldest driver that this library works with.
static constexpr int32_t kLeastDriver = 12000;

/// The assembler that made machine code: where gpu-module-to-binary finds it.
static std::string findAssembler(StringRef toolkit) {
  SmallVector<std::string> folders;
  if (!toolkit.empty())
    folders.push_back(toolkit.str());
  else if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  else
    for (const char *variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
      if (const char *value = std::getenv(variable))
        folders.push_back(value);
  for (StringRef folder : folders) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, "bin", "ptxas");
    if (llvm::sys::fs::can_execute(path))
      return path.str().str();
  }
  return {};
}

/// The CUDA that `assembler` belongs to, which it says itself: 13000 for
/// "release 13.0". No value if it does not.
static std::optional<int32_t> getAssemblerVersion(StringRef assembler) {
  SmallString<128> output;
  if (assembler.empty() ||
      llvm::sys::fs::createTemporaryFile("fsdp-assembler", "txt", output))
    return std::nullopt;
  llvm::FileRemover remove(output);
  std::optional<StringRef> redirects[] = {"", output.str(), output.str()};
  llvm::sys::ExecuteAndWait(assembler, {assembler, "--version"}, std::nullopt,
                            redirects);
  auto text = llvm::MemoryBuffer::getFile(output);
  if (!text)
    return std::nullopt;
  StringRef rest = (*text)->getBuffer().split("release ").second;
  int32_t major, minor;
  if (rest.consumeInteger(10, major) || !rest.consume_front(".") ||
      rest.consumeInteger(10, minor))
    return std::nullopt;
  return major * 1000 + minor * 10;
}

/// The first driver that loads `object`. PTX asks for one that knows its
/// version, machine code for one of the major version of the toolkit that made
/// it; an image with both is for the driver that takes both.
static FailureOr<int32_t> getLeastDriver(gpu::BinaryOp binary,
                                         gpu::ObjectAttr object,
                                         StringRef toolkit) {
  int32_t driver = kLeastDriver;
  if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()))
    if (auto version = parsePtxFeatures(target.getFeatures()))
      driver = std::max(driver, getPtxDriver(*version));
  if (object.getFormat() == gpu::CompilationTarget::Assembly)
    return driver;
  std::string assembler = findAssembler(toolkit);
  std::optional<int32_t> version = getAssemblerVersion(assembler);
  if (!version)
    return binary.emitOpError("cannot be embedded: the assembler '")
           << assembler << "' does not say which CUDA it belongs to";
  return std::max(driver, *version / 1000 * 1000);
}

/// Adds the least driver to the manifest of an artefact, a JSON object.
static void describeDriver(ModuleOp module, int32_t driver) {
  auto manifest =
      module.lookupSymbol<LLVM::GlobalOp>(FSDPRT_ARTEFACT_MANIFEST_SYMBOL);
  auto value = manifest
                   ? dyn_cast_or_null<StringAttr>(manifest.getValueOrNull())
                   : StringAttr();
  StringRef text = value ? value.getValue() : StringRef();
  if (!text.consume_back(StringRef("}\0", 2)))
    return;
  std::string described = (text + ",\"driver\":" + Twine(driver) + "}").str();
  described.push_back('\0');
  OpBuilder builder(module.getContext());
  manifest.setValueAttr(builder.getStringAttr(described));
  manifest.setGlobalType(
      LLVM::LLVMArrayType::get(builder.getI8Type(), described.size()));
}

namespace {
struct EmbedKernelsPass : fsdp::impl::EmbedKernelsPassBase<EmbedKernelsPass> {
  using Base::Base;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto binaries = llvm::to_vector(module.getOps<gpu::BinaryOp>());
    if (binaries.empty()) {
      describeDriver(module, kLeastDriver);
      return;
    }
    gpu::BinaryOp binary = binaries.front();
    if (binaries.size() > 1 || binary.getObjects().size() != 1) {
      binary.emitOpError("cannot be embedded: expected one binary with one "
                         "object, but there are ")
          << binaries.size() << " with " << binary.getObjects().size();
      return signalPassFailure();
    }
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    FailureOr<int32_t> driver = getLeastDriver(binary, object, toolkit);
    if (failed(driver))
      return signalPassFailure();
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
    define(module, kKernelDriverSymbol, builder.getI32Type(),
           builder.getI32IntegerAttr(*driver));
    describeDriver(module, *driver);
    binary.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};
} // namespace
