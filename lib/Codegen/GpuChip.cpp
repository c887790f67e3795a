//===- GpuChip.cpp - the GPUs that kernels are compiled for ---------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM ends the process when it is asked for a chip in a version of PTX that
// does not have it, so the versions must be known here. sm_80 is the first chip
// with the conversions between f32 and bf16.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/GpuChip.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr GpuChip chips[] = {
    {"sm_80", 80},   {"sm_86", 80},   {"sm_87", 80},   {"sm_88", 90},
    {"sm_89", 80},   {"sm_90", 80},   {"sm_90a", 80},  {"sm_100", 86},
    {"sm_100a", 86}, {"sm_100f", 88}, {"sm_103", 88},  {"sm_103a", 88},
    {"sm_103f", 88}, {"sm_110", 90},  {"sm_110a", 90}, {"sm_110f", 90},
    {"sm_120", 87},  {"sm_120a", 87}, {"sm_120f", 88}, {"sm_121", 88},
    {"sm_121a", 88}, {"sm_121f", 88}};

const GpuChip *GpuChip::lookup(StringRef name) {
  const GpuChip *chip =
      llvm::find_if(chips, [&](const GpuChip &c) { return c.name == name; });
  return chip == std::end(chips) ? nullptr : chip;
}

std::string GpuChip::listNames() {
  std::string names;
  llvm::ListSeparator comma;
  for (const GpuChip &chip : chips)
    (names += StringRef(comma)) += chip.name;
  return names;
}

bool GpuChip::hasProgrammaticLaunch() const {
  return !name.starts_with("sm_8");
}

/// The first version of PTX whose kernels have more than 4352 bytes of
/// parameters.
static constexpr unsigned kManyParameters = 81;

int64_t mlir::fsdp::getMaxParameterBytes(unsigned ptxVersion) {
  return ptxVersion < kManyParameters ? 4352 : 32764;
}

unsigned GpuChip::getPtxVersion(int64_t parameterBytes) const {
  return parameterBytes <= getMaxParameterBytes(ptxVersion)
             ? ptxVersion
             : std::max(ptxVersion, kManyParameters);
}

std::string mlir::fsdp::getPtxFeatures(unsigned ptxVersion) {
  return "+ptx" + std::to_string(ptxVersion);
}

std::optional<unsigned> mlir::fsdp::parsePtxFeatures(StringRef features) {
  unsigned version;
  if (!features.consume_front("+ptx") || features.getAsInteger(10, version))
    return std::nullopt;
  return version;
}

int32_t mlir::fsdp::getPtxDriver(unsigned ptxVersion) {
  // PTX 8.0 came with CUDA 12.0, and each version with the next CUDA but for
  // 8.6, which came with 12.7; PTX 9.0 began with CUDA 13.0.
  int32_t major = ptxVersion / 10, minor = ptxVersion % 10;
  if (major == 8 && minor >= 6)
    ++minor;
  return (major + 4) * 1000 + minor * 10;
}
