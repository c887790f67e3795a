//===- Quietly.h - ask what emits errors, for a pattern --------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CONVERSION_QUIETLY_H
#define FSDP_LIB_CONVERSION_QUIETLY_H

#include "mlir/IR/Diagnostics.h"

#include <thread>

namespace mlir::fsdp {

/// Calls `ask` without its diagnostics: a pattern must not emit any, since
/// another one may match. Those of other threads go where they went.
template <typename Ask>
auto quietly(MLIRContext *context, Ask ask) {
  std::thread::id self = std::this_thread::get_id();
  ScopedDiagnosticHandler handler(context, [self](Diagnostic &) {
    return success(std::this_thread::get_id() == self);
  });
  return ask();
}

} // namespace mlir::fsdp

#endif // FSDP_LIB_CONVERSION_QUIETLY_H
