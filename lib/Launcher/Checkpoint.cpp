//===- Checkpoint.cpp - tensors in one file or in several -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Checkpoint.h"

#include "Json.h"
#include "fsdp/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// True for JSON. A safetensors file begins with a length, whose upper four
/// bytes are zeros; no text has those.
static Expected<bool> isText(const File &file) {
  auto size = file.size();
  if (!size)
    return size.takeError();
  char begin[8] = {};
  if (*size < 8)
    return false;
  if (Error error = file.read(0, begin, 8))
    return error;
  StringRef text(begin, 8);
  return !text.contains('\0') && text.ltrim(" \t\r\n").starts_with("{");
}

/// An index names files of its own folder; it is no way to read others.
static bool isInFolder(StringRef file) {
  return !file.empty() && !file.contains('\0') &&
         !llvm::sys::path::is_absolute(file) &&
         !llvm::is_contained(llvm::make_range(llvm::sys::path::begin(file),
                                              llvm::sys::path::end(file)),
                             "..");
}

Error Checkpoint::addFile(File file) {
  auto reader = SafetensorsReader::open(std::move(file));
  if (!reader)
    return reader.takeError();
  readers.push_back(std::make_unique<SafetensorsReader>(std::move(*reader)));
  return Error::success();
}

Error Checkpoint::openIndex(const File &file, const llvm::StringSet<> &wanted) {
  auto invalid = [&](const Twine &what) {
    return llvm::createStringError(
        path + ": not a valid index of safetensors: " + what);
  };
  auto text = file.readAll(100'000'000);
  if (!text)
    return text.takeError();
  bool hasMap = false;
  Error error =
      forEachMember(*text, [&](StringRef name, StringRef value) -> Error {
        if (name != "weight_map") {
          auto ignored = parseJson(value);
          return ignored ? Error::success() : ignored.takeError();
        }
        hasMap = true;
        return forEachMember(value,
                             [&](StringRef tensor, StringRef token) -> Error {
                               auto name = parseJson(token);
                               if (!name)
                                 return name.takeError();
                               auto file = name->getAsString();
                               if (!file || !isInFolder(*file))
                                 return llvm::createStringError(
                                     "tensor '" + printable(tensor) +
                                     "': expected the name of a file in the "
                                     "folder of the index, found " +
                                     printable(token));
                               files[tensor] = file->str();
                               return Error::success();
                             });
      });
  if (error)
    return invalid(llvm::toString(std::move(error)));
  if (!hasMap)
    return invalid("expected an object 'weight_map'");

  // In the order of their names, so that messages do not depend on a hash.
  std::map<std::string, std::vector<std::string>> byFile;
  for (const auto &entry : files)
    if (wanted.contains(entry.getKey()))
      byFile[entry.getValue()].push_back(entry.getKey().str());
  for (auto &[name, tensors] : byFile) {
    llvm::SmallString<256> place(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(place, name);
    auto part = File::open(place);
    if (!part)
      return part.takeError();
    if (Error error = addFile(std::move(*part)))
      return error;
    llvm::sort(tensors);
    for (const std::string &tensor : tensors) {
      Place found{readers.back().get(), readers.back()->find(tensor)};
      if (!found.tensor)
        return llvm::createStringError(
            place + ": tensor '" + printable(tensor) + "' is missing: " + path +
            " says that it is in this file");
      places[tensor] = found;
    }
  }
  for (const auto &reader : readers)
    for (const auto &[name, tensors] : byFile)
      for (const std::string &tensor : tensors)
        if (reader->find(tensor) && places[tensor].reader != reader.get())
          return llvm::createStringError(
              "tensor '" + printable(tensor) + "' is in two files, " +
              places[tensor].reader->path() + " and " + reader->path() +
              ": expected it in one");
  return Error::success();
}

Expected<Checkpoint> Checkpoint::open(StringRef path,
                                      const llvm::StringSet<> &wanted) {
  Checkpoint checkpoint(path);
  auto file = File::open(path);
  if (!file)
    return file.takeError();
  auto text = isText(*file);
  if (!text)
    return text.takeError();
  checkpoint.isIndex = *text;
  if (Error error = *text ? checkpoint.openIndex(*file, wanted)
                          : checkpoint.addFile(std::move(*file)))
    return error;
  return checkpoint;
}

Checkpoint::Place Checkpoint::find(StringRef name) const {
  if (isIndex)
    return places.lookup(name);
  return {readers[0].get(), readers[0]->find(name)};
}

std::vector<std::string> Checkpoint::names() const {
  if (!isIndex)
    return readers[0]->names();
  std::vector<std::string> result;
  for (const auto &entry : files)
    result.push_back(entry.getKey().str());
  llvm::sort(result);
  return result;
}
