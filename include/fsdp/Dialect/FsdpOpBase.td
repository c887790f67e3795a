//===- FsdpOpBase.td - classes of ops, also for other dialects -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares no op, so that the TableGen file of another dialect can include it
// and define a local op or a collective of its own.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_OP_BASE
#define FSDP_OP_BASE

include "fsdp/Dialect/FsdpAttrs.td"
include "fsdp/Dialect/FsdpInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Fsdp_Tensor : AnyTypeOf<[StaticShapeTensorOf<[AnyType]>,
                             StaticShapeMemRefOf<[AnyType]>],
                            "tensor or memref of static shape">;

/// An op on a bucket of `kind`, `gather` or `reduce`: has both forms, effects,
/// the stages of its form, and is checked against the bucket's layout. It has an
/// argument `FlatSymbolRefAttr:$bucket`, and defines getBucketValues() and
/// getOutputOperandsMutable() beside what its own interface asks for.
class Fsdp_BucketUserOp<Dialect dialect, string mnemonic, string kind,
                        list<Trait> traits>
    : Op<dialect, mnemonic, traits # [
        BucketUserOpInterface, StagedOpInterface,
        SymbolUserOpInterface, MemoryEffectsOpInterface,
        ConditionallySpeculatable]> {
  let extraClassDeclaration = [{
    ::mlir::fsdp::BucketKind getRequiredKind() {
      return ::mlir::fsdp::BucketKind::}] # kind # [{;
    }
    ::mlir::fsdp::BucketValues getBucketValues();
    ::mlir::MutableOperandRange getOutputOperandsMutable();
    ::llvm::SmallVector<::mlir::fsdp::StageRange, 2> getStages() {
      return ::mlir::fsdp::getBucketUserStages(*this);
    }
    ::std::string describeSubject() {
      return ("bucket '" + getBucket() + "'").str();
    }
    ::llvm::LogicalResult
    verifySymbolUses(::mlir::SymbolTableCollection &symbolTable) {
      return ::mlir::fsdp::verifyBucketUse(*this, symbolTable);
    }
    void getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      ::mlir::fsdp::getBucketUserEffects(*this, effects);
    }
    ::mlir::Speculation::Speculatability getSpeculatability() {
      return ::mlir::fsdp::getBucketUserSpeculatability(*this);
    }
  }];
}

class Fsdp_LocalOp<Dialect dialect, string mnemonic, string kind,
                   list<Trait> traits = []>
    : Fsdp_BucketUserOp<dialect, mnemonic, kind, traits # [
        DeclareOpInterfaceMethods<LocalOpInterface>]>;

class Fsdp_CollectiveOp<Dialect dialect, string mnemonic, string kind,
                        list<Trait> traits = []>
    : Fsdp_BucketUserOp<dialect, mnemonic, kind, traits # [
        DeclareOpInterfaceMethods<CollectiveOpInterface>]>;

#endif // FSDP_OP_BASE
