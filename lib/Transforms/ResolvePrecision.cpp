//===- ResolvePrecision.cpp - write every parameter's dtypes --------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fsdp.unit @u on @dp precision <param = bf16> {
//     fsdp.param @norm : tensor<10xf32> precision <param = f32>
//     fsdp.param @w : tensor<8x3xf32>
//   }
// becomes, in the profile per_param,
//   fsdp.unit @u on @dp precision <param = bf16> {
//     fsdp.param @norm : ... precision <param = f32, reduce = f32, grad = f32>
//     fsdp.param @w : ... precision <param = bf16, reduce = bf16, grad = f32>
//   }
//
// The param dtype P and the grad dtype G are inherited in every profile (the
// dialect does it, since it verifies types with them). A profile decides the
// reduce dtype R and what it refuses. Declarations alone are read, never which
// parameters have a gradient, so R is the same for every reduction of a unit.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Decisions.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RESOLVEPRECISIONPASS
#include "fsdp/Transforms/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A parameter with its dtypes; `reduce` and `grad` are null if it is opaque.
struct ResolvedParam {
  ParamOp param;
  Type compute;
  Type reduce;
  Type grad;
  bool asksForReduce; ///< by an entry of its own or of its unit
};

/// A unit of which nothing was refused.
struct ResolvedUnit {
  UnitOp unit;
  Profile profile;
  SmallVector<ResolvedParam> params;
};
} // namespace

static StringRef getName(Profile profile) {
  switch (profile) {
  case Profile::PerParam:
    return "per_param";
  case Profile::Stable:
    return "stable";
  case Profile::GradDtype:
    return "grad_dtype";
  }
  llvm_unreachable("unknown profile");
}

/// The profile that the IR gives `unit`, or `otherwise`.
static Profile getProfile(UnitOp unit, Profile otherwise) {
  for (Operation *op = unit; op; op = op->getParentOp())
    if (auto name =
            op->getAttrOfType<StringAttr>(FsdpDialect::getProfileAttrName()))
      return llvm::StringSwitch<Profile>(name)
          .Case("stable", Profile::Stable)
          .Case("grad_dtype", Profile::GradDtype)
          .Default(Profile::PerParam);
  return otherwise;
}

static Type getReduce(PrecisionAttr precision) {
  return precision ? precision.getReduce() : Type();
}

static Type getParam(PrecisionAttr precision) {
  return precision ? precision.getParam() : Type();
}

/// The smallest dtype that holds both; f16 and bf16 meet in f32.
static Type promote(Type a, Type b) {
  unsigned widthA = a.getIntOrFloatBitWidth();
  unsigned widthB = b.getIntOrFloatBitWidth();
  if (a == b || widthA > widthB)
    return a;
  if (widthA < widthB)
    return b;
  return Float32Type::get(a.getContext());
}

/// Parameters that count in a profile's checks and promotions.
static bool isTrainable(const ResolvedParam &resolved) {
  ParamOp param = resolved.param;
  return !param.getFrozen();
}

//===----------------------------------------------------------------------===//
// What the profiles refuse, and how they reduce
//===----------------------------------------------------------------------===//

/// Refuses entries that ask for a cast of a parameter that is never cast.
static LogicalResult checkOpaque(ParamOp param) {
  PrecisionAttr own = param.getPrecisionAttr();
  if (!own)
    return success();
  std::pair<StringRef, Type> entries[] = {{"param", own.getParam()},
                                          {"reduce", own.getReduce()},
                                          {"grad", own.getGrad()}};
  for (auto [name, type] : entries)
    if (type && !(name == "param" && type == param.getStorageType()))
      return param.emitError()
             << "parameter '" << param.getSymName() << "' of "
             << param.getStorageType() << " is never cast, but asks for the "
             << name << " dtype " << type << ", expected no " << name
             << " dtype of its own";
  return success();
}

