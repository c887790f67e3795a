//===- Inputs.cpp - arguments of an entry, from files or fill -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "Elements.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cstring>

using namespace mlir::fsdp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

bool mlir::fsdp::isPerRank(StringRef path) { return path.contains(rankMark); }

std::string mlir::fsdp::replaceMark(StringRef path, StringRef mark,
                                    StringRef by) {
  std::string result;
  for (size_t at; (at = path.find(mark)) != StringRef::npos;
       path = path.drop_front(at + mark.size()))
    result += (path.take_front(at) + by).str();
  return result + path.str();
}

std::string mlir::fsdp::pathOfRank(StringRef path, int64_t rank) {
  return replaceMark(path, rankMark, std::to_string(rank));
}

/// Dtype and shape must be those of the rank's own tensor, or of the full one.
Error Inputs::check(const SafetensorsReader &reader, const Value &value) const {
  const TensorType &type = perRank ? value.type : value.fullType;
  std::string expected = describe(type.dtype->tag, type.shape);
  const SafetensorsReader::Tensor *tensor = reader.find(value.name);
  if (!tensor) {
    if (seed)
      return Error::success();
    return llvm::createStringError(reader.path() + ": tensor '" + value.name +
                                   "' is missing: expected " + expected +
                                   ", found no tensor of this name");
  }
  if (tensor->tag != type.dtype->tag || tensor->shape != type.shape)
    return llvm::createStringError(reader.path() + ": tensor '" + value.name +
                                   "': expected " + expected + ", found " +
                                   describe(tensor->tag, tensor->shape));
  if (!perRank && value.isShard() &&
      value.unit->size(value.unit->foreignAxes) != 1)
    return llvm::createStringError(
        reader.path() + ": tensor '" + value.name +
        "' has other values along the axes that unit '" + value.unit->name +
        "' does not use: expected a file per rank, found a file name without " +
        rankMark);
  return Error::success();
}

Expected<Inputs> Inputs::open(const Entry &entry, int64_t first, int64_t count,
                              StringRef path, const MadeUp &madeUp,
                              std::vector<std::string> &notes) {
  Inputs inputs(entry);
  inputs.seed = madeUp.seed;
  for (const Value &value : entry.arguments)
    inputs.constants.push_back(madeUp.constants.find(value));
  if (path.empty()) {
    for (auto [value, constant] : llvm::zip(entry.arguments, inputs.constants))
      if (!madeUp.seed && constant.empty())
        return llvm::createStringError("argument '" + value.name +
                                       "' of entry '" + entry.name +
                                       "' has no value: expected --in, --fill "
                                       "or --set, found none");
    return inputs;
  }
  inputs.perRank = isPerRank(path);
  inputs.first = first;
  for (int64_t i = 0; i < (inputs.perRank ? count : 1); ++i) {
    auto reader = SafetensorsReader::open(pathOfRank(path, first + i));
    if (!reader)
      return reader.takeError();
    inputs.readers.push_back(std::move(*reader));
    for (auto [value, constant] : llvm::zip(entry.arguments, inputs.constants))
      if (constant.empty())
        if (Error error = inputs.check(inputs.readers.back(), value))
          return error;
  }
  llvm::StringSet<> known;
  for (const Value &value : entry.arguments)
    known.insert(value.name);
  std::vector<std::string> unknown = inputs.readers[0].names();
  llvm::erase_if(unknown, [&](const std::string &n) { return known.count(n); });
  if (!unknown.empty()) {
    // A checkpoint has thousands of them.
    size_t shown = std::min<size_t>(unknown.size(), 4);
    notes.push_back(inputs.readers[0].path() + ": ignored " +
                    std::to_string(unknown.size()) + " that entry '" +
                    entry.name + "' does not have: " +
                    llvm::join(unknown.begin(), unknown.begin() + shown, ", ") +
                    (shown < unknown.size() ? ", ..." : ""));
  }
  return inputs;
}

