//===- Results.cpp - results of all ranks, as lines and files -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A full tensor is never built: it is a sequence of pieces of the ranks' shards
// (a View), and one pass over the pieces computes checksum, minimum and maximum
// and writes the file. Tensors are independent, so that each processor takes
// one after another.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Results.h"

#include "Elements.h"
#include "Threads.h"
#include "fsdp/Launcher/Inputs.h"
#include "fsdp/Launcher/Safetensors.h"
#include "fsdp/Support/Printable.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// A tensor of the output, made of buffers of ranks.
struct View {
  std::string label; ///< in the result line
  const EntryTensor *value;
  const TensorType *type;
  std::vector<const void *> parts; ///< the shards in order, or the whole
  bool assembled;                  ///< parts are shards of a full tensor
  size_t file = 0, tensor = 0;

  template <typename Function>
  Error forEachPiece(Function function) const;
};

/// Calls `function(data, elements)` with the tensor's elements in order.
template <typename Function>
Error View::forEachPiece(Function function) const {
  if (!assembled)
    return function(parts[0], type->elements);
  const ParamLayout &layout = *value->layout;
  const int64_t run = layout.inner * type->dtype->bytes;
  for (int64_t outer = 0; outer < layout.outer; ++outer)
    for (size_t shard = 0; shard < parts.size(); ++shard)
      if (int64_t valid = layout.validInner(shard))
        if (Error error = function(
                static_cast<const char *>(parts[shard]) + outer * run, valid))
          return error;
  return Error::success();
}

/// Collects short pieces for fewer calls of the system.
class BufferedWriter {
public:
  BufferedWriter(const SafetensorsWriter &writer, size_t tensor)
      : writer(writer), tensor(tensor) {}

  Error add(const void *data, int64_t bytes) {
    const char *begin = static_cast<const char *>(data);
    if (bytes >= limit) {
      if (Error error = flush())
        return error;
      Error error = writer.write(tensor, written, data, bytes);
      written += bytes;
      return error;
    }
    buffer.insert(buffer.end(), begin, begin + bytes);
    return int64_t(buffer.size()) < limit ? Error::success() : flush();
  }

  Error flush() {
    Error error = writer.write(tensor, written, buffer.data(), buffer.size());
    written += buffer.size();
    buffer.clear();
    return error;
  }

private:
  static constexpr int64_t limit = 1 << 18;
  const SafetensorsWriter &writer;
  const size_t tensor;
  std::vector<char> buffer;
  int64_t written = 0;
};

/// Two ranks that should have the same and do not.
struct Difference {
  int64_t first, second; ///< ranks
  int64_t element;       ///< of their buffers
};

class Collector {
public:
  Collector(const Manifest &manifest, const EntrySignature &entry,
            const ResultBuffer &buffer, StringRef path,
            std::optional<int64_t> onlyRank)
      : manifest(manifest), entry(entry), buffer(buffer), path(path),
        firstRank(onlyRank.value_or(0)),
        endRank(onlyRank ? *onlyRank + 1 : manifest.ranks) {}

  Error makeViews();
  Error createFiles();
  Expected<std::vector<std::string>> process(Progress &progress);
  Expected<std::vector<OutputFile>> finish();

private:
  Error addValue(size_t index);
  void addPerRank(size_t index);
  std::optional<Difference> compare(size_t index,
                                    llvm::function_ref<int64_t(int64_t)> key);
  Expected<std::string> processView(const View &view);

  const Manifest &manifest;
  const EntrySignature &entry;
  const ResultBuffer &buffer;
  const std::string path;
  const int64_t firstRank, endRank; ///< of those with a file each
  std::vector<View> views;
  std::vector<SafetensorsWriter> writers;
};

void Collector::addPerRank(size_t index) {
  const EntryTensor &value = entry.results[index];
  for (int64_t rank = firstRank; rank < endRank; ++rank)
    views.push_back({value.name + "@" + std::to_string(rank),
                     &value,
                     &value.type,
                     {buffer(rank, index)},
                     false,
                     static_cast<size_t>(rank - firstRank),
                     index});
}

/// Compares the buffers of all ranks that have the same key.
std::optional<Difference>
Collector::compare(size_t index, llvm::function_ref<int64_t(int64_t)> key) {
  const TensorType &type = entry.results[index].type;
  const int64_t element = type.dtype->bytes, bytes = type.bytes();
  std::vector<int64_t> firstOf(manifest.ranks, -1); // by key
  for (int64_t rank = 0; rank < manifest.ranks; ++rank) {
    int64_t &first = firstOf[key(rank)];
    if (first < 0) {
      first = rank;
      continue;
    }
    const char *a = static_cast<const char *>(buffer(first, index));
    const char *b = static_cast<const char *>(buffer(rank, index));
    if (std::memcmp(a, b, bytes) != 0)
      return Difference{first, rank,
                        (std::mismatch(a, a + bytes, b).first - a) / element};
  }
  return std::nullopt;
}

