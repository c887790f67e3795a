//===- Sources.cpp - arguments of an entry, in files ----------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Sources.h"

#include "Elements.h"
#include "fsdp/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <map>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

bool mlir::fsdp::launch::isPerRank(StringRef path) {
  return path.contains(rankMark);
}

std::string mlir::fsdp::launch::replaceMark(StringRef path, StringRef mark,
                                            StringRef by) {
  std::string result;
  for (size_t at; (at = path.find(mark)) != StringRef::npos;
       path = path.drop_front(at + mark.size()))
    result += (path.take_front(at) + by).str();
  return result + path.str();
}

std::string mlir::fsdp::launch::pathOfRank(StringRef path, int64_t rank) {
  return replaceMark(path, rankMark, std::to_string(rank));
}

//===----------------------------------------------------------------------===//
// Open and check
//===----------------------------------------------------------------------===//

static int64_t shardOf(const EntryTensor &value, int64_t rank) {
  return value.unit->grid.indexInGroup(value.unit->shardAxes, rank);
}

/// The shape of a rank's share without its padding.
static std::vector<int64_t> trueShape(const EntryTensor &value, int64_t rank) {
  std::vector<int64_t> shape = value.type.shape;
  if (!value.isShard())
    return shape;
  const size_t dim = value.layout->dim;
  int64_t extent = value.layout->trueExtent(shardOf(value, rank));
  shape[dim] =
      dim + 1 == shape.size() ? value.type.dtype->trueElements(extent) : extent;
  return shape;
}

/// Compares a tensor with the argument that it is for.
Expected<Sources::Source> Sources::check(const EntryTensor &value, int64_t rank,
                                         Checkpoint::Place place, bool perRank,
                                         Convert convert) const {
  const TensorType &type = perRank ? value.type : value.fullType;
  const SafetensorsReader::Tensor &tensor = *place.tensor;
  Source source{place, type.dtype, perRank, true};
  std::string hint;
  auto wrong = [&](const Twine &what) {
    return llvm::createStringError(place.reader->path() + ": tensor '" +
                                   printable(value.name) + "'" + what);
  };

  std::vector<int64_t> without = perRank ? trueShape(value, rank) : type.shape;
  bool isShape = tensor.shape == type.shape;
  if (!isShape && tensor.shape == without) {
    isShape = true;
    source.isPadded = false;
  }
  // Files have tensors without dimensions, entries one element of one
  // dimension.
  if (tensor.shape.empty() && type.shape == std::vector<int64_t>{1})
    isShape = true;

  bool isDtype = tensor.tag == type.dtype->tag;
  if (const Dtype *dtype = Dtype::byTag(tensor.tag);
      !isDtype && dtype && canWiden(*dtype, *type.dtype)) {
    source.dtype = dtype;
    isDtype = convert == Convert::Widen;
    if (isShape && !isDtype)
      hint = "; --convert=widen reads it without loss";
  }
  if (const Dtype *dtype = Dtype::byTag(tensor.tag);
      isShape && !isDtype && dtype && dtype->kind == Dtype::Unsigned &&
      type.dtype->kind == Dtype::Integer)
    hint = std::string("; the type of ") + dtype->tag + " is " + dtype->name;
  if (!isShape || !isDtype) {
    std::string expected = describe(type.dtype->tag, type.shape);
    if (without != type.shape)
      expected += ", or without padding " + describe(type.dtype->tag, without);
    return wrong(": expected " + expected + ", found " +
                 describe(printable(tensor.tag), tensor.shape) + hint);
  }
  if (!perRank && value.isShard() &&
      value.unit->grid.groupSize(value.unit->foreignAxes) != 1)
    return wrong(" has other values along the axes that unit '" +
                 printable(value.unit->name) +
                 "' does not use: expected a file per rank, found a file name "
                 "without " +
                 rankMark);
  return source;
}