/// `stable` is one policy per unit: refuses dtypes that differ.
static LogicalResult checkUniform(UnitOp unit, ArrayRef<ResolvedParam> params) {
  auto check = [&](StringRef what,
                   function_ref<Type(const ResolvedParam &)> get) {
    llvm::MapVector<Type, SmallVector<ParamOp>> users;
    for (const ResolvedParam &resolved : params)
      if (isTrainable(resolved))
        users[get(resolved)].push_back(resolved.param);
    if (users.size() <= 1)
      return success();
    InFlightDiagnostic diag = unit.emitError()
                              << "profile 'stable' wants a uniform " << what
                              << " dtype in unit '" << unit.getSymName()
                              << "', but its trainable parameters have "
                              << users.size();
    for (auto &[type, ofType] : users) {
      Diagnostic &note = diag.attachNote(ofType.front().getLoc());
      note << type << ": ";
      llvm::interleave(
          ofType,
          [&](ParamOp param) { note << '\'' << param.getSymName() << '\''; },
          [&] { note << ", "; });
    }
    return LogicalResult(diag);
  };
  return success(
      succeeded(check("storage",
                      [](const ResolvedParam &resolved) {
                        ParamOp param = resolved.param;
                        return param.getStorageType();
                      })) &&
      succeeded(
          check("param", [](auto &resolved) { return resolved.compute; })) &&
      succeeded(
          check("reduce", [](auto &resolved) { return resolved.reduce; })) &&
      succeeded(check("grad", [](auto &resolved) { return resolved.grad; })));
}

/// `grad_dtype` reduces a unit in one dtype: sets it, or refuses own entries
/// that contradict.
static LogicalResult reduceInOneDtype(UnitOp unit,
                                      MutableArrayRef<ResolvedParam> params) {
  PrecisionAttr ofUnit = unit.getPrecisionAttr();
  // A unit without trainable parameters promotes over all that can be cast.
  bool anyTrainable = llvm::any_of(params, isTrainable);
  Type joint;
  for (const ResolvedParam &resolved : params) {
    ParamOp param = resolved.param;
    if (param.isOpaque() || (anyTrainable && !isTrainable(resolved)))
      continue;
    // G is the given grad dtype, else the storage dtype.
    Type vote = getReduce(ofUnit) ? getReduce(ofUnit) : resolved.grad;
    joint = joint ? promote(joint, vote) : vote;
  }
  for (ResolvedParam &resolved : params) {
    ParamOp param = resolved.param;
    if (param.isOpaque())
      continue;
    resolved.reduce = joint;
    if (!isTrainable(resolved))
      continue;
    Type own = getParam(param.getPrecisionAttr());
    if (own && own != param.getStorageType() && own != getParam(ofUnit)) {
      InFlightDiagnostic diag = param.emitError()
                                << "parameter '" << param.getSymName()
                                << "' asks for the param dtype " << own
                                << ", but profile 'grad_dtype' allows "
                                << param.getStorageType();
      if (Type unitParam = getParam(ofUnit))
        if (unitParam != param.getStorageType())
          diag << " and " << unitParam;
      return diag;
    }
    own = getReduce(param.getPrecisionAttr());
    if (own && own != joint)
      return param.emitError() << "parameter '" << param.getSymName()
                               << "' asks for the reduce dtype " << own
                               << ", but profile 'grad_dtype' reduces unit '"
                               << unit.getSymName() << "' in " << joint;
  }
  return success();
}