Error Collector::addValue(size_t index) {
  const EntryTensor &value = entry.results[index];
  if (isPerRank(path)) {
    addPerRank(index);
    return Error::success();
  }
  auto differ = [&](const Difference &d, const Twine &advice) {
    int64_t element = d.element;
    std::string place = "element ";
    if (value.isShard()) {
      int64_t shard =
          value.unit->grid.indexInGroup(value.unit->shardAxes, d.first);
      element = value.layout->fullIndex(shard, d.element);
      if (element < 0) {
        element = d.element;
        place = "padding, element of the shard ";
      }
    }
    return llvm::createStringError(
        "result '" + printable(value.name) + "' differs between rank " +
        Twine(d.first) + " and rank " + Twine(d.second) + ", first at " +
        place + Twine(value.type.dtype->trueElements(element)) + advice);
  };

  // Along foreign axes there is no one full tensor.
  const UnitRanks *unit = value.unit;
  if (unit && unit->grid.groupSize(unit->foreignAxes) != 1) {
    auto key = [&](int64_t rank) {
      int64_t group = unit->grid.indexInGroup(unit->foreignAxes, rank);
      return value.isShard()
                 ? group * unit->grid.groupSize(unit->shardAxes) +
                       unit->grid.indexInGroup(unit->shardAxes, rank)
                 : group;
    };
    if (value.role != Role::FullGrad)
      if (auto difference = compare(index, key))
        return differ(*difference, "");
    if (!path.empty())
      return llvm::createStringError(
          "result '" + value.name + "' is another one for each coordinate on " +
          "the axes that unit '" + unit->name +
          "' does not use: expected a file per rank, --out with {rank}");
    addPerRank(index);
    return Error::success();
  }

  if (value.isShard()) {
    auto shardOf = [&](int64_t rank) {
      return unit->grid.indexInGroup(unit->shardAxes, rank);
    };
    if (auto difference = compare(index, shardOf))
      return differ(*difference, "");
    std::vector<const void *> shards(unit->grid.groupSize(unit->shardAxes));
    for (int64_t rank = 0; rank < manifest.ranks; ++rank)
      if (unit->grid.indexInGroup(unit->replicateAxes, rank) == 0)
        shards[shardOf(rank)] = buffer(rank, index);
    views.push_back({value.name, &value, &value.fullType, std::move(shards),
                     true, 0, index});
    return Error::success();
  }

  if (auto difference = compare(index, [](int64_t) { return 0; })) {
    if (value.role == Role::Full)
      return differ(*difference, "");
    if (!path.empty())
      return differ(*difference, "; --out with {rank} writes a file per rank");
    addPerRank(index);
    return Error::success();
  }
  views.push_back(
      {value.name, &value, &value.type, {buffer(0, index)}, false, 0, index});
  return Error::success();
}

Error Collector::makeViews() {
  llvm::StringSet<> names;
  for (size_t i = 0; i < entry.results.size(); ++i) {
    if (!path.empty() && !names.insert(entry.results[i].name).second)
      return llvm::createStringError(
          "entry '" + entry.name + "' has two results called '" +
          entry.results[i].name + "': a file can hold one of them");
    if (Error error = addValue(i))
      return error;
  }
  return Error::success();
}

Error Collector::createFiles() {
  if (path.empty())
    return Error::success();
  int64_t files = isPerRank(path) ? endRank - firstRank : 1;
  for (int64_t file = 0; file < files; ++file) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const EntryTensor &value : entry.results)
      tensors.push_back(
          {value.name, isPerRank(path) ? &value.type : &value.fullType});
    auto writer =
        SafetensorsWriter::create(pathOfRank(path, firstRank + file), tensors);
    if (!writer)
      return writer.takeError();
    writers.push_back(std::move(*writer));
  }
  return Error::success();
}

Expected<std::string> Collector::processView(const View &view) {
  Summary summary(*view.type->dtype);
  std::optional<BufferedWriter> writer;
  if (!writers.empty())
    writer.emplace(writers[view.file], view.tensor);
  const int64_t element = view.type->dtype->bytes;
  auto take = [&](const void *data, int64_t elements) -> Error {
    // In parts that stay in the cache between summary and write.
    // A part has whole groups of packed elements.
    constexpr int64_t part = 3 << 16;
    for (int64_t begin = 0; begin < elements; begin += part) {
      const char *at = static_cast<const char *>(data) + begin * element;
      int64_t count = std::min(part, elements - begin);
      summary.add(at, count);
      if (writer)
        if (Error error = writer->add(at, count * element))
          return error;
    }
    return Error::success();
  };
  if (Error error = view.forEachPiece(take))
    return error;
  if (writer)
    if (Error error = writer->flush())
      return error;
  return printable(view.label) + " " + view.type->text + " " + summary.text();
}

Expected<std::vector<std::string>> Collector::process(Progress &progress) {
  std::vector<std::string> lines(views.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Error failure = Error::success();
  auto work = [&](bool shows) {
    for (size_t i; (i = next++) < views.size();) {
      if (shows)
        progress.show("result " + std::to_string(i + 1) + " of " +
                      std::to_string(views.size()));
      auto line = processView(views[i]);
      std::lock_guard<std::mutex> lock(mutex);
      if (line)
        lines[i] = std::move(*line);
      else
        failure = llvm::joinErrors(std::move(failure), line.takeError());
    }
  };
  // Fewer threads than processors will do.
  Threads threads;
  size_t processors = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(processors, views.size()); ++i)
    if (threads.start([&] { work(false); }))
      break;
  work(true);
  threads.join();
  if (failure)
    return failure;
  return lines;
}

Expected<std::vector<OutputFile>> Collector::finish() {
  std::vector<OutputFile> files;
  for (SafetensorsWriter &writer : writers) {
    files.push_back(writer.takeFile());
    if (Error error = files.back().finish())
      return error;
  }
  return files;
}

} // namespace

Expected<Results> mlir::fsdp::launch::writeResults(
    const Manifest &manifest, const EntrySignature &entry,
    const ResultBuffer &buffer, StringRef path, std::optional<int64_t> onlyRank,
    Progress &progress) {
  Collector collector(manifest, entry, buffer, path, onlyRank);
  if (Error error = collector.makeViews())
    return error;
  if (Error error = collector.createFiles())
    return error;
  auto lines = collector.process(progress);
  if (!lines)
    return lines.takeError();
  auto files = collector.finish();
  if (!files)
    return files.takeError();
  return Results{std::move(*lines), std::move(*files)};
}
