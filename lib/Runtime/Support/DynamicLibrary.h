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

#include <mutex>
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

/// The file that the variable `variable` of the environment names, else
/// `usual`.
std::string fileFromEnvironment(const char *variable, const char *usual);

/// Sets `api` to the functions that `fill` has found, which is asked once per
/// process, or to null where it says why there are none. Returns that.
template <typename Api, std::string (*fill)(Api &)>
std::string loadOnce(const Api *&api) {
  static std::once_flag once;
  static Api functions;
  static std::string why;
  std::call_once(once, [] { why = fill(functions); });
  api = why.empty() ? &functions : nullptr;
  return why;
}

/// "FOLDER/name", where FOLDER has libfsdprt itself.
std::string besideRuntime(const std::string &name);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_SUPPORT_DYNAMICLIBRARY_H
