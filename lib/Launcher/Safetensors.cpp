//===- Safetensors.cpp - tensors in files ---------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Safetensors.h"

#include "Json.h"
#include "fsdp/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// File
//===----------------------------------------------------------------------===//

Error File::lastError(StringRef what) const {
  return llvm::createStringError(path + ": " + what + ": " +
                                 std::strerror(errno));
}

Expected<File> File::open(StringRef path) {
  // A pipe would not open before somebody writes to it.
  File file(path,
            ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor < 0)
    return file.lastError("cannot open");
  return file;
}

File::~File() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Expected<int64_t> File::size() const {
  struct stat status;
  if (fstat(descriptor, &status) != 0)
    return lastError("cannot read");
  if (!S_ISREG(status.st_mode))
    return llvm::createStringError(path + ": expected a regular file");
  return status.st_size;
}

Expected<std::string> File::readAll(int64_t limit) const {
  auto bytes = size();
  if (!bytes)
    return bytes.takeError();
  if (*bytes > limit)
    return llvm::createStringError(path + ": expected at most " + Twine(limit) +
                                   " bytes, found " + Twine(*bytes));
  std::string text(*bytes, 0);
  if (Error error = read(0, text.data(), *bytes))
    return error;
  return text;
}

Error File::read(int64_t offset, void *data, int64_t bytes) const {
  for (char *at = static_cast<char *>(data); bytes > 0;) {
    ssize_t done = pread(descriptor, at, bytes, offset);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return lastError("cannot read");
    if (done == 0)
      return llvm::createStringError(path + ": the file ends too early");
    at += done;
    offset += done;
    bytes -= done;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// SafetensorsReader
//===----------------------------------------------------------------------===//

/// Bits per element of every dtype that has been in the format so far; 0 if it
/// is unknown.
static int bitsOf(StringRef tag) {
  return llvm::StringSwitch<int>(tag)
      .Case("F4", 4)
      .Cases({"F6_E2M3", "F6_E3M2"}, 6)
      .Cases({"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0",
              "F8_E4M3FNUZ", "F8_E5M2FNUZ"},
             8)
      .Cases({"F16", "BF16", "I16", "U16"}, 16)
      .Cases({"F32", "I32", "U32"}, 32)
      .Cases({"F64", "I64", "U64", "C64"}, 64)
      .Default(0);
}

/// What a header says about one tensor fits many times.
static constexpr size_t kMaxTensorText = 1 << 16;

static Error wrong(const Twine &what) { return llvm::createStringError(what); }

/// The members of an object, each of them parsed.
static Expected<llvm::json::Object> parseObject(StringRef text) {
  llvm::json::Object object;
  Error error =
      forEachMember(text, [&](StringRef name, StringRef member) -> Error {
        auto value = parseJson(member);
        if (!value)
          return value.takeError();
        object.try_emplace(name.str(), std::move(*value));
        return Error::success();
      });
  if (error)
    return error;
  return object;
}

/// Reads `{"dtype": ..., "shape": [...], "data_offsets": [begin, end]}`; the
/// offset is still that in the data.
static Error parseTensor(StringRef text, SafetensorsReader::Tensor &tensor) {
  if (text.size() > kMaxTensorText)
    return wrong("expected a description of at most " + Twine(kMaxTensorText) +
                 " bytes, found " + Twine(text.size()));
  auto object = parseObject(text);
  if (!object)
    return object.takeError();
  auto tag = object->getString("dtype");
  if (!tag)
    return wrong("expected a string 'dtype'");
  tensor.tag = tag->str();
  const llvm::json::Array *shape = object->getArray("shape");
  if (!shape)
    return wrong("expected an array 'shape'");
  const int bits = bitsOf(tensor.tag);
  int64_t product = std::max(bits, 1);
  for (const llvm::json::Value &element : *shape) {
    auto extent = element.getAsInteger();
    if (!extent || *extent < 0)
      return wrong("expected sizes in 'shape'");
    if (*extent != 0 && product > INT64_MAX / *extent)
      return wrong("the shape has too many elements");
    product *= *extent;
    tensor.shape.push_back(*extent);
  }
  const llvm::json::Array *offsets = object->getArray("data_offsets");
  if (!offsets || offsets->size() != 2)
    return wrong("expected two 'data_offsets'");
  auto begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin)
    return wrong("expected 'data_offsets' in ascending order");
  tensor.offset = *begin;
  tensor.bytes = *end - *begin;
  if (bits == 0)
    return Error::success();
  if (product % 8 != 0)
    return wrong("the shape does not fill whole bytes");
  if (tensor.bytes != product / 8)
    return wrong(describe(tensor.tag, tensor.shape) + ": expected " +
                 Twine(product / 8) + " bytes, found " + Twine(tensor.bytes));
  return Error::success();
}

/// The format has strings there. Nothing reads them.
static Error checkMetadata(StringRef text) {
  return forEachMember(text, [](StringRef, StringRef member) -> Error {
    auto value = parseJson(member);
    if (!value)
      return value.takeError();
    return value->getAsString() ? Error::success() : wrong("expected strings");
  });
}

Error SafetensorsReader::parse() {
  auto invalid = [&](const Twine &what) {
    return llvm::createStringError(path() + ": not valid safetensors: " + what);
  };
  auto size = file.size();
  if (!size)
    return size.takeError();
  if (*size < 8)
    return invalid("expected at least 8 bytes, found " + Twine(*size));
  uint64_t length;
  if (Error error = file.read(0, &length, 8))
    return error;
  length = llvm::support::endian::read64le(&length);
  if (length > 100'000'000)
    return invalid("expected a header of at most 100000000 bytes, found a "
                   "length of " +
                   Twine(length));
  const int64_t dataBegin = 8 + length;
  if (dataBegin > *size)
    return invalid("truncated in the header: expected " + Twine(dataBegin) +
                   " bytes, found " + Twine(*size));
  std::string header(length, 0);
  if (Error error = file.read(8, header.data(), length))
    return error;
  std::vector<std::pair<StringRef, const Tensor *>> order;
  bool isTensor = false; // at fault
  Error error =
      forEachMember(header, [&](StringRef name, StringRef text) -> Error {
        Tensor tensor;
        bool isMetadata = name == "__metadata__";
        if (Error error =
                isMetadata ? checkMetadata(text) : parseTensor(text, tensor)) {
          isTensor = true;
          return wrong((isMetadata ? "" : "tensor ") + ("'" + printable(name)) +
                       "': " + llvm::toString(std::move(error)));
        }
        if (!isMetadata) {
          auto entry = tensors.try_emplace(name, std::move(tensor)).first;
          order.push_back({entry->getKey(), &entry->getValue()});
        }
        return Error::success();
      });
  if (error)
    return invalid((isTensor ? "" : "header: ") +
                   llvm::toString(std::move(error)));
  // By place; an empty tensor comes before the one that begins where it stands.
  llvm::sort(order, [](auto &a, auto &b) {
    return std::tuple(a.second->offset, a.second->bytes, a.first) <
           std::tuple(b.second->offset, b.second->bytes, b.first);
  });
  int64_t end = 0;
  for (auto &[name, tensor] : order) {
    if (tensor->offset != end)
      return invalid("tensor '" + printable(name) + "': expected it at byte " +
                     Twine(end) + " of the data, found it at byte " +
                     Twine(tensor->offset) +
                     (tensor->offset < end ? " (overlap)" : " (gap)"));
    end += tensor->bytes;
  }
  if (dataBegin + end != *size)
    return invalid((*size < dataBegin + end
                        ? "truncated: expected "
                        : "bytes after the data: expected ") +
                   Twine(dataBegin + end) + " bytes, found " + Twine(*size));
  for (auto &entry : tensors)
    entry.getValue().offset += dataBegin;
  return Error::success();
}

Expected<SafetensorsReader> SafetensorsReader::open(File file) {
  SafetensorsReader reader(std::move(file));
  if (Error error = reader.parse())
    return error;
  return reader;
}

const SafetensorsReader::Tensor *SafetensorsReader::find(StringRef name) const {
  auto entry = tensors.find(name);
  return entry == tensors.end() ? nullptr : &entry->getValue();
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> result;
  for (const auto &entry : tensors)
    result.push_back(entry.getKey().str());
  llvm::sort(result);
  return result;
}

//===----------------------------------------------------------------------===//
// SafetensorsWriter
//===----------------------------------------------------------------------===//

Expected<SafetensorsWriter>
SafetensorsWriter::create(StringRef path, llvm::ArrayRef<Tensor> tensors) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  SafetensorsWriter writer(std::move(*file));
  std::string header;
  llvm::raw_string_ostream stream(header);
  llvm::json::OStream json(stream);
  int64_t end = 0;
  json.object([&] {
    for (const Tensor &tensor : tensors) {
      const TensorType &type = *tensor.type;
      writer.offsets.push_back(end);
      json.attributeObject(tensor.name, [&] {
        json.attribute("dtype", type.dtype->tag);
        json.attributeArray("shape", [&] {
          for (int64_t extent : type.shape)
            json.value(extent);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(end);
          end += type.bytes();
          json.value(end);
        });
      });
    }
  });
  // Data on a multiple of 8 bytes, as readers that map the file like it.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  if (Error error = writer.file.write(0, length, 8))
    return error;
  if (Error error = writer.file.write(8, header.data(), header.size()))
    return error;
  for (int64_t &offset : writer.offsets)
    offset += 8 + header.size();
  return writer;
}
