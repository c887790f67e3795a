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
// come from there.
//
//===----------------------------------------------------------------------===//

#include "Header.h"

#include "fsdp/Runtime/Runtime.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
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

/// Lists the tensors of an entry that `pointers`, a parameter's name, points
/// to.
static void writeTensors(raw_ostream &os, StringRef pointers,
                         const llvm::json::Array *tensors) {
  for (auto [index, value] : llvm::enumerate(*tensors)) {
    const llvm::json::Object *tensor = value.getAsObject();
    os << " *   " << pointers << "[" << index << "]: ";
    if (auto role = tensor->getString("role"); role && *role != "value")
      os << *role << " of ";
    os << *tensor->getString("name") << ", " << *tensor->getString("type")
       << "\n";
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

  auto global =
      module.lookupSymbol<LLVM::GlobalOp>(FSDPRT_ARTEFACT_MANIFEST_SYMBOL);
  auto json = llvm::json::parse(
      cast<StringAttr>(global.getValueAttr()).getValue().drop_back());
  assert(json && "the manifest is ours");
  for (const llvm::json::Value &value :
       *json->getAsObject()->getArray("entries")) {
    const llvm::json::Object *entry = value.getAsObject();
    std::string symbol =
        FSDPRT_ARTEFACT_ENTRY_PREFIX + entry->getString("name")->str();
    std::string name = toIdentifier(symbol);
    os << "\n/*\n";
    writeTensors(os, "arguments", entry->getArray("args"));
    writeTensors(os, "results", entry->getArray("results"));
    os << " */\nfsdprtStatus " << name << "(fsdprtContext *context,\n"
       << "    void *const *arguments, void *const *results)";
    if (name != symbol) // not a name in C
      os << "\n    __asm__(\"" << symbol << "\")";
    os << ";\n";
  }
  os << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif\n";
  return text;
}
