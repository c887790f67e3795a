//===- DynamicLibrary.h - libraries that are found at run time --*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MPI, CUDA and NCCL are needed by the worlds that ask for them and by nothing
// else, so no library of ours is linked with them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_SUPPORT_DYNAMICLIBRARY_H
#define FSDP_LIB_RUNTIME_SUPPORT_DYNAMICLIBRARY_H

#include <string>
#include <vector>

namespace fsdprt {

class DynamicLibrary {
public:
  /// Opens the first of `names` that is there, for the rest of the process.
  /// Later calls of open do nothing. Returns what went wrong, "" if nothing
  /// did.
  std::string open(const std::vector<std::string> &names);

  bool isOpen() const { return handle; }

  /// Null if the library has no such symbol.
  void *find(const char *symbol) const;

private:
  void *handle = nullptr;
};

/// "FOLDER/name", where FOLDER has libfsdprt itself.
std::string besideRuntime(const std::string &name);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_SUPPORT_DYNAMICLIBRARY_H
