//===- GpuChip.h - the GPUs that kernels are compiled for -------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_GPUCHIP_H
#define FSDP_CODEGEN_GPUCHIP_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace mlir::fsdp {

/// A chip that LLVM's code generator knows and that the kernels can run on.
struct GpuChip {
  StringRef name; ///< "sm_90"
  /// The oldest version of PTX that knows the chip and has what all kernels
  /// use, in tenths.
  unsigned ptxVersion;

  /// Null if there is no chip of that name.
  static const GpuChip *lookup(StringRef name);

  /// All names, for a diagnostic.
  static std::string listNames();

  /// Whether a kernel can begin before the one in front of it has ended.
  bool hasProgrammaticLaunch() const;

  /// The oldest version of PTX for kernels with so many bytes of parameters.
  /// The oldest one, so that old drivers take it.
  unsigned getPtxVersion(int64_t parameterBytes) const;
};

/// Bytes that the parameters of a kernel may have in a version of PTX.
int64_t getMaxParameterBytes(unsigned ptxVersion);

/// For the code generator: "+ptx80".
std::string getPtxFeatures(unsigned ptxVersion);

/// The version that features name, no value if they are not of that form.
std::optional<unsigned> parsePtxFeatures(StringRef features);

/// The first driver that compiles a version of PTX, as the driver says it:
/// 12010 is the one of CUDA 12.1.
int32_t getPtxDriver(unsigned ptxVersion);

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_GPUCHIP_H
