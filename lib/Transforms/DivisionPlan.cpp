//===- DivisionPlan.cpp - where a reduction divides -----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DivisionPlan.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// `value` rounded once to `type`, to nearest even.
static APFloat roundTo(APFloat value, Type type) {
  bool losesInfo;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

/// 1/x rounded once to `type`. A quotient of doubles is taken in quadruple
/// precision, whose 113 bits are enough for the second rounding to be harmless.
static APFloat reciprocal(double x, Type type) {
  bool losesInfo;
  APFloat denominator(x);
  denominator.convert(APFloat::IEEEquad(), APFloat::rmNearestTiesToEven,
                      &losesInfo);
  APFloat quotient(APFloat::IEEEquad(), 1);
  quotient.divide(denominator, APFloat::rmNearestTiesToEven);
  return roundTo(quotient, type);
}

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// The part of `divisor` by which f16 divides before the sum: a power of two
/// near its square root.
static double getPredivisor(double divisor) {
  double q = 1;
  while (std::fmod(divisor, q) == 0 && divisor / q > q)
    q *= 2;
  return q;
}

static std::optional<double> unlessOne(double value) {
  return value == 1 ? std::nullopt : std::optional<double>(value);
}

FailureOr<DivisionPlan> DivisionPlan::get(UnitOp unit, const UnitGroup &group,
                                          Type wire, Average average) {
  std::optional<double> factor;
  if (std::optional<APFloat> given = unit.getDivideFactor())
    factor = given->convertToDouble();
  bool isMean = unit.getEffectiveReduction() == ReduceOp::avg;
  int64_t shards = group.shardSize();

  DivisionPlan plan;
  plan.divisor = factor ? *factor : isMean ? shards * group.replicateSize() : 1;
  if (!group.replicateAxes.empty())
    plan.allReduce = ReduceOp::sum;
  if (plan.divisor == 1)
    return plan;

  if (average == Average::After) {
    plan.splitDivide = plan.divisor;
  } else if (wire.isF16()) {
    double q = getPredivisor(plan.divisor);
    plan.divide = unlessOne(q);
    plan.splitDivide = unlessOne(plan.divisor / q);
  } else if (!isMean) {
    plan.splitDivide = plan.divisor;
  } else if (!factor) {
    plan.reduceScatter = shards == 1 ? ReduceOp::sum : ReduceOp::avg;
    if (plan.allReduce)
      plan.allReduce = ReduceOp::avg;
  } else if (*factor == shards) {
    plan.reduceScatter = ReduceOp::avg;
  } else {
    plan.reduceScatter = ReduceOp::premul;
    plan.premul = toDouble(reciprocal(*factor, wire));
  }

  // A constant is rounded to the dtype in which it is used: f32 for quotients,
  // f64 if the wire is f64. There it must still divide.
  Type compute = wire.isF64() ? wire : Float32Type::get(wire.getContext());
  for (std::optional<double> constant :
       {plan.divide, plan.premul, plan.splitDivide}) {
    if (!constant)
      continue;
    APFloat rounded = roundTo(APFloat(*constant), compute);
    if (rounded.isZero() || !rounded.isFinite())
      return failure();
  }
  return plan;
}

std::optional<DivisionPlan::Bias> DivisionPlan::getBias(const UnitGroup &group,
                                                        Type wire) const {
  if (wire.getIntOrFloatBitWidth() != 16)
    return std::nullopt;
  std::optional<double> first;
  double product = 1;
  auto multiply = [&](double by) {
    double exact = toDouble(reciprocal(by, wire)) * by;
    if (exact != 1 && !first)
      first = by;
    product *= exact;
  };
  if (reduceScatter == ReduceOp::avg)
    multiply(group.shardSize());
  if (reduceScatter == ReduceOp::premul)
    multiply(divisor);
  if (allReduce == ReduceOp::avg)
    multiply(group.replicateSize());
  if (!first)
    return std::nullopt;
  return Bias{*first, product - 1};
}
