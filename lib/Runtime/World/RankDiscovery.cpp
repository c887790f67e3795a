//===- RankDiscovery.cpp - which rank is this process? --------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/RankDiscovery.h"

#include <cerrno>
#include <cstdlib>
#include <vector>

using namespace fsdprt;

namespace {

/// What a launcher sets. Names that it does not have are empty; all others are
/// needed.
struct Launcher {
  const char *name;
  const char *rank, *ranks, *localRank, *address, *port;

  std::vector<std::string> variables() const {
    std::vector<std::string> result;
    for (const char *variable : {rank, ranks, localRank, address, port})
      if (*variable)
        result.push_back(variable);
    return result;
  }
};

const Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR",
     "MASTER_PORT"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "", ""},
    {"PMIx", "PMIX_RANK", "", "", "", ""},
    {"PMI", "PMI_RANK", "PMI_SIZE", "", "", ""},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", ""},
};

std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

/// Reads a number from `least` to `most`; leaves `result` if nothing is set.
Status readNumber(const Environment &environment, const char *name,
                  int64_t least, int64_t most, int64_t &result) {
  const char *text = *name ? environment(name) : nullptr;
  if (!text)
    return {};
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(text, &end, 10);
  if (end == text || *end || errno || value < least || value > most)
    return {FSDPRT_INVALID_ARGUMENT,
            std::string("environment variable ") + name + "='" + text +
                "': expected a number from " + std::to_string(least) + " to " +
                std::to_string(most)};
  result = value;
  return {};
}

constexpr int64_t largestRank = 65535;

} // namespace

const char *fsdprt::processEnvironment(const char *name) {
  return std::getenv(name);
}

Status fsdprt::discoverRank(const RankInfo &given,
                            const Environment &environment, RankInfo &result) {
  result = given;
  if (given.rank >= 0)
    result.launcher = "the caller";
  std::string incomplete;
  for (const Launcher &launcher : launchers) {
    if (result.rank >= 0)
      break;
    std::vector<std::string> missing, present;
    for (const std::string &name : launcher.variables())
      (environment(name.c_str()) ? present : missing).push_back(name);
    if (!missing.empty()) {
      if (!present.empty() && incomplete.empty())
        incomplete = (missing.size() == 1 ? "environment variable "
                                          : "environment variables ") +
                     join(missing) + (missing.size() == 1 ? " is" : " are") +
                     " missing: " + launcher.name + " sets " +
                     join(launcher.variables()) + ", found " + join(present);
      continue;
    }
    result.launcher = launcher.name;
    for (Status status :
         {readNumber(environment, launcher.rank, 0, largestRank, result.rank),
          readNumber(environment, launcher.ranks, 1, largestRank + 1,
                     result.ranks),
          readNumber(environment, launcher.localRank, 0, largestRank,
                     result.localRank)})
      if (status.failed())
        return status;
  }
  if (result.rank < 0) {
    if (!incomplete.empty())
      return {FSDPRT_INVALID_ARGUMENT, incomplete};
    std::string all;
    for (const Launcher &launcher : launchers)
      all += (all.empty() ? "" : ", ") + std::string(launcher.name) + " (" +
             launcher.rank + ")";
    return {FSDPRT_INVALID_ARGUMENT,
            "this process has no rank: expected one from the caller or from "
            "the environment of " +
                all + ", found none"};
  }
  if (result.ranks >= 0 && result.rank >= result.ranks)
    return {FSDPRT_INVALID_ARGUMENT,
            "rank " + std::to_string(result.rank) + " of " + result.launcher +
                ": expected less than the number of ranks, " +
                std::to_string(result.ranks)};
  // PMI says no local rank, and a caller need not; others may know.
  for (const char *name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (result.localRank < 0)
      if (Status status =
              readNumber(environment, name, 0, largestRank, result.localRank);
          status.failed())
        return status;
  if (result.masterAddress.empty())
    if (const char *address = environment("MASTER_ADDR"))
      result.masterAddress = address;
  if (result.masterPort == 0)
    return readNumber(environment, "MASTER_PORT", 1, 65534, result.masterPort);
  return {};
}
