//===- Manifest.cpp - what an artefact says about itself ------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Manifest.h"

#include "Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static Error invalid(const Twine &what) {
  return llvm::createStringError("invalid manifest: " + what);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Expected<std::string> getString(const llvm::json::Object &object,
                                       StringRef key) {
  if (auto text = object.getString(key))
    return text->str();
  return invalid("no string '" + key + "'");
}

static Expected<int64_t> getInteger(const llvm::json::Object &object,
                                    StringRef key) {
  if (auto number = object.getInteger(key))
    return *number;
  return invalid("no integer '" + key + "'");
}

static Expected<std::vector<int64_t>>
getIntegers(const llvm::json::Object &object, StringRef key) {
  const llvm::json::Array *array = object.getArray(key);
  std::vector<int64_t> result;
  if (array)
    for (const llvm::json::Value &value : *array)
      if (auto number = value.getAsInteger())
        result.push_back(*number);
  if (!array || result.size() != array->size())
    return invalid("no array of integers '" + key + "'");
  return result;
}

/// Calls `parse` with each object of the array `key`.
static Error
forEach(const llvm::json::Object &object, StringRef key,
        llvm::function_ref<Error(const llvm::json::Object &)> parse) {
  const llvm::json::Array *array = object.getArray(key);
  if (!array)
    return invalid("no array '" + key + "'");
  for (const llvm::json::Value &value : *array) {
    const llvm::json::Object *element = value.getAsObject();
    if (!element)
      return invalid("an element of '" + key + "' is no object");
    if (Error error = parse(*element))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static Expected<std::unique_ptr<UnitRanks>>
parseUnit(const llvm::json::Object &object, const Grid &grid) {
  auto unit = std::make_unique<UnitRanks>();
  auto name = getString(object, "name");
  if (!name)
    return name.takeError();
  unit->name = *name;
  unit->grid = grid;
  std::vector<bool> used(grid.shape.size());
  for (auto [key, axes] : {std::pair("shard_axes", &unit->shardAxes),
                           std::pair("replicate_axes", &unit->replicateAxes)}) {
    auto list = getIntegers(object, key);
    if (!list)
      return list.takeError();
    for (int64_t axis : *list) {
      if (axis < 0 || axis >= int64_t(grid.shape.size()) || used[axis])
        return invalid("unit '" + unit->name + "': axis " + Twine(axis) +
                       " in " + key);
      used[axis] = true;
    }
    *axes = *list;
  }
  for (size_t axis = 0; axis < grid.shape.size(); ++axis)
    if (!used[axis])
      unit->foreignAxes.push_back(axis);
  return unit;
}

static Expected<EntryTensor> parseTensor(const llvm::json::Object &object,
                                         const Manifest &manifest) {
  EntryTensor value;
  auto name = getString(object, "name");
  if (!name)
    return name.takeError();
  value.name = *name;
  value.isUniform = object.getBoolean("uniform").value_or(false);
  auto role = getString(object, "role");
  if (!role)
    return role.takeError();
  auto known = llvm::StringSwitch<std::optional<Role>>(*role)
                   .Case("value", Role::Value)
                   .Case("full", Role::Full)
                   .Case("full_grad", Role::FullGrad)
                   .Case("shard", Role::Shard)
                   .Case("shard_grad", Role::ShardGrad)
                   .Default(std::nullopt);
  if (!known)
    return invalid("unknown role '" + *role + "'");
  value.role = *known;

  auto getType = [&](StringRef key) -> Expected<TensorType> {
    auto text = getString(object, key);
    if (!text)
      return text.takeError();
    if (auto type = TensorType::parse(*text))
      return *type;
    return invalid(key + " '" + *text + "' of '" + value.name +
                   "' is not supported");
  };
  if (value.role != Role::Value) {
    auto unit = getString(object, "unit");
    if (!unit)
      return unit.takeError();
    auto found = llvm::find_if(manifest.units,
                               [&](auto &u) { return u->name == *unit; });
    if (found == manifest.units.end())
      return invalid("'" + value.name + "' is of unknown unit '" + *unit + "'");
    value.unit = found->get();
  }
  auto type = getType("type");
  if (!type)
    return type.takeError();
  value.type = value.fullType = *type;
  if (!value.isShard())
    return value;

  auto full = getType("full_type");
  if (!full)
    return full.takeError();
  value.fullType = *full;
  auto dim = getInteger(object, "shard_dim");
  if (!dim)
    return dim.takeError();
  std::vector<int64_t> shard = value.fullType.storageShape();
  value.layout = ParamLayout::get(
      shard, *dim, value.unit->grid.groupSize(value.unit->shardAxes));
  if (value.layout)
    shard[*dim] = value.layout->chunk;
  if (!value.layout || value.fullType.dtype != value.type.dtype ||
      shard != value.type.storageShape())
    return invalid("'" + value.name + "': " + value.type.text +
                   " is no shard of " + value.fullType.text +
                   " along dimension " + Twine(*dim));
  return value;
}

static Expected<EntrySignature> parseEntry(const llvm::json::Object &object,
                                           const Manifest &manifest) {
  EntrySignature entry;
  auto name = getString(object, "name");
  if (!name)
    return name.takeError();
  entry.name = *name;
  for (auto [key, values] : {std::pair("args", &entry.arguments),
                             std::pair("results", &entry.results)}) {
    Error error = forEach(
        object, key, [&, to = values](const llvm::json::Object &o) -> Error {
          auto value = parseTensor(o, manifest);
          if (!value)
            return value.takeError();
          to->push_back(std::move(*value));
          return Error::success();
        });
    if (error)
      return error;
  }
  return entry;
}

Expected<Manifest> Manifest::parse(StringRef json) {
  auto value = parseJson(json);
  if (!value)
    return invalid(llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return invalid("no object");

  Manifest manifest;
  auto target = getString(*object, "target");
  if (!target)
    return target.takeError();
  manifest.target = *target;
  auto hash = getString(*object, "plan_hash");
  if (!hash)
    return hash.takeError();
  manifest.planHash = *hash;
  if (object->get("driver")) {
    auto driver = getInteger(*object, "driver");
    if (!driver)
      return driver.takeError();
    if (*driver < 0 || *driver > INT32_MAX)
      return invalid("driver " + Twine(*driver));
    manifest.driver = *driver;
  }
  auto grid = getIntegers(*object, "grid");
  if (!grid)
    return grid.takeError();
  manifest.grid.shape = *grid;
  auto ranks = getInteger(*object, "ranks");
  if (!ranks)
    return ranks.takeError();
  manifest.ranks = 1;
  for (int64_t extent : manifest.grid.shape) {
    if (extent < 1 || extent > 65536 || manifest.ranks > 65536)
      return invalid("axis of size " + Twine(extent) + " in the grid");
    manifest.ranks *= extent;
  }
  if (manifest.grid.shape.empty() || manifest.ranks != *ranks)
    return invalid(Twine(*ranks) + " ranks in a grid of " +
                   Twine(manifest.ranks));

  if (Error error =
          forEach(*object, "units", [&](const llvm::json::Object &o) -> Error {
            auto unit = parseUnit(o, manifest.grid);
            if (!unit)
              return unit.takeError();
            manifest.units.push_back(std::move(*unit));
            return Error::success();
          }))
    return error;
  if (Error error = forEach(*object, "entries",
                            [&](const llvm::json::Object &o) -> Error {
                              auto entry = parseEntry(o, manifest);
                              if (!entry)
                                return entry.takeError();
                              manifest.entries.push_back(std::move(*entry));
                              return Error::success();
                            }))
    return error;
  return manifest;
}
