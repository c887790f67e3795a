//===- Header.cpp - the C header of an artefact ---------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that links an object of ours calls entries as plain C functions.
// Which tensor stands at which place is the manifest's to say, so the comments
// come from there. An entry whose name is none of C's has an alias that is one:
// GNU's assembler takes not every symbol from an asm label.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Target/Header.h"

#include "fsdp/Runtime/Runtime.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;

/// `text` with everything that a C identifier cannot hold replaced.
static std::string toIdentifier(StringRef text) {
  std::string result;
  for (char c : text)
    result.push_back(llvm::isAlnum(c) ? c : '_');
  return result;
}

/// A name for a comment. It ends or begins none, and has no trigraph, no end of
/// line, and nothing that an editor shows as something else.
static std::string toComment(StringRef name) {
  std::string result;
  llvm::raw_string_ostream os(result);
  for (char c : name)
    if (c == '\\')
      os << "\\\\";
    else if (llvm::isPrint(c) && c != '*' && c != '?')
      os << c;
    else
      os << "\\x" << llvm::hexdigit(uint8_t(c) >> 4, /*LowerCase=*/true)
         << llvm::hexdigit(uint8_t(c) & 15, /*LowerCase=*/true);
  return result;
}

/// What the manifest says about the entries, in its order.
static llvm::json::Array readEntries(ModuleOp module) {
  auto global =
      module.lookupSymbol<LLVM::GlobalOp>(FSDPRT_ARTEFACT_MANIFEST_SYMBOL);
  auto json = llvm::json::parse(
      cast<StringAttr>(global.getValueAttr()).getValue().drop_back());
  assert(json && "the manifest is ours");
  return std::move(*json->getAsObject()->getArray("entries"));
}

static std::string symbolOf(const llvm::json::Value &entry) {
  return FSDPRT_ARTEFACT_ENTRY_PREFIX +
         entry.getAsObject()->getString("name")->str();
}

/// The names of the entries in C: the symbols themselves where they can be. Of
/// others that would be alike all but the first are numbered.
static SmallVector<std::string> chooseNames(const llvm::json::Array &entries) {
  llvm::StringSet<> taken;
  for (const llvm::json::Value &entry : entries)
    taken.insert(symbolOf(entry));
  SmallVector<std::string> names;
  for (const llvm::json::Value &entry : entries) {
    std::string symbol = symbolOf(entry), plain = toIdentifier(symbol);
    std::string name = plain;
    for (int64_t i = 1; plain != symbol && !taken.insert(name).second; ++i)
      name = plain + "_" + std::to_string(i);
    names.push_back(std::move(name));
  }
  return names;
}

void mlir::fsdp::addNamesForC(ModuleOp module) {
  llvm::json::Array entries = readEntries(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (auto [entry, name] : llvm::zip(entries, chooseNames(entries))) {
    std::string symbol = symbolOf(entry);
    if (name == symbol)
      continue;
    Location loc = module.lookupSymbol(symbol)->getLoc();
    Type pointer = LLVM::LLVMPointerType::get(module.getContext());
    auto alias = LLVM::AliasOp::create(builder, loc, pointer,
                                       LLVM::Linkage::External, name);
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&alias.getInitializer());
    Value address =
        LLVM::AddressOfOp::create(builder, loc, pointer, symbol).getResult();
    LLVM::ReturnOp::create(builder, loc, address);
  }
}

/// Lists the tensors of an entry that `pointers`, a parameter's name, points
/// to.
static void writeTensors(raw_ostream &os, StringRef pointers,
                         const llvm::json::Array *tensors) {
  for (auto [index, value] : llvm::enumerate(*tensors)) {
    const llvm::json::Object *tensor = value.getAsObject();
    StringRef name = *tensor->getString("name");
    os << " *   " << pointers << "[" << index << "]: ";
    if (auto param = tensor->getString("param")) {
      os << *tensor->getString("role") << " of " << toComment(*param);
      if (name != *param && name != (*param + ".grad").str())
        os << " (" << toComment(name) << ")";
    } else {
      os << toComment(name);
    }
    os << ", " << *tensor->getString("type")
       << (tensor->getBoolean("uniform") ? ", the same on all ranks\n" : "\n");
  }
}

std::string mlir::fsdp::createHeader(ModuleOp module, StringRef fileName) {
  std::string guard =
      StringRef(toIdentifier(llvm::sys::path::filename(fileName))).upper();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Entries of an artefact. Written by fsdp-compile. */\n\n"
     << "#ifndef FSDP_" << guard << "\n#define FSDP_" << guard << "\n\n"
     << "#include \"fsdp/Runtime/Runtime.h\"\n\n"
     << "#if FSDPRT_ABI_VERSION != " << FSDPRT_ABI_VERSION << "\n"
     << "#error \"these entries need version " << FSDPRT_ABI_VERSION
     << " of the runtime's interface\"\n#endif\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << "extern const int32_t " FSDPRT_ARTEFACT_ABI_SYMBOL ";\n"
     << "extern const char " FSDPRT_ARTEFACT_MANIFEST_SYMBOL "[];\n";

  llvm::json::Array entries = readEntries(module);
  for (auto [value, name] : llvm::zip(entries, chooseNames(entries))) {
    const llvm::json::Object *entry = value.getAsObject();
    os << "\n/*\n";
    if (name != symbolOf(value))
      os << " *   entry " << toComment(*entry->getString("name")) << "\n";
    writeTensors(os, "arguments", entry->getArray("args"));
    writeTensors(os, "results", entry->getArray("results"));
    os << " */\nfsdprtStatus " << name << "(fsdprtContext *context,\n"
       << "    void *const *arguments, void *const *results);\n";
  }
  os << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return text;
}
