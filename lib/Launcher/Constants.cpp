//===- Constants.cpp - arguments from the command line --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Constants.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::APFloat;
using llvm::APInt;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static const llvm::fltSemantics &semanticsOf(const Dtype &dtype) {
  if (dtype.kind == Dtype::Storage)
    return dtype.bits == 8           ? APFloat::Float8E8M0FNU()
           : dtype.bits == 4         ? APFloat::Float4E2M1FN()
           : dtype.fractionBits == 3 ? APFloat::Float6E2M3FN()
                                     : APFloat::Float6E3M2FN();
  switch (dtype.fractionBits) {
  case 52:
    return APFloat::IEEEdouble();
  case 23:
    return APFloat::IEEEsingle();
  case 10:
    return APFloat::IEEEhalf();
  case 7:
    return APFloat::BFloat();
  case 3:
    return APFloat::Float8E4M3FN();
  default:
    return APFloat::Float8E5M2();
  }
}

/// The bytes of `text` as an element, empty if it is none, or too large.
static std::string encode(const Dtype &dtype, StringRef text) {
  const bool isBool = dtype.name == StringRef("i1");
  APInt bits(8 * dtype.bytes, 0);
  if (dtype.kind == Dtype::Unsigned) {
    uint64_t number;
    if (text.getAsInteger(10, number) || !llvm::isUIntN(dtype.bits, number))
      return {};
    bits = APInt(bits.getBitWidth(), number);
  } else if (!dtype.isInteger()) {
    APFloat number(semanticsOf(dtype));
    Expected<APFloat::opStatus> status =
        number.convertFromString(text, APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return {};
    }
    if (*status & (APFloat::opOverflow | APFloat::opInvalidOp))
      return {};
    bits = number.bitcastToAPInt();
    if (dtype.bits == 4)
      bits = bits.concat(bits);
    else if (dtype.bits == 6) // one element is no number of bytes
      return {};
  } else {
    int64_t number;
    if (text.getAsInteger(10, number) ||
        (isBool ? !llvm::isUInt<1>(number)
                : !llvm::isIntN(8 * dtype.bytes, number)))
      return {};
    bits = APInt(bits.getBitWidth(), number, /*isSigned=*/true);
  }
  std::string bytes;
  for (int i = 0; i < dtype.bytes; ++i)
    bytes.push_back(static_cast<char>(bits.extractBitsAsZExtValue(8, 8 * i)));
  return bytes;
}

Expected<Constants>
Constants::parse(const std::vector<std::string> &assignments) {
  Constants constants;
  for (const std::string &assignment : assignments) {
    // A name may have a '=', a number has none.
    auto [name, value] = StringRef(assignment).rsplit('=');
    if (name.empty() || value.empty())
      return llvm::createStringError("--set=" + assignment +
                                     ": expected NAME=VALUE");
    if (!constants.values.try_emplace(name.str(), value.str()).second)
      return llvm::createStringError("--set gives argument '" + name +
                                     "' two values");
  }
  return constants;
}

Error Constants::check(llvm::ArrayRef<const EntrySignature *> entries) const {
  for (const auto &[name, value] : values) {
    std::vector<StringRef> known;
    bool isFound = false;
    for (const EntrySignature *entry : entries)
      for (const EntryTensor &argument : entry->arguments) {
        known.push_back(argument.name);
        if (argument.name != name)
          continue;
        isFound = true;
        if (encode(*argument.type.dtype, value).empty())
          return llvm::createStringError(
              "--set=" + name + "=" + value + ": expected a number of " +
              argument.type.dtype->name + " for argument '" + name +
              "' of entry '" + entry->name + "', " + argument.type.text);
      }
    if (!isFound) {
      size_t shown = std::min<size_t>(known.size(), 8);
      return llvm::createStringError(
          "--set=" + name + "=" + value + ": entry '" + entries[0]->name +
          "' has no argument '" + name + "', expected one of: " +
          llvm::join(known.begin(), known.begin() + shown, ", ") +
          (shown < known.size() ? ", ..." : ""));
    }
  }
  return Error::success();
}

std::string Constants::find(const EntryTensor &argument) const {
  auto found = values.find(argument.name);
  return found == values.end() ? std::string()
                               : encode(*argument.type.dtype, found->second);
}
