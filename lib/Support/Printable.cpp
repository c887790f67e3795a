//===- Printable.cpp - names of others, for people ------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::fsdp;
using llvm::StringRef;

std::string mlir::fsdp::printable(StringRef text, bool isMessage) {
  std::string result;
  llvm::raw_string_ostream os(result);
  while (!text.empty()) {
    size_t bytes = std::min<size_t>(
        text.size(), llvm::getNumBytesForUTF8(text.bytes_begin()[0]));
    const llvm::UTF8 *at = text.bytes_begin();
    llvm::UTF32 character;
    bool isKept = llvm::convertUTF8Sequence(
                      &at, text.bytes_begin() + bytes, &character,
                      llvm::strictConversion) == llvm::conversionOK &&
                  (llvm::sys::unicode::isPrintable(character) ||
                   (isMessage && character == '\n'));
    StringRef next = text.take_front(isKept ? bytes : 1);
    if (isKept)
      os << next;
    else
      os << '\\' << llvm::toHex(next);
    text = text.drop_front(next.size());
  }
  return result;
}