/// Finds the arguments of `rank` in all files. A tensor that two files have may
/// be two tensors, so it is refused, whether it is an argument or not.
Error Sources::openRank(int64_t rank, const SourceOptions &options) {
  llvm::StringMap<const Checkpoint *> owners;
  std::vector<std::pair<const Checkpoint *, bool>> all;
  for (const auto &checkpoint : checkpoints)
    all.push_back({checkpoint.get(), false});
  for (const auto &checkpoint : ofRanks.back())
    all.push_back({checkpoint.get(), true});
  if (all.size() > 1)
    for (auto [checkpoint, perRank] : all)
      for (const std::string &name : checkpoint->names())
        if (auto [owner, isNew] = owners.try_emplace(name, checkpoint); !isNew)
          return llvm::createStringError(
              "tensor '" + printable(name) + "' is in two files, " +
              owner->getValue()->getPath() + " and " + checkpoint->getPath() +
              ": expected it in one");

  std::vector<Source> sources(entry.arguments.size());
  for (auto [value, source, use] :
       llvm::zip(entry.arguments, sources, options.use)) {
    if (use == SourceOptions::Never)
      continue;
    for (auto [checkpoint, perRank] : all) {
      Checkpoint::Place place = checkpoint->find(value.name);
      if (!place.tensor)
        continue;
      auto checked = check(value, rank, place, perRank, options.convert);
      if (!checked)
        return checked.takeError();
      source = *checked;
    }
    if (source.place.tensor || use == SourceOptions::IfThere)
      continue;
    const TensorType &type = all.front().second ? value.type : value.fullType;
    auto paths =
        llvm::map_range(all, [](auto &pair) { return pair.first->getPath(); });
    return llvm::createStringError(
        llvm::join(paths, ", ") + ": tensor '" + printable(value.name) +
        "' is missing: expected " + describe(type.dtype->tag, type.shape) +
        ", found no tensor of this name");
  }
  places.push_back(std::move(sources));
  return Error::success();
}

/// Says what was read in another form, and what was not read.
void Sources::note(const SourceOptions &options,
                   std::vector<std::string> &notes) {
  std::map<std::pair<StringRef, StringRef>, int> widened;
  for (auto [value, source] : llvm::zip(entry.arguments, places[0]))
    if (source.place.tensor && source.dtype != value.type.dtype)
      ++widened[{source.dtype->tag, value.type.dtype->tag}];
  std::vector<std::string> kinds;
  for (auto &[tags, count] : widened)
    kinds.push_back(std::to_string(count) + " from " + tags.first.str() +
                    " to " + tags.second.str());
  if (!kinds.empty())
    notes.push_back("converted without loss: " + llvm::join(kinds, ", "));

  llvm::StringSet<> known;
  for (const EntryTensor &value : entry.arguments)
    known.insert(value.name);
  auto unread = [&](const Checkpoint &checkpoint) {
    std::vector<std::string> unknown = checkpoint.names();
    llvm::erase_if(unknown, [&](auto &name) { return known.contains(name); });
    if (unknown.empty())
      return;
    // A checkpoint has thousands of them.
    size_t shown = std::min<size_t>(unknown.size(), 4);
    auto names = llvm::map_range(
        llvm::ArrayRef(unknown).take_front(shown),
        [](const std::string &name) { return printable(name); });
    notes.push_back(checkpoint.getPath() + ": ignored " +
                    std::to_string(unknown.size()) + " that entry '" +
                    printable(entry.name) +
                    "' does not have: " + llvm::join(names, ", ") +
                    (shown < unknown.size() ? ", ..." : ""));
  };
  for (const auto &checkpoint : checkpoints)
    unread(*checkpoint);
  for (const auto &checkpoint : ofRanks[0])
    unread(*checkpoint);
}

