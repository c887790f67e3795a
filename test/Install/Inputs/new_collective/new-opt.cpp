//===- new-opt.cpp - passes of ours on a collective that they do not know -===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built against the installed package alone: a dialect with one collective,
// and a tool with this dialect and passes of ours.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Conversion/Passes.h"
#include "fsdp/Dialect/Fsdp.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "NewCollectiveDialect.h.inc"
#define GET_OP_CLASSES
#include "NewCollective.h.inc"

#include "NewCollectiveDialect.cpp.inc"
#define GET_OP_CLASSES
#include "NewCollective.cpp.inc"

using namespace mlir;

void test::TestDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "NewCollective.cpp.inc"
      >();
}

fsdp::BucketValues test::BroadcastRowsOp::getBucketValues() {
  return {{getPacked(), fsdp::BucketForm::Packed},
          {isBufferForm() ? getOutput() : getRows(), fsdp::BucketForm::Packed}};
}
MutableOperandRange test::BroadcastRowsOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
fsdp::CollectiveKind test::BroadcastRowsOp::getCollectiveKind() {
  return fsdp::CollectiveKind::Other;
}
SmallVector<int64_t>
test::BroadcastRowsOp::getGroupAxes(const fsdp::UnitGroup &group) {
  return group.replicateAxes;
}

fsdp::BucketValues test::BareReduceOp::getBucketValues() {
  return {
      {getFlat(), fsdp::BucketForm::Flat},
      {isBufferForm() ? getOutput() : getReduced(), fsdp::BucketForm::Flat}};
}
MutableOperandRange test::BareReduceOp::getOutputOperandsMutable() {
  return getOutputMutable();
}
fsdp::CollectiveKind test::BareReduceOp::getCollectiveKind() {
  return fsdp::CollectiveKind::AllReduce;
}
SmallVector<int64_t>
test::BareReduceOp::getGroupAxes(const fsdp::UnitGroup &group) {
  return group.replicateAxes;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, fsdp::FsdpDialect, func::FuncDialect,
                  scf::SCFDialect, shard::ShardDialect, test::TestDialect>();
  fsdp::registerShardGridExternalModel(registry);
  fsdp::registerFsdpTransformsPasses();
  fsdp::registerFsdpConversionPasses();
  return asMainReturnCode(MlirOptMain(argc, argv, "new-opt\n", registry));
}
