//===- PipelinesFuzzer.cpp - any IR through every pass --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte chooses a pipeline, the rest is IR. A pipeline succeeds, or
// says why not; what comes out of it is verified, and can be read again.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Target/Passes.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cstdlib>

using namespace mlir;

/// In the order of bytes in the corpus: append, never insert.
static const char *const pipelines[] = {
    "fsdp-optimize",
    "fsdp-optimize{opt-level=0}",
    "fsdp-optimize,fsdp-to-cpu",
    "fsdp-optimize{opt-level=0},fsdp-to-cpu",
    "fsdp-optimize,fsdp-to-cpu{emulate=true}",
    "fsdp-optimize,fsdp-to-cuda",
    "fsdp-to-cpu",
    "fsdp-to-cuda",
    "fsdp-resolve-precision,fsdp-expand-units{unused=zero},fsdp-form-buckets",
    "fsdp-form-buckets,fsdp-fuse-casts",
    "fsdp-resolve-precision,fsdp-verify-collectives",
    "fsdp-print-plan",
    "canonicalize,cse",
};

static const DialectRegistry &registry() {
  static DialectRegistry registry;
  static bool once = [] {
    registerAllPasses();
    fsdp::registerFsdpTransformsPasses();
    fsdp::registerFsdpCodegenPasses();
    fsdp::registerFsdpConversionPasses();
    fsdp::registerFsdpTargetPasses();
    fsdp::registerFsdpPipelines();
    fsdp::registerFsdpPipelineDialects(registry);
    return true;
  }();
  (void)once;
  return registry;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const char *pipeline = pipelines[data[0] % std::size(pipelines)];
  // The lexer relies on the final zero of a string.
  std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  MLIRContext context(registry(), MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.printOpOnDiagnostic(false);
  int errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return 0;
  PassManager manager(&context);
  if (failed(parsePassPipeline(pipeline, manager, llvm::nulls())))
    std::abort(); // the list above is wrong
  if (failed(manager.run(*module))) {
    if (!errors) {
      llvm::errs() << pipeline << " failed without a word\n";
      std::abort();
    }
    return 0;
  }
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  if (!parseSourceString<ModuleOp>(printed, &context)) {
    llvm::errs() << pipeline << " made what cannot be read:\n" << printed;
    std::abort();
  }
  return 0;
}
