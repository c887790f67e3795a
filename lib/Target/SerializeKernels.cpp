//===- SerializeKernels.cpp - kernels to PTX or machine code --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's pass, which looks for libdevice before it knows whether a kernel
// needs it. Ours do not: they call no function of the mathematical library. So
// that it is missing is no error, and whoever reads the log of a compilation
// that succeeded must not find one.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Target/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SERIALIZEKERNELSPASS
#include "fsdp/Target/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;

/// Upstream's words for a toolkit, or a libdevice in it, that is not there.
static bool missesToolkit(Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  return StringRef(text).starts_with("CUDA path: ") ||
         StringRef(text).starts_with("LibDevice path: ");
}

namespace {
struct SerializeKernelsPass
    : fsdp::impl::SerializeKernelsPassBase<SerializeKernelsPass> {
  using Base::Base;
  void runOnOperation() override {
    GpuModuleToBinaryPassOptions options;
    options.compilationTarget = format;
    options.toolkitPath = toolkit;
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createGpuModuleToBinaryPass(options));
    ScopedDiagnosticHandler handler(&getContext(), [](Diagnostic &diagnostic) {
      return success(missesToolkit(diagnostic));
    });
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
};
} // namespace
