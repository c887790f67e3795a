//===- FsdpInterfaces.td - grids and users of buckets -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_INTERFACES
#define FSDP_INTERFACES

include "mlir/IR/OpBase.td"

def Fsdp_DeviceGridOpInterface : OpInterface<"DeviceGridOpInterface"> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    A symbol that declares a grid of ranks, numbered row-major. `shard.grid` has
    this interface; another compiler attaches it to its own mesh op.
  }];
  let methods = [
    InterfaceMethod<"Sizes of the grid's axes; `ShapedType::kDynamic` where "
                    "a size is not known.",
      "::llvm::SmallVector<int64_t>", "getGridShape">,
    InterfaceMethod<"Creates the ops that compute this rank's coordinates on "
                    "`axes` (`index` values, one per axis, in order).",
      "::llvm::SmallVector<::mlir::Value>", "createCoordinates",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::llvm::ArrayRef<int64_t>":$axes)>,
  ];
}

def Fsdp_BucketUserOpInterface : OpInterface<"BucketUserOpInterface"> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    A local op or a collective: moves data into, out of or between the forms of
    one bucket. In both forms (values and buffers) the tensors or buffers have
    the same parts: one per member on the members' side, the flat shard or the
    packed rows on the bucket's side. One verifier checks them all against the
    bucket's layout.
  }];
  let methods = [
    InterfaceMethod<"The bucket's symbol.",
      "::mlir::FlatSymbolRefAttr", "getBucketAttr">,
    InterfaceMethod<"The kind of bucket that the op works on.",
      "::mlir::fsdp::BucketKind", "getRequiredKind">,
    InterfaceMethod<"One value per member, in the bucket's order; none for a "
                    "collective.",
      "::llvm::SmallVector<::mlir::Value>", "getMemberValues">,
    InterfaceMethod<"What the member values hold.",
      "::mlir::fsdp::MemberForm", "getMemberForm">,
    InterfaceMethod<"The values on the bucket's side and what each holds.",
      "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::fsdp::BucketForm>>",
      "getBucketValues">,
    InterfaceMethod<"The operands that the buffer form writes.",
      "::mlir::OperandRange", "getOutputOperands">,
  ];
  let extraSharedClassDeclaration = [{
    /// True if the op writes `outs(...)` instead of having results.
    bool isBufferForm() { return $_op->getNumResults() == 0; }
  }];
}

#endif // FSDP_INTERFACES
