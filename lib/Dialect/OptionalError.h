//===- OptionalError.h - an error that not everybody wants ------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Symbols are resolved by one function for the verifier, which reports why it
// is impossible, and for all others, who know that it is possible.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_DIALECT_OPTIONALERROR_H
#define FSDP_LIB_DIALECT_OPTIONALERROR_H

#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace mlir::fsdp {

/// A failure, with an error if `emitError` is given.
class OptionalError {
public:
  /// Starts the error with `kind 'name' `.
  OptionalError(function_ref<InFlightDiagnostic()> emitError, StringRef kind,
                StringRef name) {
    if (!emitError)
      return;
    error.emplace(emitError());
    *error << kind << " '" << name << "' ";
  }

  template <typename Part>
  OptionalError &operator<<(Part &&part) {
    if (error)
      *error << std::forward<Part>(part);
    return *this;
  }
  void attachNote(Location loc, const Twine &text) {
    if (error)
      error->attachNote(loc) << text;
  }

  template <typename T>
  operator FailureOr<T>() const {
    return failure();
  }

private:
  std::optional<InFlightDiagnostic> error;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_DIALECT_OPTIONALERROR_H
