//===- DynamicLibrary.cpp - libraries that are found at run time ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/DynamicLibrary.h"

#include "fsdp/Runtime/Runtime.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace fsdprt;

std::string DynamicLibrary::open(const std::vector<std::string> &names) {
  std::string why;
  for (const std::string &name : names) {
    if (handle)
      break;
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  return handle ? std::string() : why;
}

void *DynamicLibrary::find(const char *symbol) const {
  return handle ? dlsym(handle, symbol) : nullptr;
}

std::string fsdprt::fileFromEnvironment(const char *variable,
                                        const char *usual) {
  const char *path = std::getenv(variable);
  return path && *path ? path : usual;
}

std::string fsdprt::besideRuntime(const std::string &name) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&fsdprtAbiVersion), &info))
    return name;
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}
