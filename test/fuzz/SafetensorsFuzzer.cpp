//===- SafetensorsFuzzer.cpp - any bytes as a file of tensors -------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file of tensors, or an index of such files. Whatever it holds
// is refused in words, or every tensor in it lies in the file and can be read.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Launcher/Checkpoint.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace mlir::fsdp;
using namespace mlir::fsdp::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int descriptor = memfd_create("fuzz", 0);
  if (descriptor < 0 || write(descriptor, data, size) != ssize_t(size))
    std::abort();
  std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  llvm::StringSet<> wanted;
  wanted.insert("w");
  llvm::Expected<Checkpoint> checkpoint = Checkpoint::open(path, wanted);
  if (!checkpoint) {
    if (llvm::toString(checkpoint.takeError()).empty())
      std::abort(); // refused without a word
  } else {
    for (const std::string &name : checkpoint->names()) {
      Checkpoint::Place place = checkpoint->find(name);
      if (!place.tensor)
        continue; // in a file that nobody needs
      std::vector<char> bytes(place.tensor->bytes); // as the file has them
      if (llvm::Error error = place.reader->read(*place.tensor, 0, bytes.data(),
                                                 place.tensor->bytes)) {
        std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
        std::abort();
      }
    }
  }
  close(descriptor);
  return 0;
}
