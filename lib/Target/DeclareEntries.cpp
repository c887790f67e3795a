//===- DeclareEntries.cpp - what a launcher can call, and the manifest ----===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On values, where a signature still says which tensor is what:
//
//   func.func @forward(%w: tensor<2x3xf32> {fsdp.shard = @u::@w}) -> ...
//
// is marked as an entry of one input, whose memory belongs to the launcher:
//
//   func.func @forward(%w: tensor<2x3xf32> {fsdp.shard = @u::@w,
//                                           bufferization.writable = false})
//       -> ... attributes {fsdp.entry = 1 : i64}
//
// and described in the manifest, a constant of the artefact beside the version
// of the runtime's interface.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Plan.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Target/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DECLAREENTRIESPASS
#include "fsdp/Target/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// True for dtypes that files have.
static bool isPlainDtype(Type type) {
  return isFloatDtype(type) || type.isInteger(1) ||
         (isOpaqueDtype(type) && !isPackedDtype(type));
}

static bool isPlainTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding())
    return false;
  Type dtype = tensor.getElementType();
  // Of what is packed, a launcher has whole rows.
  if (isPackedDtype(dtype))
    return tensor.getRank() != 0 &&
           getStorageUnits(dtype, tensor.getShape().back());
  return isPlainDtype(dtype);
}

/// True for what a launcher can hand over.
static bool isPlainInput(Type type) {
  return isPlainTensor(type) || isPlainDtype(type) || type.isIndex();
}

/// The attributes of an argument or result that name a parameter, and the roles
/// that they give it.
static constexpr struct {
  StringLiteral attribute, role;
} roles[] = {
    {FsdpDialect::getShardAttrName(), "shard"},
    {FsdpDialect::getFullAttrName(), "full"},
    {FsdpDialect::getShardGradAttrName(), "shard_grad"},
    {FsdpDialect::getFullGradAttrName(), "full_grad"},
};

/// True if an argument or result of the function says what it is: then whoever
/// wrote it wants an entry.
static bool isMarked(func::FuncOp function) {
  auto isMark = [](DictionaryAttr attributes) {
    return attributes &&
           (attributes.contains(FsdpDialect::getUniformAttrName()) ||
            llvm::any_of(roles, [&](auto &role) {
              return attributes.contains(role.attribute);
            }));
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (isMark(function.getArgAttrDict(i)))
      return true;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (isMark(function.getResultAttrDict(i)))
      return true;
  return false;
}

/// Calls `report(place, type, expected)` for the first argument or result of a
/// type that no launcher can pass.
static LogicalResult
checkTypes(func::FuncOp function,
           function_ref<LogicalResult(const Twine &, Type, StringRef)> report) {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (!isPlainInput(type))
      return report("argument " + Twine(i), type, "a scalar or a tensor");
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (!isPlainTensor(type))
      return report("result " + Twine(i), type, "a tensor");
  return success();
}

/// The public functions that a launcher can call. One that it cannot call is
/// an error if it is marked, else a warning: a library has public functions of
/// other kinds, too.
static FailureOr<SmallVector<func::FuncOp>> collectEntries(ModuleOp module) {
  SmallVector<func::FuncOp> entries;
  bool isInvalid = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    auto report = [&](const Twine &place, Type type, StringRef expected) {
      bool isError = isMarked(function);
      isInvalid |= isError;
      InFlightDiagnostic diag =
          isError ? function.emitError() : function.emitWarning();
      diag << "function '" << function.getSymName()
           << "' cannot be an entry: " << place << " is " << type
           << ", expected " << expected << " of static shape, of i1, "
           << listDtypes();
      diag.attachNote() << "make the function private if no launcher calls it";
      return failure();
    };
    if (failed(checkTypes(function, report)))
      continue;
    // The name is part of a symbol of the artefact.
    StringRef name = function.getSymName();
    if (name.empty() || name.contains('@') || name.contains('\0')) {
      isInvalid = true;
      InFlightDiagnostic diag = function.emitError();
      diag << "function '" << name << "' cannot be an entry: ";
      if (name.empty())
        diag << "it has no name";
      else
        diag << "a linker does not take the character "
             << (name.contains('@') ? "'@'" : "zero") << " in its name";
      continue;
    }
    entries.push_back(function);
  }
  if (isInvalid)
    return failure();
  return entries;
}

namespace {
/// What the manifest says about one argument or result.
struct TensorEntry {
  StringRef role = "value";
  std::string name; ///< of the tensor in files, reports and fills
  Type type;        ///< a tensor, or, of an input, a scalar
  ParamOp param;    ///< null for an ordinary value
  bool isUniform = false;