/// Reads the share of `shard` out of a full tensor; padding becomes zero.
Error Inputs::cut(const SafetensorsReader &reader, const Value &value,
                  int64_t shard, char *data) const {
  const SafetensorsReader::Tensor &tensor = *reader.find(value.name);
  const ParamLayout &layout = *value.layout;
  const int64_t element = value.type.dtype->bytes;
  const int64_t valid = layout.validInner(shard) * element;
  const int64_t run = layout.inner * element, line = layout.line * element;
  const int64_t begin = shard * run;
  // Runs that are short are not worth a call each: then whole lines are read,
  // many at a time, and most of what was read is left where it is.
  const int64_t lines =
      valid >= 65536 || line > 65536
          ? 1
          : std::max<int64_t>((4 << 20) / std::max<int64_t>(line, 1), 1);
  std::vector<char> buffer;
  for (int64_t first = 0; first < layout.outer && valid != 0; first += lines) {
    if (lines == 1) {
      if (Error error = reader.read(tensor, first * line + begin,
                                    data + first * run, valid))
        return error;
      continue;
    }
    int64_t count = std::min(lines, layout.outer - first);
    buffer.resize(count * line);
    if (Error error =
            reader.read(tensor, first * line, buffer.data(), count * line))
      return error;
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(data + (first + i) * run, buffer.data() + i * line + begin,
                  valid);
  }
  if (valid != run)
    for (int64_t outer = 0; outer < layout.outer; ++outer)
      std::memset(data + outer * run + valid, 0, run - valid);
  return Error::success();
}

/// Calls `write(begin, count, data)` for each run of elements of the full
/// tensor that the rank holds; padding becomes zero.
template <typename Write>
static void writeRuns(const Value &value, int64_t rank, char *data,
                      Write write) {
  if (!value.isShard())
    return write(0, value.type.elements, data);
  const int64_t bytes = value.type.dtype->bytes;
  const ParamLayout &layout = *value.layout;
  const int64_t shard = value.unit->index(value.unit->shardAxes, rank);
  const int64_t valid = layout.validInner(shard);
  for (int64_t outer = 0; outer < layout.outer; ++outer) {
    char *run = data + outer * layout.inner * bytes;
    write(outer * layout.line + shard * layout.inner, valid, run);
    std::memset(run + valid * bytes, 0, (layout.inner - valid) * bytes);
  }
}

void Inputs::fillValue(const Value &value, int64_t rank, char *data) const {
  const Dtype &dtype = *value.type.dtype;
  // A number that is promised to be the same on all ranks is likely to count
  // iterations or to choose an element: the smallest that does something.
  if (value.isUniform && dtype.kind == Dtype::Integer) {
    std::string one(dtype.bytes, 0);
    one[0] = 1; // little endian
    return setValue(value, rank, one, data);
  }
  bool ofRank = !value.isUniform &&
                (value.role == Role::Value || value.role == Role::FullGrad);
  uint64_t key = fillKey(*seed, value.name, ofRank ? rank : 0);
  writeRuns(value, rank, data, [&](int64_t begin, int64_t count, char *run) {
    fill(dtype, key, begin, count, run);
  });
}

void Inputs::setValue(const Value &value, int64_t rank, StringRef element,
                      char *data) const {
  writeRuns(value, rank, data, [&](int64_t, int64_t count, char *run) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(run + i * element.size(), element.data(), element.size());
  });
}

Error Inputs::load(int64_t rank, size_t index, void *data) const {
  const Value &value = entry.arguments[index];
  if (!constants[index].empty()) {
    setValue(value, rank, constants[index], static_cast<char *>(data));
    return Error::success();
  }
  const SafetensorsReader *reader =
      readers.empty() ? nullptr : &readers[perRank ? rank - first : 0];
  const SafetensorsReader::Tensor *tensor =
      reader ? reader->find(value.name) : nullptr;
  if (!tensor) {
    fillValue(value, rank, static_cast<char *>(data));
    return Error::success();
  }
  if (perRank || !value.isShard())
    return reader->read(*tensor, 0, data, value.type.bytes());
  return cut(*reader, value, value.unit->index(value.unit->shardAxes, rank),
             static_cast<char *>(data));
}
