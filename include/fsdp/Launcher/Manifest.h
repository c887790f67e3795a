//===- Manifest.h - what an artefact says about itself ----------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest as data that the rest of fsdp-run can trust: every type has been
// parsed, every shard compared with the layout of its full tensor, every axis
// with the grid.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LAUNCHER_MANIFEST_H
#define FSDP_LAUNCHER_MANIFEST_H

#include "fsdp/Launcher/TensorType.h"
#include "fsdp/Layout/Grid.h"
#include "fsdp/Layout/Layout.h"

#include "llvm/Support/Error.h"

namespace mlir::fsdp::launch {

/// What an argument or result is; see the attributes fsdp.shard and so on.
enum class Role { Value, Full, FullGrad, Shard, ShardGrad };

/// The ranks that share a unit's parameters. Members of a group are numbered
/// row major over its axes as listed; the axes in neither list are foreign.
struct UnitRanks {
  std::string name;
  Grid grid;
  std::vector<int64_t> shardAxes, replicateAxes, foreignAxes;
};

/// An argument or a result of an entry.
struct EntryTensor {
  std::string name; ///< of its tensor in files
  Role role = Role::Value;
  bool isUniform = false; ///< an argument that is the same on all ranks
  const UnitRanks *unit = nullptr;   ///< null for Role::Value
  TensorType type;                   ///< what a rank holds
  TensorType fullType;               ///< of a shard; `type` otherwise
  std::optional<ParamLayout> layout; ///< of a shard

  bool isShard() const {
    return role == Role::Shard || role == Role::ShardGrad;
  }
};

struct EntrySignature {
  std::string name;
  std::vector<EntryTensor> arguments, results;
};

struct Manifest {
  std::string target;
  Grid grid;
  int64_t ranks = 0;
  std::string planHash;
  int32_t driver = 0; ///< the least one, as CUDA counts; 0 if it needs none
  std::vector<std::unique_ptr<UnitRanks>> units;
  std::vector<EntrySignature> entries;

  static llvm::Expected<Manifest> parse(llvm::StringRef json);
};

} // namespace mlir::fsdp::launch

#endif // FSDP_LAUNCHER_MANIFEST_H
