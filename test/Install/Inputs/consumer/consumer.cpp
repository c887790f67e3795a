//===- consumer.cpp - another compiler that uses the dialect --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built against the installed package alone: reads a module, expands its units
// and says how many collectives it then has.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Dialect/Fsdp.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<fsdp::FsdpDialect, func::FuncDialect, shard::ShardDialect>();
  fsdp::registerShardGridExternalModel(registry);
  MLIRContext context(registry);
  if (argc != 2)
    return 2;
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(argv[1], &context);
  if (!module)
    return 1;

  PassManager passes(&context);
  passes.addPass(fsdp::createResolvePrecisionPass());
  passes.addPass(fsdp::createExpandUnitsPass());
  if (failed(passes.run(*module)))
    return 1;

  int gathers = 0, reductions = 0;
  module->walk([&](fsdp::AllGatherOp) { ++gathers; });
  module->walk([&](fsdp::ReduceScatterOp) { ++reductions; });
  llvm::outs() << gathers << " all-gathers, " << reductions
               << " reduce-scatters\n";
  return 0;
}
