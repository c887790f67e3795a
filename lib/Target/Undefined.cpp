//===- Undefined.cpp - what an artefact calls and nothing defines ---------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The linker would find the same, but names an object file that is gone, and
// not the op that the user wrote.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Target/Undefined.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DynamicLibrary.h"

using namespace mlir;

/// True if an artefact finds `name` in the runtime or the C library.
static bool isInLibrary(StringRef name) {
  if (name.starts_with("fsdprt"))
    return true;
  // The C library comes with it.
  llvm::sys::DynamicLibrary math =
      llvm::sys::DynamicLibrary::getPermanentLibrary("libm.so.6");
  return math.isValid() && math.getAddressOfSymbol(name.str().c_str());
}

LogicalResult mlir::fsdp::checkSymbolsAreDefined(ModuleOp module) {
  llvm::StringSet<> undefined;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    bool isDeclared =
        (function && function.isExternal() &&
         !function.getSymName().starts_with("llvm.")) ||
        (global && !global.getValueAttr() && global.getInitializer().empty());
    if (!isDeclared)
      continue;
    StringRef name = SymbolTable::getSymbolName(&op).getValue();
    if (!isInLibrary(name))
      undefined.insert(name);
  }
  if (undefined.empty())
    return success();
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    FlatSymbolRefAttr name;
    if (auto call = dyn_cast<LLVM::CallOp>(op))
      name = call.getCalleeAttr();
    else if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
      name = address.getGlobalNameAttr();
    if (!name || !undefined.contains(name.getValue()))
      return WalkResult::advance();
    return emitError(op->getLoc())
           << "refers to '" << name.getValue()
           << "', which neither the module nor the runtime nor the C library "
              "defines: an object file (-c) can be linked with what does";
  });
  return failure(result.wasInterrupted());
}
