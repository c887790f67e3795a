//===- fsdp-opt.cpp - runs passes on IR files -----------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Version.h"

#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fsdp::registerFsdpPipelineDialects(registry);
  mlir::registerAllPasses();
  mlir::fsdp::registerFsdpTransformsPasses();
  mlir::fsdp::registerFsdpConversionPasses();
  mlir::fsdp::registerFsdpPipelines();

  mlir::fsdp::setVersionPrinter("fsdp-opt");

  // Ops of any other dialect pass through, so unregistered ones are allowed
  // unless the command line says otherwise: a later flag wins.
  llvm::SmallVector<char *> arguments(argv, argv + argc);
  char allow[] = "--allow-unregistered-dialect";
  arguments.insert(arguments.begin() + 1, allow);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      arguments.size(), arguments.data(),
      "fsdp-opt: passes for sharded data-parallel training\n", registry));
}
