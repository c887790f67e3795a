//===- ManifestFuzzer.cpp - any text as an artefact's manifest ------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artefact may be of another version, or damaged: its manifest is refused in
// words, or what it says of units and values can be computed with.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Manifest.h"

#include <cstdlib>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The manifest ends at its final zero.
  std::string text(reinterpret_cast<const char *>(data), size);
  text.resize(std::char_traits<char>::length(text.c_str()));
  llvm::Expected<Manifest> manifest = Manifest::parse(text);
  if (!manifest) {
    if (llvm::toString(manifest.takeError()).empty())
      std::abort(); // refused without a word
    return 0;
  }
  for (const auto &unit : manifest->units)
    if (unit->grid.groupSize(unit->shardAxes) < 1 ||
        unit->grid.indexInGroup(unit->shardAxes, manifest->ranks - 1) < 0)
      std::abort();
  return 0;
}
