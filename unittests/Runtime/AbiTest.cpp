//===- AbiTest.cpp - every function of the ABI is in the library ----------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code finds the functions by name, so a function that is declared and
// not exported shows only here.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Runtime/Runtime.h"

#include "gtest/gtest.h"

#include <dlfcn.h>

TEST(Abi, LibraryExportsEveryFunctionOfTheList) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(&fsdprtAbiVersion), &info), 0);
  void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
#define FSDPRT_CALL(name, parameters)                                          \
  EXPECT_EQ(dlsym(library, #name), reinterpret_cast<void *>(&name)) << #name;
#include "fsdp/Runtime/RuntimeFunctions.def"
  dlclose(library);
}

TEST(Abi, LibraryExportsNothingOfItsInside) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(&fsdprtAbiVersion), &info), 0);
  void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  // fsdprt::createHostDevice().
  EXPECT_EQ(dlsym(library, "_ZN6fsdprt16createHostDeviceEv"), nullptr);
  dlclose(library);
}

TEST(Abi, VersionOfLibraryIsThatOfHeader) {
  EXPECT_EQ(fsdprtAbiVersion(), FSDPRT_ABI_VERSION);
}
