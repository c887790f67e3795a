//===- RankDiscovery.h - which rank is this process? ------------*- C++ -*-===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launcher of processes tells each of them its rank in the environment, each
// launcher with variables of its own. The first set that is complete wins, in
// this order:
//
//   the caller's options
//   torchrun   RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
//   Open MPI   OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
//              OMPI_COMM_WORLD_LOCAL_RANK
//   PMIx       PMIX_RANK
//   PMI        PMI_RANK PMI_SIZE
//   Slurm      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID
//
// mpirun inside a Slurm allocation sets its own and Slurm's, and so does
// torchrun under srun; in both cases Slurm counts something else, so it is
// last.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_RUNTIME_WORLD_RANKDISCOVERY_H
#define FSDP_LIB_RUNTIME_WORLD_RANKDISCOVERY_H

#include "Support/Status.h"

#include <functional>

namespace fsdprt {

struct RankInfo {
  int64_t rank = -1;
  int64_t ranks = -1;     ///< -1: the launcher does not say
  int64_t localRank = -1; ///< on its machine; -1: the launcher does not say
  std::string launcher;   ///< "torchrun", "Open MPI", ...
  /// Of MASTER_ADDR and MASTER_PORT, whoever set them; "" and 0 if nobody did.
  std::string masterAddress;
  int64_t masterPort = 0;
};

/// Null if the variable is not set.
using Environment = std::function<const char *(const char *name)>;

/// `given` has a rank if the caller knows it; what else it lacks is looked up.
Status discoverRank(const RankInfo &given, const Environment &environment,
                    RankInfo &result);

/// std::getenv, which has no type of its own to be passed by.
const char *processEnvironment(const char *name);

} // namespace fsdprt

#endif // FSDP_LIB_RUNTIME_WORLD_RANKDISCOVERY_H