  bool isGradient() const { return param && role.ends_with("grad"); }
};

/// Gives tensors their names: a parameter its own, its gradient NAME.grad,
/// other values argN and resultN. No name stands for two things: what would
/// have one that is taken is NAME#1, NAME#2 and so on.
class TensorNames {
public:
  explicit TensorNames(ModuleOp module);

  /// Names the arguments or the results of an entry. As arguments the shard of
  /// a parameter and the full one share a name, as they are one tensor.
  void assign(MutableArrayRef<TensorEntry> tensors, bool areArguments) const;

private:
  /// The names that are taken, with the last number that each was given.
  using Taken = llvm::StringMap<int64_t>;

  /// NAME#1, NAME#2 and so on, whichever is free.
  std::string number(StringRef name, Taken &taken) const;
  std::string getFree(StringRef name, Taken &taken) const;

  llvm::StringSet<> reserved;             ///< of parameters and their gradients
  llvm::StringMap<std::string> gradients; ///< by parameter
};

/// Collects what the manifest says, then writes it.
class Manifest {
public:
  explicit Manifest(ModuleOp module) : module(module) {}
  LogicalResult collect(ArrayRef<func::FuncOp> entries);
  std::string write(StringRef target);

private:
  LogicalResult collectGrid();
  LogicalResult collectTensor(func::FuncOp entry, const Twine &place,
                              const Twine &ordinaryName, Type type,
                              DictionaryAttr attributes,
                              SmallVectorImpl<TensorEntry> &tensors);

  struct Entry {
    std::string name;
    SmallVector<TensorEntry> arguments, results;
  };
  ModuleOp module;
  SymbolTableCollection symbolTable;
  SmallVector<int64_t> gridShape;
  SmallVector<std::pair<UnitOp, UnitGroup>> units;
  SmallVector<Entry> entries;
  Plan plan;
};
} // namespace

std::string TensorNames::number(StringRef name, Taken &taken) const {
  while (true) {
    std::string numbered = (name + "#" + Twine(++taken[name])).str();
    if (!reserved.contains(numbered) && taken.try_emplace(numbered, 0).second)
      return numbered;
  }
}

std::string TensorNames::getFree(StringRef name, Taken &taken) const {
  return taken.try_emplace(name, 0).second ? name.str() : number(name, taken);
}

TensorNames::TensorNames(ModuleOp module) {
  SmallVector<StringRef> params;
  for (auto unit : module.getOps<UnitOp>())
    for (ParamOp param : unit.getParams())
      params.push_back(param.getSymName());
  reserved.insert_range(params);
  // A parameter may have the name of another one's gradient. That one is called
  // the same in each entry, because what one writes another one reads.
  Taken taken;
  for (StringRef param : params) {
    std::string name = (param + ".grad").str();
    gradients[param] = reserved.contains(name) ? number(name, taken) : name;
  }
  for (const auto &gradient : gradients)
    reserved.insert(gradient.second);
}

void TensorNames::assign(MutableArrayRef<TensorEntry> tensors,
                         bool areArguments) const {
  Taken taken;
  struct Named {
    SmallVector<std::string> names;
    unsigned shards = 0, fulls = 0;
  };
  llvm::StringMap<Named> params;
  // First come those whose names are fixed, so that they get them.
  for (TensorEntry &tensor : tensors) {
    if (!tensor.param || tensor.isGradient())
      continue;
    StringRef name = tensor.param.getSymName();
    Named &named = params[name];
    unsigned &met = tensor.role == "shard" ? named.shards : named.fulls;
    unsigned index = areArguments ? met++ : named.names.size();
    if (index == named.names.size())
      named.names.push_back(getFree(name, taken));
    tensor.name = named.names[index];
  }
  for (TensorEntry &tensor : tensors) {
    if (tensor.isGradient()) {
      StringRef param = tensor.param.getSymName();
      tensor.name = gradients.find(param)->second;
      if (!taken.try_emplace(tensor.name, 0).second)
        tensor.name = number((param + ".grad").str(), taken);
    } else if (!tensor.param && reserved.contains(tensor.name)) {
      tensor.name = number(tensor.name, taken);
    }
  }
}

