//===- Inputs.cpp - arguments of an entry, from files or fill -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Inputs.h"

#include "Elements.h"
#include "fsdp/Support/Printable.h"

#include <cstring>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<Inputs> Inputs::open(const EntrySignature &entry, int64_t first,
                              int64_t count, SourceOptions options,
                              const MadeUp &madeUp,
                              std::vector<std::string> &notes) {
  std::vector<std::string> constants;
  for (const EntryTensor &value : entry.arguments) {
    constants.push_back(madeUp.constants.find(value));
    bool isMadeUp = madeUp.seed || !constants.back().empty();
    if (options.paths.empty() && !isMadeUp)
      return llvm::createStringError(
          "argument '" + printable(value.name) + "' of entry '" +
          printable(entry.name) +
          "' has no value: expected --in, --fill or --set, found none");
    options.use.push_back(!constants.back().empty() ? SourceOptions::Never
                          : isMadeUp                ? SourceOptions::IfThere
                                                    : SourceOptions::Always);
  }
  auto sources = Sources::open(entry, first, count, options, notes);
  if (!sources)
    return sources.takeError();
  Inputs inputs(entry, std::move(*sources));
  inputs.constants = std::move(constants);
  inputs.seed = madeUp.seed;
  return inputs;
}

/// Calls `write(begin, count, data)` for each run of elements of the full
/// tensor that the rank holds; padding becomes zero.
template <typename Write>
static void writeRuns(const EntryTensor &value, int64_t rank, char *data,
                      Write write) {
  if (!value.isShard())
    return write(0, value.type.elements, data);
  const int64_t bytes = value.type.dtype->bytes;
  const ParamLayout &layout = *value.layout;
  const int64_t shard =
      value.unit->grid.indexInGroup(value.unit->shardAxes, rank);
  const int64_t valid = layout.validInner(shard);
  for (int64_t outer = 0; outer < layout.outer; ++outer) {
    char *run = data + outer * layout.inner * bytes;
    write(outer * layout.line + shard * layout.inner, valid, run);
    std::memset(run + valid * bytes, 0, (layout.inner - valid) * bytes);
  }
}

void Inputs::fillTensor(const EntryTensor &value, int64_t rank,
                        char *data) const {
  const Dtype &dtype = *value.type.dtype;
  // A number that is promised to be the same on all ranks is likely to count
  // iterations or to choose an element: the smallest that does something.
  if (value.isUniform && dtype.isInteger()) {
    std::string one(dtype.bytes, 0);
    one[0] = 1; // little endian
    return setTensor(value, rank, one, data);
  }
  bool ofRank = !value.isUniform &&
                (value.role == Role::Value || value.role == Role::FullGrad);
  uint64_t key = fillKey(*seed, value.name, ofRank ? rank : 0);
  writeRuns(value, rank, data, [&](int64_t begin, int64_t count, char *run) {
    fill(dtype, key, begin, count, run);
  });
}

void Inputs::setTensor(const EntryTensor &value, int64_t rank,
                       StringRef element, char *data) const {
  writeRuns(value, rank, data, [&](int64_t, int64_t count, char *run) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(run + i * element.size(), element.data(), element.size());
  });
}

Error Inputs::load(int64_t rank, size_t index, void *data) const {
  const EntryTensor &value = entry.arguments[index];
  if (!constants[index].empty())
    setTensor(value, rank, constants[index], static_cast<char *>(data));
  else if (sources.has(rank, index))
    return sources.load(rank, index, data);
  else
    fillTensor(value, rank, static_cast<char *>(data));
  return Error::success();
}
