//===- PipelinesFuzzer.cpp - any IR through every pass --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte chooses a pipeline, the rest is IR. A pipeline succeeds, or
// says why not; what comes out of it is verified, and can be read again.
//
// Few changes of bytes leave IR that can be parsed. Most changes here are of
// whole lines and words: a value for a value, a symbol for a symbol, a type for
// a type.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/Passes.h"
#include "fsdp/Conversion/Passes.h"
#include "fsdp/Pipelines/Pipelines.h"
#include "fsdp/Target/Passes.h"
#include "fsdp/Transforms/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace mlir;

/// In the order of bytes in the corpus: append, never insert.
static const char *const pipelines[] = {
    "fsdp-optimize",
    "fsdp-optimize{opt-level=0}",
    "fsdp-optimize,fsdp-to-cpu",
    "fsdp-optimize{opt-level=0},fsdp-to-cpu",
    "fsdp-optimize,fsdp-to-cpu{emulate=true}",
    "fsdp-optimize,fsdp-to-cuda",
    "fsdp-to-cpu",
    "fsdp-to-cuda",
    "fsdp-resolve-precision,fsdp-expand-units{unused=zero},fsdp-form-buckets",
    "fsdp-form-buckets,fsdp-fuse-casts",
    "fsdp-resolve-precision,fsdp-verify-collectives",
    "fsdp-print-plan",
    "canonicalize,cse",
};

static const DialectRegistry &registry() {
  static DialectRegistry registry;
  static bool once = [] {
    registerAllPasses();
    fsdp::registerFsdpTransformsPasses();
    fsdp::registerFsdpCodegenPasses();
    fsdp::registerFsdpConversionPasses();
    fsdp::registerFsdpTargetPasses();
    fsdp::registerFsdpPipelines();
    // A program may have ops of any dialect of upstream.
    registerAllDialects(registry);
    registerAllExtensions(registry);
    fsdp::registerFsdpPipelineDialects(registry);
    return true;
  }();
  (void)once;
  return registry;
}

namespace {

struct Word {
  size_t at, size;
  char kind; ///< '%', '@' and so on; '0' of a number, 'a' of any other word
};

std::vector<Word> findWords(const std::string &text) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isPart = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  std::vector<Word> words;
  bool afterNumber = false;
  for (size_t at = 0; at < text.size();) {
    const char first = text[at];
    // Sizes and type of `4x8xf32` are words.
    if (afterNumber && first == 'x') {
      ++at;
      afterNumber = false;
      continue;
    }
    size_t end = at + 1;
    const bool number =
        isDigit(first) || (first == '-' && isDigit(text.c_str()[end]));
    while (end < text.size() && isPart(text[end]) &&
           !(number && text[end] == 'x'))
      ++end;
    if (isPart(first) || number ||
        (std::strchr("%@#!^", first) && end > at + 1))
      words.push_back({at, end - at,
                       number          ? '0'
                       : isPart(first) ? 'a'
                                       : first});
    afterNumber = number;
    at = end;
  }
  return words;
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::minstd_rand random(seed);
  std::string text(reinterpret_cast<const char *>(data), size);
  auto below = [&](size_t end) { return random() % end; };
  const size_t choice = below(10);
  if (choice == 0 || size < 3)
    return LLVMFuzzerMutate(data, size, maxSize);
  if (choice == 1) {
    text[0] = static_cast<char>('A' + below(std::size(pipelines)));
  } else if (choice <= 4) {
    // A line goes, or comes a second time, there or elsewhere.
    std::vector<size_t> begins = {1};
    for (size_t at = 1; at + 1 < size; ++at)
      if (text[at] == '\n')
        begins.push_back(at + 1);
    size_t from = begins[below(begins.size())];
    size_t to = begins[below(begins.size())];
    std::string line = text.substr(from, text.find('\n', from) - from) + "\n";
    if (choice == 2)
      text.erase(from, line.size());
    else
      text.insert(choice == 3 ? from : to, line);
  } else if (std::vector<Word> words = findWords(text); !words.empty()) {
    Word word = words[below(words.size())];
    std::vector<Word> alike;
    for (const Word &other : words)
      if (other.kind == word.kind)
        alike.push_back(other);
    const Word &other = alike[below(alike.size())];
    std::string by = text.substr(other.at, other.size);
    // Numbers are interesting near a power of two.
    if (word.kind == '0' && below(2))
      by = std::to_string(
          static_cast<int64_t>((uint64_t(1) << below(64)) - below(3)));
    text.replace(word.at, word.size, by);
  }
  size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  const char *pipeline = pipelines[data[0] % std::size(pipelines)];
  // The lexer relies on the final zero of a string.
  std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  MLIRContext context(registry(), MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.printOpOnDiagnostic(false);
  int errors = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return 0;
  PassManager manager(&context);
  if (failed(parsePassPipeline(pipeline, manager, llvm::nulls())))
    std::abort(); // the list above is wrong
  if (failed(manager.run(*module))) {
    if (!errors) {
      llvm::errs() << pipeline << " failed without a word\n";
      std::abort();
    }
    return 0;
  }
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  if (!parseSourceString<ModuleOp>(printed, &context)) {
    llvm::errs() << pipeline << " made what cannot be read:\n" << printed;
    std::abort();
  }
  return 0;
}