/// The ranks are those of the one grid that the units stand on, or, in a module
/// without units, of the one grid that there is.
LogicalResult Manifest::collectGrid() {
  Operation *source = nullptr;
  auto add = [&](Operation *op, ArrayRef<int64_t> shape) -> LogicalResult {
    if (llvm::any_of(shape, [](int64_t size) { return size <= 0; }))
      return op->emitOpError("is for a grid that has no static size");
    if (!countRanks(shape))
      return op->emitOpError("is for a grid of 2^31 ranks or more");
    if (!source) {
      source = op;
      gridShape = llvm::to_vector(shape);
      return success();
    }
    if (shape == ArrayRef(gridShape))
      return success();
    InFlightDiagnostic diag = op->emitOpError("is for ranks in a grid of ");
    llvm::interleave(shape, diag, "x");
    diag << ", but the module has another grid: expected one";
    diag.attachNote(source->getLoc()) << "the other one is used here";
    return diag;
  };
  for (auto unit : module.getOps<UnitOp>()) {
    FailureOr<UnitGroup> group = unit.getGroup(symbolTable);
    if (failed(group))
      return unit.emitOpError("has no valid grid and axes");
    if (failed(add(unit, group->grid.shape)))
      return failure();
    units.push_back({unit, *group});
  }
  if (units.empty()) {
    for (auto grid : module.getOps<DeviceGridOpInterface>()) {
      if (failed(add(grid, grid.getGridShape())))
        return failure();
    }
  }
  // The rank that the runtime knows is the one on that grid.
  auto result = module.walk([&](Operation *op) {
    FlatSymbolRefAttr name;
    if (auto index = dyn_cast<shard::ProcessLinearIndexOp>(op))
      name = index.getGridAttr();
    else if (auto index = dyn_cast<shard::ProcessMultiIndexOp>(op))
      name = index.getGridAttr();
    auto grid =
        name ? symbolTable.lookupNearestSymbolFrom<shard::GridOp>(op, name)
             : shard::GridOp();
    return WalkResult(grid ? add(op, grid.getShape()) : success());
  });
  if (result.wasInterrupted())
    return failure();
  if (gridShape.empty())
    gridShape = {1};
  return success();
}

/// Checks what the attributes of one argument or result promise.
LogicalResult Manifest::collectTensor(func::FuncOp entry, const Twine &place,
                                      const Twine &ordinaryName, Type type,
                                      DictionaryAttr attributes,
                                      SmallVectorImpl<TensorEntry> &tensors) {
  TensorEntry tensor;
  tensor.name = ordinaryName.str();
  tensor.type = type;
  bool isUniform =
      attributes && attributes.contains(FsdpDialect::getUniformAttrName());
  for (auto [attribute, role] : roles) {
    auto name = attributes ? attributes.getAs<SymbolRefAttr>(attribute)
                           : SymbolRefAttr();
    if (!name)
      continue;
    if (tensor.param)
      return entry.emitOpError("says twice what ") << place << " is";
    tensor.param = lookupParam(entry, name, symbolTable);
    if (!tensor.param)
      return entry.emitOpError("names the unknown parameter ")
             << name << " on " << place;
    FailureOr<UnitGroup> group = tensor.param.getUnit().getGroup(symbolTable);
    if (failed(group))
      return entry.emitOpError("names the parameter ")
             << name << ", whose unit is not valid";
    // A gradient has ".grad" behind its name.
    if (tensor.param.getSymName() == "__metadata__" && !role.ends_with("grad"))
      return tensor.param.emitOpError("'__metadata__' is ")
             << place << " of entry '" << entry.getSymName()
             << "', but a safetensors file has no tensor of this name: "
                "expected another one";
    bool isShard = role.starts_with("shard");
    ArrayRef<int64_t> shape =
        isShard ? tensor.param.getShardType(group->shardSize()).getShape()
                : tensor.param.getFullType().getShape();
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked || ranked.getShape() != shape)
      return entry.emitOpError("says that ")
             << place << " is the " << role << " of " << name
             << ", expected the shape of "
             << RankedTensorType::get(shape, getElementTypeOrSelf(type))
             << ", but it is " << type;
    tensor.role = role;
    if (isShard && isUniform && group->shardSize() != 1)
      return entry.emitOpError("says that ")
             << place << " is the " << role << " of " << name << " and "
             << FsdpDialect::getUniformAttrName() << ", but each of "
             << group->shardSize() << " ranks has another shard";
  }
  tensor.isUniform = isUniform;
  tensors.push_back(std::move(tensor));
  return success();
}

