//===- Constants.h - arguments from the command line ------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_CONSTANTS_H
#define FSDP_LAUNCHER_CONSTANTS_H

#include "fsdp/Launcher/Manifest.h"

#include <map>

namespace mlir::fsdp::launch {

/// What --set=NAME=VALUE says, by name: each element of argument NAME is VALUE,
/// on all ranks.
class Constants {
public:
  /// Reads the option's values.
  static llvm::Expected<Constants>
  parse(const std::vector<std::string> &assignments);

  /// Every name must be an argument's of one of the entries, and every value
  /// one of its dtype.
  llvm::Error check(llvm::ArrayRef<const EntrySignature *> entries) const;

  /// The bytes of an element, empty if nothing is said about the argument.
  std::string find(const EntryTensor &argument) const;

private:
  std::map<std::string, std::string, std::less<>> values; ///< as written
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_CONSTANTS_H
