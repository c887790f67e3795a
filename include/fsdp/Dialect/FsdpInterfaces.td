//===- FsdpInterfaces.td - what ops have in common -*- tablegen -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_INTERFACES
#define FSDP_INTERFACES

include "mlir/IR/OpBase.td"

def DeviceGridOpInterface : OpInterface<"DeviceGridOpInterface"> {
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

def StagedOpInterface : OpInterface<"StagedOpInterface"> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    An op that says at which stages of a program it may occur.
    `fsdp-verify-stage` asks every op that has this interface, of whatever
    dialect.
  }];
  let methods = [
    InterfaceMethod<"The ranges of stages that the op, in the form that it has, "
                    "must be within: all of them. Each says what is wrong "
                    "before and after it.",
      "::llvm::SmallVector<::mlir::fsdp::StageRange, 2>", "getStages">,
    InterfaceMethod<"What the op declares or works on, as a message names it: "
                    "`bucket 'b'`.",
      "::std::string", "describeSubject">,
  ];
}

def UnitOpInterface : OpInterface<"UnitOpInterface"> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    An op that moves a whole unit's parameters or gradients between shards and
    full tensors, and says nothing of how: `unshard` and `reduce_grads`, which
    fsdp-expand-units replaces.
  }];
  let methods = [
    InterfaceMethod<"The unit's symbol.",
      "::mlir::FlatSymbolRefAttr", "getUnitAttr">,
    InterfaceMethod<"The groups of ranks that meet in the op, one after another: "
                    "each the axes of the grid on whose coordinates its ranks "
                    "differ, in the order in which they number the ranks.",
      "::llvm::SmallVector<::llvm::SmallVector<int64_t>>", "getGroups",
      (ins "const ::mlir::fsdp::UnitGroup &":$group)>,
  ];
}

def BucketUserOpInterface : OpInterface<"BucketUserOpInterface"> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    What a local op and a collective have in common: it moves data into, out of
    or between the forms of one bucket. It has a value form, with tensors and
    results, and a buffer form, with memrefs and `outs`; in both, the flat shard
    or the packed rows are on the bucket's side. The interface's verifier checks
    that an op is wholly in one form; `verifyBucketUse`, which an op calls where
    it verifies its symbols, checks all shapes and dtypes against the bucket's
    layout.
  }];
  let methods = [
    InterfaceMethod<"The bucket's symbol, looked up from the op.",
      "::mlir::FlatSymbolRefAttr", "getBucketAttr">,
    InterfaceMethod<"The kind of bucket that the op works on; a bucket of the "
                    "other kind is an error.",
      "::mlir::fsdp::BucketKind", "getRequiredKind">,
    InterfaceMethod<"The values on the bucket's side and what each holds: L "
                    "elements of the wire dtype, or W rows of them. One for a "
                    "local op; for a collective what it sends, then what it "
                    "receives.",
      "::mlir::fsdp::BucketValues", "getBucketValues">,
    InterfaceMethod<"The operands that the buffer form writes, one for each "
                    "result of the value form, in order; empty in the value "
                    "form, where what is appended are the outputs.",
      "::mlir::MutableOperandRange", "getOutputOperandsMutable">,
  ];
  let extraSharedClassDeclaration = [{
    /// True if the op writes `outs(...)` instead of having results.
    bool isBufferForm() { return $_op->getNumResults() == 0; }
    /// The operands that the buffer form writes; none in the value form.
    ::mlir::OperandRange getOutputOperands() {
      return $_op.getOutputOperandsMutable();
    }
  }];
  let verify = [{
    return ::mlir::fsdp::verifyBucketForm(
        ::llvm::cast<::mlir::fsdp::BucketUserOpInterface>($_op));
  }];
}

def LocalOpInterface
    : OpInterface<"LocalOpInterface", [BucketUserOpInterface]> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    Moves data between the members of a bucket and the bucket, on one rank. It
    packs, from members into the flat shard or the packed rows, or it unpacks
    from there into members. Where the member's dtype and the wire dtype differ,
    it casts once, to nearest even.
  }];
  let methods = [
    InterfaceMethod<"True if the op reads members and writes the bucket.",
      "bool", "packs">,
    InterfaceMethod<"What is on the members' side, one value per member, in the "
                    "bucket's order: operands of a packing op, results or "
                    "outputs of an unpacking one.",
      "::llvm::SmallVector<::mlir::Value>", "getMemberValues">,
    InterfaceMethod<"Whether the member values have the shapes of shards or of "
                    "full parameters.",
      "::mlir::fsdp::MemberForm", "getMemberForm">,
    InterfaceMethod<"The number by which each element is divided, in the wire "
                    "dtype: an f64, positive and finite; null if nothing is "
                    "divided.",
      "::mlir::FloatAttr", "getDivideAttr", (ins), "",
      [{ return {}; }]>,
    InterfaceMethod<"Existing tensors or buffers that are added to what the op "
                    "unpacks, in its dtype and after all casts: one per member "
                    "and of its type, or none.",
      "::mlir::OperandRange", "getAdd", (ins), "",
      [{ return $_op->getOperands().take_front(0); }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// The flat shard or the packed rows, and which of them it is.
    std::pair<::mlir::Value, ::mlir::fsdp::BucketForm> getBucketValue() {
      return $_op.getBucketValues().front();
    }
    /// True if elements change by more than a cast on their way.
    bool changesValues() {
      return $_op.getDivideAttr() || !$_op.getAdd().empty();
    }
  }];
}

def CollectiveOpInterface
    : OpInterface<"CollectiveOpInterface", [BucketUserOpInterface]> {
  let cppNamespace = "::mlir::fsdp";
  let description = [{
    Exchanges a bucket's flat shards or packed rows between the ranks of a
    group. Ranks must issue it in one order, which fsdp-verify-collectives
    proves; the plan's hash covers it. An op of another dialect takes part in
    both by having this interface.
  }];
  let methods = [
    InterfaceMethod<"What the op does, if it is what an op of this dialect does; "
                    "`Other` if not. What is `Other` is known by the op's name, "
                    "is never merged, and has no lowering of ours.",
      "::mlir::fsdp::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"The group of ranks that meet: the axes of `group.gridOp` on "
                    "whose coordinates they differ, in the order in which they "
                    "number the ranks. `group` is that of the bucket's members. "
                    "The group has one rank if all these axes have size 1.",
      "::llvm::SmallVector<int64_t>", "getGroupAxes",
      (ins "const ::mlir::fsdp::UnitGroup &":$group)>,
    InterfaceMethod<"How elements of several ranks become one; nothing if the op "
                    "only moves them. A reduce-scatter and an all-reduce have "
                    "it, an all-gather has not: the interface's verifier looks.",
      "::std::optional<::mlir::fsdp::CollectiveReduction>",
      "getCollectiveReduction", (ins), "",
      [{ return ::std::nullopt; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// The tensor or buffer that this rank sends.
    ::mlir::Value getSent() { return $_op.getBucketValues()[0].first; }
    /// The result or output that this rank receives.
    ::mlir::Value getReceived() { return $_op.getBucketValues()[1].first; }
  }];
  let verify = [{
    return ::mlir::fsdp::verifyCollectiveKind(
        ::llvm::cast<::mlir::fsdp::CollectiveOpInterface>($_op));
  }];
}

#endif // FSDP_INTERFACES
