//===- Artefact.cpp - a shared library that fsdp-compile wrote ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Artefact.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// The bytes of the exported object `name`, empty if there is none.
static Expected<StringRef> contents(const llvm::object::ELFObjectFileBase &file,
                                    StringRef name) {
  for (const llvm::object::ELFSymbolRef &symbol :
       file.getDynamicSymbolIterators()) {
    Expected<StringRef> symbolName = symbol.getName();
    if (!symbolName)
      return symbolName.takeError();
    if (*symbolName != name)
      continue;
    auto section = symbol.getSection();
    if (!section)
      return section.takeError();
    if (*section == file.section_end() || (*section)->isBSS())
      return StringRef();
    auto address = symbol.getAddress();
    if (!address)
      return address.takeError();
    auto data = (*section)->getContents();
    if (!data)
      return data.takeError();
    uint64_t offset = *address - (*section)->getAddress();
    if (offset > data->size() || symbol.getSize() > data->size() - offset)
      return StringRef();
    return data->substr(offset, symbol.getSize());
  }
  return StringRef();
}

Expected<Artefact> Artefact::read(StringRef path) {
  auto notArtefact = [&](const Twine &why) {
    return llvm::createStringError("'" + path + "' is no artefact: " + why);
  };
  // A pipe would not open before somebody writes to it.
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) &&
      !llvm::sys::fs::is_regular_file(status))
    return notArtefact("expected a regular file");
  auto binary = llvm::object::ObjectFile::createObjectFile(path);
  if (!binary)
    return notArtefact(llvm::toString(binary.takeError()));
  auto *file =
      llvm::dyn_cast<llvm::object::ELFObjectFileBase>(binary->getBinary());
  if (!file)
    return notArtefact("expected an ELF shared library");

  Artefact artefact;
  artefact.path = path.str();
  auto abi = contents(*file, FSDPRT_ARTEFACT_ABI_SYMBOL);
  if (!abi)
    return notArtefact(llvm::toString(abi.takeError()));
  if (abi->size() != sizeof(int32_t))
    return notArtefact("it exports no " FSDPRT_ARTEFACT_ABI_SYMBOL);
  artefact.abi = llvm::support::endian::read32(
      abi->data(), file->isLittleEndian() ? llvm::endianness::little
                                          : llvm::endianness::big);
  auto manifest = contents(*file, FSDPRT_ARTEFACT_MANIFEST_SYMBOL);
  if (!manifest)
    return notArtefact(llvm::toString(manifest.takeError()));
  if (manifest->empty())
    return notArtefact("it exports no " FSDPRT_ARTEFACT_MANIFEST_SYMBOL);
  artefact.manifest = manifest->take_until([](char c) { return c == 0; }).str();
  return artefact;
}

Expected<fsdprtEntry> Artefact::load(StringRef entry) const {
  // dlopen looks a name without a slash up in the system's folders.
  llvm::SmallString<256> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  void *library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return llvm::createStringError(Twine("cannot load artefact: ") + dlerror());
  std::string symbol = FSDPRT_ARTEFACT_ENTRY_PREFIX + entry.str();
  void *address = dlsym(library, symbol.c_str());
  if (!address)
    return llvm::createStringError("'" + path + "' does not export '" + symbol +
                                   "', which its manifest promises");
  return reinterpret_cast<fsdprtEntry>(address);
}