Expected<Sources> Sources::open(const EntrySignature &entry, int64_t first,
                                int64_t count, const SourceOptions &options,
                                std::vector<std::string> &notes) {
  Sources sources(entry);
  sources.first = first;
  if (options.paths.empty())
    return sources;
  llvm::StringSet<> wanted;
  for (auto [value, use] : llvm::zip(entry.arguments, options.use))
    if (use != SourceOptions::Never)
      wanted.insert(value.name);
  auto open = [&](StringRef path, auto &into) -> Error {
    auto checkpoint = Checkpoint::open(path, wanted);
    if (!checkpoint)
      return checkpoint.takeError();
    into.push_back(std::make_unique<Checkpoint>(std::move(*checkpoint)));
    return Error::success();
  };
  for (const std::string &path : options.paths)
    if (!isPerRank(path))
      if (Error error = open(path, sources.checkpoints))
        return error;
  // Without files of ranks all ranks find the same.
  const bool ranksDiffer = llvm::any_of(options.paths, isPerRank);
  for (int64_t rank = first; rank < first + (ranksDiffer ? count : 1); ++rank) {
    auto &own = sources.ofRanks.emplace_back();
    for (const std::string &path : options.paths)
      if (isPerRank(path))
        if (Error error = open(pathOfRank(path, rank), own))
          return error;
    if (Error error = sources.openRank(rank, options))
      return error;
  }
  sources.note(options, notes);
  return sources;
}

//===----------------------------------------------------------------------===//
// Load
//===----------------------------------------------------------------------===//

/// What of a tensor in a file becomes a rank's: `outer` runs of `valid`
/// elements, of which the first begins at `begin` and the next ones are `line`
/// apart; in memory a run has `inner` elements, the last ones zero.
struct Sources::Runs {
  int64_t outer, line, begin, valid, inner;
};

Error Sources::load(int64_t rank, size_t index, void *data) const {
  const EntryTensor &value = entry.arguments[index];
  const Source &source = getSource(rank, index);
  Runs runs{1, value.type.elements, 0, value.type.elements,
            value.type.elements};
  if (value.isShard() && !(source.perRank && source.isPadded)) {
    const ParamLayout &layout = *value.layout;
    const int64_t shard = shardOf(value, rank);
    const int64_t valid = layout.validInner(shard);
    runs = source.perRank ? Runs{layout.outer, valid, 0, valid, layout.inner}
                          : Runs{layout.outer, layout.line,
                                 shard * layout.inner, valid, layout.inner};
  }

  const Dtype &from = *source.dtype, &to = *value.type.dtype;
  const bool isSame = &from == &to;
  char *out = static_cast<char *>(data);
  auto read = [&](int64_t element, int64_t count, char *into) {
    return source.place.reader->read(*source.place.tensor, element * from.bytes,
                                     into, count * from.bytes);
  };
  auto put = [&](const char *in, int64_t element, int64_t count) {
    char *at = out + element * to.bytes;
    if (isSame)
      std::memcpy(at, in, count * to.bytes);
    else
      widen(from, to, in, count, at);
  };
  std::vector<char> buffer;
  constexpr int64_t piece = 1 << 20; // elements
  // Runs that are short are not worth a call each: then whole lines are read,
  // many at a time, and most of what was read is left where it is.
  const bool isLong =
      runs.valid * from.bytes >= 65536 || runs.line * from.bytes > 65536;
  const int64_t lines =
      isLong ? 1
             : std::max<int64_t>(piece / std::max<int64_t>(runs.line, 1), 1);
  for (int64_t outer = 0; outer < runs.outer && runs.valid != 0;
       outer += lines) {
    if (!isLong) {
      int64_t count = std::min(lines, runs.outer - outer);
      buffer.resize(count * runs.line * from.bytes);
      if (Error error =
              read(outer * runs.line, count * runs.line, buffer.data()))
        return error;
      for (int64_t i = 0; i < count; ++i)
        put(buffer.data() + (i * runs.line + runs.begin) * from.bytes,
            (outer + i) * runs.inner, runs.valid);
      continue;
    }
    int64_t begin = outer * runs.line + runs.begin;
    if (isSame) {
      if (Error error =
              read(begin, runs.valid, out + outer * runs.inner * to.bytes))
        return error;
      continue;
    }
    for (int64_t done = 0; done < runs.valid; done += piece) {
      int64_t count = std::min(piece, runs.valid - done);
      buffer.resize(count * from.bytes);
      if (Error error = read(begin + done, count, buffer.data()))
        return error;
      put(buffer.data(), outer * runs.inner + done, count);
    }
  }
  if (runs.valid != runs.inner)
    for (int64_t outer = 0; outer < runs.outer; ++outer)
      std::memset(out + (outer * runs.inner + runs.valid) * to.bytes, 0,
                  (runs.inner - runs.valid) * to.bytes);
  return Error::success();
}