LogicalResult Manifest::collect(ArrayRef<func::FuncOp> functions) {
  if (failed(collectGrid()))
    return failure();
  FailureOr<Plan> found = Plan::get(module, symbolTable);
  if (failed(found))
    return failure();
  plan = std::move(*found);
  if (auto sealed =
          module->getAttrOfType<StringAttr>(FsdpDialect::getPlanHashAttrName());
      sealed && sealed != plan.getHashText())
    return module.emitOpError("has changed since fsdp-seal: its plan has hash ")
           << plan.getHashText() << ", expected " << sealed
           << ": run fsdp-verify-collectives and fsdp-seal after the last pass "
              "that moves or changes a collective";
  TensorNames names(module);
  for (func::FuncOp function : functions) {
    if (failed(verifyName(function, "entry", function.getSymName())))
      return failure();
    Entry entry;
    entry.name = function.getSymName().str();
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (failed(collectTensor(function, "argument " + Twine(i),
                               "arg" + Twine(i), type,
                               function.getArgAttrDict(i), entry.arguments)))
        return failure();
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      if (failed(collectTensor(function, "result " + Twine(i),
                               "result" + Twine(i), type,
                               function.getResultAttrDict(i), entry.results)))
        return failure();
    names.assign(entry.arguments, /*areArguments=*/true);
    names.assign(entry.results, /*areArguments=*/false);
    entries.push_back(std::move(entry));
  }
  return success();
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static void writeTensors(llvm::json::OStream &json, StringRef key,
                         ArrayRef<TensorEntry> tensors) {
  json.attributeArray(key, [&] {
    for (const TensorEntry &tensor : tensors)
      json.object([&] {
        json.attribute("name", tensor.name);
        json.attribute("role", tensor.role);
        if (ParamOp param = tensor.param) {
          json.attribute("param", param.getSymName());
          json.attribute("unit", param.getUnit().getSymName());
          Type full = RankedTensorType::get(param.getFullType().getShape(),
                                            getElementTypeOrSelf(tensor.type));
          json.attribute("full_type", print(full));
          json.attribute("shard_dim", param.getShardDimension());
        }
        json.attribute("type", print(tensor.type));
        if (tensor.isUniform)
          json.attribute("uniform", true);
      });
  });
}

std::string Manifest::write(StringRef target) {
  auto writeIntegers = [](llvm::json::OStream &json, StringRef key,
                          ArrayRef<int64_t> values) {
    json.attributeArray(key, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("abi", FSDPRT_ABI_VERSION);
    json.attribute("target", target);
    json.attribute("ranks", *countRanks(gridShape));
    writeIntegers(json, "grid", gridShape);
    json.attribute("plan_hash", plan.getHashText());
    json.attributeArray("units", [&] {
      for (auto &[unit, group] : units)
        json.object([&, unit = unit, &group = group]() mutable {
          json.attribute("name", unit.getSymName());
          writeIntegers(json, "shard_axes", group.shardAxes);
          writeIntegers(json, "replicate_axes", group.replicateAxes);
        });
    });
    json.attributeArray("entries", [&] {
      for (const Entry &entry : entries)
        json.object([&] {
          json.attribute("name", entry.name);
          writeTensors(json, "args", entry.arguments);
          writeTensors(json, "results", entry.results);
        });
    });
    json.attributeArray("buckets", [&] {
      for (const BucketPlan &bucket : plan.buckets)
        json.value(toJSON(bucket));
    });
  });
  return text;
}

/// Marks an entry. A launcher's arguments are not ours to write into.
static void declareEntry(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  // All at once: one at a time would copy the list as often.
  SmallVector<DictionaryAttr> attributes;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    NamedAttrList list(function_interface_impl::getArgAttrs(function, index));
    if (isa<TensorType>(type))
      list.set(bufferization::BufferizationDialect::kWritableAttrName,
               builder.getBoolAttr(false));
    attributes.push_back(list.getDictionary(function.getContext()));
  }
  function.setAllArgAttrs(attributes);
  function->setAttr(FsdpDialect::getEntryAttrName(),
                    builder.getI64IntegerAttr(function.getNumArguments()));
}

static void createConstant(OpBuilder &builder, Location loc, StringRef name,
                           Type type, Attribute value) {
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                         LLVM::Linkage::External, name, value);
}

namespace {
struct DeclareEntriesPass
    : fsdp::impl::DeclareEntriesPassBase<DeclareEntriesPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void DeclareEntriesPass::runOnOperation() {
  ModuleOp module = getOperation();
  for (StringRef name :
       {FSDPRT_ARTEFACT_ABI_SYMBOL, FSDPRT_ARTEFACT_MANIFEST_SYMBOL})
    if (Operation *op = SymbolTable::lookupSymbolIn(module, name)) {
      op->emitOpError("has the name '")
          << name << "', which belongs to the artefact";
      return signalPassFailure();
    }
  FailureOr<SmallVector<func::FuncOp>> entries = collectEntries(module);
  if (failed(entries))
    return signalPassFailure();
  Manifest manifest(module);
  if (failed(manifest.collect(*entries)))
    return signalPassFailure();
  llvm::for_each(*entries, declareEntry);

  std::string text = manifest.write(target);
  text.push_back('\0');
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  createConstant(builder, loc, FSDPRT_ARTEFACT_ABI_SYMBOL, builder.getI32Type(),
                 builder.getI32IntegerAttr(FSDPRT_ABI_VERSION));
  createConstant(builder, loc, FSDPRT_ARTEFACT_MANIFEST_SYMBOL,
                 LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
                 builder.getStringAttr(text));
}
