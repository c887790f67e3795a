//===- FsdpAttrs.td - enums and attributes -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_ATTRS
#define FSDP_ATTRS

include "fsdp/Dialect/FsdpDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Fsdp_BucketKind : I32EnumAttr<"BucketKind", "direction of a bucket", [
    I32EnumAttrCase<"gather", 0>, I32EnumAttrCase<"reduce", 1>]> {
  let cppNamespace = "::mlir::fsdp";
}

def Fsdp_ReduceOp : I32EnumAttr<"ReduceOp", "how values of several ranks become one", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"avg", 1>,
    I32EnumAttrCase<"premul", 2>]> {
  let cppNamespace = "::mlir::fsdp";
}

def Fsdp_PrecisionAttr : AttrDef<Fsdp_Dialect, "Precision"> {
  let mnemonic = "precision";
  let summary = "dtypes of a parameter or of a unit's parameters";
  let description = [{
    `param` is the dtype of compute and of the all-gather, `reduce` the dtype of
    the gradient reduction, `grad` the dtype in which the reduced shard is kept.
    An entry that is absent is inherited: from the unit, then from the storage
    dtype. The entries are `f16`, `bf16`, `f32` or `f64`; parameters of other
    storage have `param` alone, which is their storage type.
  }];
  let parameters = (ins OptionalParameter<"::mlir::Type">:$param,
                        OptionalParameter<"::mlir::Type">:$reduce,
                        OptionalParameter<"::mlir::Type">:$grad);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // FSDP_ATTRS