/// The dtypes of every parameter of `unit`, or an error for what is refused.
static FailureOr<ResolvedUnit> resolve(UnitOp unit, Profile profile) {
  ResolvedUnit resolved{unit, profile, {}};
  for (ParamOp param : unit.getParams()) {
    if (param.isOpaque()) {
      if (failed(checkOpaque(param)))
        return failure();
      resolved.params.push_back({param, param.getStorageType(), {}, {}, false});
      continue;
    }
    Type compute = param.getParamType();
    Type reduce = getReduce(param.getPrecisionAttr());
    if (!reduce)
      reduce = getReduce(unit.getPrecisionAttr());
    resolved.params.push_back({param, compute, reduce ? reduce : compute,
                               param.getGradType(), reduce != nullptr});
  }
  switch (profile) {
  case Profile::PerParam:
    break;
  case Profile::Stable:
    if (failed(checkUniform(unit, resolved.params)))
      return failure();
    break;
  case Profile::GradDtype:
    if (failed(reduceInOneDtype(unit, resolved.params)))
      return failure();
    break;
  }
  return resolved;
}

/// f16 overflows at 65504 and loses what is below 2^-24, which gradients do
/// unless the program scales its loss: says so, once for the unit.
static void remarkLossScaling(const ResolvedUnit &resolved, DecisionLog &log) {
  Decision decision{"ResolvePrecision",
                    /*passed=*/false,
                    "unscaled",
                    "gradients reduced in f16 need loss scaling",
                    {},
                    {}};
  for (const ResolvedParam &param : resolved.params)
    if (isTrainable(param) && param.reduce.isF16())
      decision.items.push_back(ParamOp(param.param).getSymName().str());
  if (!decision.items.empty())
    log.add(resolved.unit->getLoc(), std::move(decision));
}

/// Says, once for each pair of dtypes, which gradients have fewer bits in their
/// reduction than their parameters in storage though nobody asked for that: a
/// policy that names the param dtype alone means another reduction to each
/// release of PyTorch.
static void remarkNarrowReduction(const ResolvedUnit &resolved,
                                  DecisionLog &log) {
  llvm::MapVector<std::pair<Type, Type>, SmallVector<ParamOp>> narrowed;
  for (const ResolvedParam &each : resolved.params) {
    ParamOp param = each.param;
    if (param.isOpaque() || !isTrainable(each) || each.asksForReduce)
      continue;
    Type storage = param.getStorageType();
    if (each.reduce.getIntOrFloatBitWidth() < storage.getIntOrFloatBitWidth())
      narrowed[{storage, each.reduce}].push_back(param);
  }
  for (auto &[types, params] : narrowed) {
    auto [storage, reduce] = types;
    Decision decision{
        "ResolvePrecision", /*passed=*/false, "narrowed", {}, {}, {}};
    llvm::raw_string_ostream stream(decision.reason);
    stream << "profile '" << getName(resolved.profile) << "' reduces in "
           << reduce << " what is stored in " << storage
           << ": 'reduce = " << storage << "'";
    if (resolved.profile != Profile::GradDtype)
      stream << " or profile 'grad_dtype'";
    stream << " keeps its bits";
    for (ParamOp param : params)
      decision.items.push_back(param.getSymName().str());
    log.add(resolved.unit->getLoc(), std::move(decision));
  }
}

namespace {
struct ResolvePrecisionPass
    : mlir::fsdp::impl::ResolvePrecisionPassBase<ResolvePrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    // Every unit is decided before the first one is changed.
    SmallVector<ResolvedUnit> units;
    bool refused = false;
    getOperation()->walk([&](UnitOp unit) {
      FailureOr<ResolvedUnit> resolved =
          resolve(unit, getProfile(unit, profile));
      if (succeeded(resolved))
        units.push_back(std::move(*resolved));
      refused |= failed(resolved);
    });
    if (refused)
      return signalPassFailure();

    auto &log = getAnalysis<DecisionLog>();
    for (const ResolvedUnit &unit : units) {
      for (const ResolvedParam &resolved : unit.params)
        ParamOp(resolved.param)
            .setPrecisionAttr(
                PrecisionAttr::get(&getContext(), resolved.compute,
                                   resolved.reduce, resolved.grad));
      remarkLossScaling(unit, log);
      remarkNarrowReduction(unit, log);
    }
  }
};
} // namespace
