//===- Json.h - JSON of strangers -------------------------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's parser calls itself for each level, lets the last of two equal names
// win, and keeps all that it reads. What comes out of a file is cut here first,
// member by member, so that neither depth nor repetition nor size gets through.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_LAUNCHER_JSON_H
#define FSDP_LIB_LAUNCHER_JSON_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp::launch {

/// Parses text of bounded depth.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

/// Calls `function` with the name and the text of each member of the object
/// that `text` is, in order. The text of a value is not checked yet; parseJson
/// does. Refuses a second member of a name.
llvm::Error forEachMember(
    llvm::StringRef text,
    llvm::function_ref<llvm::Error(llvm::StringRef name, llvm::StringRef value)>
        function);

} // namespace mlir::fsdp::launch

#endif // FSDP_LIB_LAUNCHER_JSON_H
