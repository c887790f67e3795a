//===- CastFolding.cpp - may this cast be folded into a local op ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Let M be the member's wire dtype. A cast A -> B before concat or chunk_cat
// makes way for the op's own A -> M in two cases:
//
//   A -> B is exact:  RNE_M(B(a)) = RNE_M(a), since B(a) = a;
//   B is M:           the op's B -> M was nothing, so A -> B is all there is.
//
// After split or unchunk, whose own cast is M -> A, the cast A -> B makes way
// for M -> B if M -> A is exact or nothing. Anywhere else two roundings would
// become one. A pair extf, truncf is the way to write one cast between f16 and
// bf16, and is judged as that one cast.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/CastFolding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::isExactCast(Type from, Type to) {
  if (!isFloatDtype(from) || !isFloatDtype(to))
    return from == to;
  const llvm::fltSemantics &source = cast<FloatType>(from).getFloatSemantics();
  const llvm::fltSemantics &target = cast<FloatType>(to).getFloatSemantics();
  return llvm::APFloat::isRepresentableBy(source, target);
}

static bool isCast(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op);
}

/// Why `cast` is not just one rounding, to nearest even, between dtypes that a
/// bucket's member can have; empty if it is.
static std::string whyNotPlain(Operation *cast) {
  if (auto truncf = dyn_cast<arith::TruncFOp>(cast))
    if (truncf.getRoundingmode())
      return "it has a rounding mode of its own";
  auto flags =
      llvm::cast<arith::ArithFastMathInterface>(cast).getFastMathFlagsAttr();
  if (flags && flags.getValue() != arith::FastMathFlags::none)
    return "it has fast-math flags of its own";
  for (Type type :
       {cast->getOperand(0).getType(), cast->getResult(0).getType()})
    if (Type dtype = getElementTypeOrSelf(type); !isFloatDtype(dtype))
      return llvm::formatv("a bucket's members cannot be cast from or to {0}",
                           dtype);
  return {};
}

/// Follows widening casts, all exact, from `value` to where they start.
static Value skipExtensions(Value value) {
  while (auto extf = value.getDefiningOp<arith::ExtFOp>()) {
    if (!whyNotPlain(extf).empty())
      break;
    value = extf.getIn();
  }
  return value;
}

/// The cast in front of `operand`, where the member travels as `wire`.
static std::optional<AdjacentCast> getCastBefore(Value operand,
                                                 const BucketMember &member) {
  Operation *cast = operand.getDefiningOp();
  if (!isCast(cast))
    return std::nullopt;
  AdjacentCast found;
  found.casts.push_back(cast);
  ParamOp param = member.param;
  if (param.isOpaque()) {
    found.whyKeep = "the storage of an opaque parameter is never cast";
    return found;
  }
  found.whyKeep = whyNotPlain(cast);
  if (!found.isFoldable())
    return found;
  Type to = getElementTypeOrSelf(operand.getType());
  found.source = cast->getOperand(0);
  // From the start of the widening casts before a truncf: exact if any part is.
  Value start = skipExtensions(found.source);
  if (isExactCast(getElementTypeOrSelf(start.getType()), to)) {
    if (isa<arith::TruncFOp>(cast))
      found.source = start;
  } else if (to != member.wire) {
    found.whyKeep = llvm::formatv("it rounds to {0}, which is not the wire "
                                  "dtype {1}",
                                  to, member.wire);
  }
  return found;
}

/// The casts behind `result`, where the member travels as `wire`.
static std::optional<AdjacentCast>
getCastAfter(LocalOpInterface op, Value result, const BucketMember &member) {
  AdjacentCast found;
  bool isOnlyCasts = true;
  for (Operation *user : result.getUsers()) {
    if (isCast(user))
      found.casts.push_back(user);
    else
      isOnlyCasts = false;
  }
  if (found.casts.empty())
    return std::nullopt;
  ParamOp param = member.param;
  Type from = getElementTypeOrSelf(result.getType());
  found.type = found.casts.front()->getResult(0).getType();
  if (param.isOpaque())
    found.whyKeep = "the storage of an opaque parameter is never cast";
  else if (!op.getAdd().empty())
    found.whyKeep =
        llvm::formatv("{0} adds before the cast", op->getName().stripDialect());
  else if (!isExactCast(member.wire, from))
    found.whyKeep =
        llvm::formatv("{0} rounds from {1} to {2} already",
                      op->getName().stripDialect(), member.wire, from);
  else if (!isOnlyCasts)
    found.whyKeep = "what it reads has another use";
  for (Operation *cast : found.casts) {
    if (!found.isFoldable())
      break;
    found.whyKeep = whyNotPlain(cast);
    if (found.isFoldable() && cast->getResult(0).getType() != found.type)
      found.whyKeep = llvm::formatv("what it reads is cast to {0} and to {1}",
                                    getElementTypeOrSelf(found.type),
                                    getElementTypeOrSelf(cast->getResult(0)));
  }
  return found;
}

std::optional<AdjacentCast>
mlir::fsdp::getAdjacentCast(LocalOpInterface op, Value value,
                            const BucketMember &member) {
  if (op.isBufferForm())
    return std::nullopt;
  if (op.packs())
    return getCastBefore(value, member);
  return getCastAfter(op, value, member);
}
