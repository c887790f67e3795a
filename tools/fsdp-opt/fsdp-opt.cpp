//===- fsdp-opt.cpp - runs passes on IR files -----------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/Interrupt.h"
#include "fsdp/Support/OutputFile.h"
#include "fsdp/Support/Version.h"

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Target/Passes.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "fsdp-opt") << message << "\n";
  return 1;
}

/// What mlir-opt does, except that an old output lives until there is a new
/// one.
static int run(llvm::StringRef input, llvm::StringRef output,
               mlir::DialectRegistry &registry,
               const mlir::MlirOptMainConfig &config) {
  std::string message;
  auto source = mlir::openInputFile(input, &message);
  if (!source)
    return fail(message);
  if (output == "-") {
    bool failed = mlir::failed(
        mlir::MlirOptMain(llvm::outs(), std::move(source), registry, config));
    if (llvm::Error error = mlir::fsdp::flushStandardOutput())
      return fail(llvm::toString(std::move(error)));
    return failed;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (mlir::failed(
          mlir::MlirOptMain(stream, std::move(source), registry, config)))
    return 1;
  if (llvm::Error error = mlir::fsdp::writeFile(output, text))
    return fail(llvm::toString(std::move(error)));
  return 0;
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  // A program may have ops of any dialect of upstream.
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::fsdp::registerFsdpPipelineDialects(registry);
  mlir::registerAllPasses();
  mlir::fsdp::registerFsdpTransformsPasses();
  mlir::fsdp::registerFsdpCodegenPasses();
  mlir::fsdp::registerFsdpConversionPasses();
  mlir::fsdp::registerFsdpTargetPasses();
  mlir::fsdp::registerFsdpPipelines();

  mlir::fsdp::setVersionPrinter("fsdp-opt");

  // Ops of any other dialect pass through, so unregistered ones are allowed
  // unless the command line says otherwise: a later flag wins.
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  char allow[] = "--allow-unregistered-dialect";
  arguments.insert(arguments.begin() + 1, allow);
  auto [input, output] = mlir::registerAndParseCLIOptions(
      arguments.size(), arguments.data(),
      "fsdp-opt: passes for sharded data-parallel training\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(
        arguments.size(), arguments.data(), input, output, registry));

  llvm::InitLLVM init(argc, argv);
  mlir::fsdp::handleInterrupts("fsdp-opt");
  return run(input, output, registry, config);
}
