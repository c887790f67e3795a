//===- Json.cpp - JSON of strangers ---------------------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include "fsdp/Support/Printable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Formats of ours and of others have four levels.
static constexpr int kMaxDepth = 64;

namespace {
/// Finds where things end, and nothing else.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  bool atEnd() {
    skipSpace();
    return position == text.size();
  }

  /// True if the next character is `c`, which is then behind.
  bool consume(char c) {
    if (atEnd() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  /// A string with its quotes.
  Expected<StringRef> string() {
    size_t begin = (skipSpace(), position);
    if (!consume('"'))
      return expected("a string");
    for (; position < text.size(); ++position) {
      if (text[position] == '\\')
        ++position;
      else if (text[position] == '"')
        return text.slice(begin, ++position);
    }
    return expected("the end of a string");
  }

  /// Anything, to its end.
  Expected<StringRef> value() {
    size_t begin = (skipSpace(), position);
    int depth = 0;
    do {
      if (atEnd())
        return expected("a value");
      char c = text[position];
      if (c == '"') {
        auto skipped = string();
        if (!skipped)
          return skipped.takeError();
      } else if (c == '{' || c == '[') {
        if (++depth > kMaxDepth)
          return llvm::createStringError("more than " + Twine(kMaxDepth) +
                                         " levels");
        ++position;
      } else if (c == '}' || c == ']') {
        if (--depth < 0)
          return expected("a value");
        ++position;
      } else if (c == ',' || c == ':') {
        if (depth == 0)
          return expected("a value");
        ++position;
      } else {
        position = std::min(text.find_first_of("{}[],:\" \t\n\r", position),
                            text.size());
      }
    } while (depth != 0);
    return text.slice(begin, position);
  }

  Error expected(const Twine &what) const {
    return llvm::createStringError("expected " + what + " at byte " +
                                   Twine(position));
  }

private:
  void skipSpace() {
    position =
        std::min(text.find_first_not_of(" \t\n\r", position), text.size());
  }

  StringRef text;
  size_t position = 0;
};
} // namespace

Expected<llvm::json::Value> mlir::fsdp::launch::parseJson(StringRef text) {
  Scanner scanner(text);
  auto value = scanner.value();
  if (!value)
    return value.takeError();
  return llvm::json::parse(text);
}

Error mlir::fsdp::launch::forEachMember(
    StringRef text,
    llvm::function_ref<Error(StringRef name, StringRef value)> function) {
  Scanner scanner(text);
  if (!scanner.consume('{'))
    return scanner.expected("an object");
  llvm::StringSet<> names;
  if (!scanner.consume('}')) {
    do {
      auto token = scanner.string();
      if (!token)
        return token.takeError();
      auto name = llvm::json::parse(*token);
      if (!name)
        return name.takeError();
      if (!scanner.consume(':'))
        return scanner.expected("':'");
      auto value = scanner.value();
      if (!value)
        return value.takeError();
      StringRef key = *name->getAsString();
      if (!names.insert(key).second)
        return llvm::createStringError("the name '" + printable(key) +
                                       "' is there twice");
      if (Error error = function(key, *value))
        return error;
    } while (scanner.consume(','));
    if (!scanner.consume('}'))
      return scanner.expected("',' or '}'");
  }
  return scanner.atEnd() ? Error::success() : scanner.expected("the end");
}
