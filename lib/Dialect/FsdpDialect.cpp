//===- FsdpDialect.cpp - the dialect, its dtypes and its grids ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Dialect/Fsdp.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

#include "fsdp/Dialect/FsdpDialect.cpp.inc"
#include "fsdp/Dialect/FsdpEnums.cpp.inc"
#include "fsdp/Dialect/FsdpInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "fsdp/Dialect/FsdpAttrs.cpp.inc"

namespace {
/// Every op of ours may stand in any function: a group of ranks runs one
/// program, and inlining keeps the order in which a caller reaches its ops.
struct FsdpInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// `shard.grid` as a grid of ours.
struct ShardGridModel
    : DeviceGridOpInterface::ExternalModel<ShardGridModel, shard::GridOp> {
  SmallVector<int64_t> getGridShape(Operation *op) const {
    return llvm::to_vector(cast<shard::GridOp>(op).getShape());
  }
  SmallVector<Value> createCoordinates(Operation *op, OpBuilder &builder,
                                       Location loc,
                                       ArrayRef<int64_t> axes) const {
    if (axes.empty()) // upstream takes no axes as all axes
      return {};
    SmallVector<shard::GridAxis> gridAxes(axes.begin(), axes.end());
    auto coordinates = shard::ProcessMultiIndexOp::create(
        builder, loc, cast<shard::GridOp>(op).getSymName(), gridAxes);
    return llvm::to_vector_of<Value>(coordinates.getResults());
  }
};
} // namespace

void FsdpDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fsdp/Dialect/FsdpAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fsdp/Dialect/FsdpOps.cpp.inc"
      >();
  addInterfaces<FsdpInlinerInterface>();
}

void mlir::fsdp::registerShardGridExternalModel(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, shard::ShardDialect *) {
    shard::GridOp::attachInterface<ShardGridModel>(*context);
  });
}

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

bool mlir::fsdp::isFloatDtype(Type type) {
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

bool mlir::fsdp::isOpaqueDtype(Type type) {
  if (isPackedDtype(type) ||
      isa<Float8E4M3FNType, Float8E5M2Type, Float8E8M0FNUType>(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && !integer.isSigned() &&
         llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
}

StringRef mlir::fsdp::listDtypes() {
  return "f16, bf16, f32, f64, i8, i16, i32, i64, ui8, ui16, ui32, ui64, "
         "f8E4M3FN, f8E5M2, f8E8M0FNU, f6E2M3FN, f6E3M2FN or f4E2M1FN";
}

bool mlir::fsdp::isPackedDtype(Type type) {
  return isa<Float4E2M1FNType, Float6E2M3FNType, Float6E3M2FNType>(type);
}

int64_t mlir::fsdp::getDtypeBytes(Type type) {
  return isPackedDtype(type) ? 1 : type.getIntOrFloatBitWidth() / 8;
}

std::optional<int64_t> mlir::fsdp::getStorageUnits(Type type,
                                                   int64_t elements) {
  if (!isPackedDtype(type))
    return elements;
  // In groups that fill whole bytes, so that no product overflows.
  int64_t bits = type.getIntOrFloatBitWidth(), group = bits == 4 ? 2 : 4;
  if (elements % group != 0)
    return std::nullopt;
  return elements / group * (group * bits / 8);
}

int64_t mlir::fsdp::getTensorBytes(ShapedType type) {
  Type dtype = type.getElementType();
  int64_t bytes = getDtypeBytes(dtype);
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes))
      // A size of zero makes it none, wherever it is.
      return llvm::is_contained(type.getShape(), 0)
                 ? 0
                 : std::numeric_limits<int64_t>::max();
  // Packed elements were counted as one byte each.
  return isPackedDtype(dtype) ? getStorageUnits(dtype, bytes).value_or(bytes)
                              : bytes;
}

int64_t mlir::fsdp::addSizes(int64_t lhs, int64_t rhs) {
  int64_t sum;
  return llvm::AddOverflow(lhs, rhs, sum) ? std::numeric_limits<int64_t>::max()
                                          : sum;
}

//===----------------------------------------------------------------------===//
// Grids and names
//===----------------------------------------------------------------------===//

std::optional<int64_t> mlir::fsdp::countRanks(ArrayRef<int64_t> gridShape) {
  int64_t ranks = 1;
  for (int64_t size : gridShape)
    if (size <= 0 || llvm::MulOverflow(ranks, size, ranks) || ranks > INT32_MAX)
      return std::nullopt;
  return ranks;
}

LogicalResult mlir::fsdp::verifyName(Operation *op, StringRef what,
                                     StringRef name) {
  if (llvm::json::isUTF8(name) && !name.contains('\0'))
    return success();
  std::string escaped;
  llvm::raw_string_ostream stream(escaped);
  llvm::printEscapedString(name, stream);
  return op->emitOpError() << what << " '" << escaped
                           << "' has a name that cannot be written into a "
                              "plan, expected UTF-8 without zero bytes";
}

//===----------------------------------------------------------------------===//
// Attributes on other dialects' ops
//===----------------------------------------------------------------------===//

/// Checks a hash on a module.
static LogicalResult verifyHash(Operation *op, NamedAttribute attribute) {
  if (!isa<ModuleOp>(op))
    return op->emitOpError("is not a module, but has '")
           << attribute.getName().getValue() << "'";
  auto hash = dyn_cast<StringAttr>(attribute.getValue());
  if (!hash || hash.size() != 16 || !llvm::all_of(hash, llvm::isHexDigit))
    return op->emitOpError("expects '")
           << attribute.getName().getValue()
           << "' to be 16 hexadecimal digits, but it is "
           << attribute.getValue();
  return success();
}

LogicalResult FsdpDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == getPlanHashAttrName() ||
      attribute.getName() == getFormedAttrName())
    return verifyHash(op, attribute);
  if (attribute.getName() == getEntryAttrName()) {
    auto count = dyn_cast<IntegerAttr>(attribute.getValue());
    if (isa<FunctionOpInterface>(op) && count && !count.getValue().isNegative())
      return success();
    return op->emitOpError("expects '")
           << getEntryAttrName()
           << "' to be the number of a function's inputs, but it is "
           << attribute.getValue();
  }
  if (attribute.getName() != getProfileAttrName())
    return op->emitOpError("does not expect the attribute '")
           << attribute.getName().getValue() << "'";
  if (!isa<ModuleOp, UnitOp>(op))
    return op->emitOpError("is neither a module nor a unit, but has '")
           << getProfileAttrName() << "'";
  auto profile = dyn_cast<StringAttr>(attribute.getValue());
  if (!profile ||
      !llvm::is_contained({"per_param", "stable", "grad_dtype"}, profile))
    return op->emitOpError("expects '")
           << getProfileAttrName()
           << "' to be \"per_param\", \"stable\" or \"grad_dtype\", but it is "
           << attribute.getValue();
  return success();
}

/// Checks one `fsdp.*` attribute of an argument or result. That the symbol
/// exists and that the type fits is checked by fsdp-verify-stage, which can
/// look symbols up in constant time.
static LogicalResult verifySignatureAttribute(Operation *op,
                                              NamedAttribute attribute,
                                              const Twine &place,
                                              bool isArgument) {
  StringRef name = attribute.getName().getValue();
  if (name == FsdpDialect::getUniformAttrName()) {
    if (isArgument && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("expects '")
           << name << "' to be a unit attribute of an argument";
  }
  if (name == FsdpDialect::getStatusAttrName()) {
    if (!isArgument && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("expects '")
           << name << "' to be a unit attribute of a result";
  }
  if (!llvm::is_contained({FsdpDialect::getShardAttrName(),
                           FsdpDialect::getFullAttrName(),
                           FsdpDialect::getShardGradAttrName(),
                           FsdpDialect::getFullGradAttrName()},
                          name))
    return op->emitOpError("does not expect the attribute '")
           << name << "' on " << place;
  auto reference = dyn_cast<SymbolRefAttr>(attribute.getValue());
  if (!reference || reference.getNestedReferences().size() != 1)
    return op->emitOpError("expects '")
           << name << "' of " << place
           << " to name a parameter as @unit::@param, but it is "
           << attribute.getValue();
  return success();
}

LogicalResult FsdpDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned index,
                                                    NamedAttribute attribute) {
  return verifySignatureAttribute(op, attribute, "argument " + Twine(index),
                                  /*isArgument=*/true);
}

LogicalResult FsdpDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return verifySignatureAttribute(op, attribute, "result " + Twine(index),
                                  /*isArgument=*/false);
}
