//===- RankDiscoveryTest.cpp - ranks from the environment -----------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "World/RankDiscovery.h"

#include "gtest/gtest.h"

#include <map>

using namespace fsdprt;

namespace {

using Variables = std::map<std::string, std::string>;

const Variables torchrun = {{"RANK", "5"},
                            {"WORLD_SIZE", "16"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "29500"}};
const Variables openMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}};
const Variables pmix = {{"PMIX_RANK", "7"}};
const Variables pmi = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
const Variables slurm = {
    {"SLURM_PROCID", "9"}, {"SLURM_NTASKS", "12"}, {"SLURM_LOCALID", "4"}};

Status discover(const Variables &variables, RankInfo &result,
                const RankInfo &given = {}) {
  return discoverRank(
      given,
      [&](const char *name) {
        auto it = variables.find(name);
        return it == variables.end() ? nullptr : it->second.c_str();
      },
      result);
}

/// "launcher: rank of ranks, local rank, address:port".
std::string found(const std::vector<Variables> &sets,
                  const RankInfo &given = {}) {
  Variables all;
  for (const Variables &set : sets)
    all.insert(set.begin(), set.end());
  RankInfo info;
  if (Status status = discover(all, info, given); status.failed())
    return status.message;
  return info.launcher + ": " + std::to_string(info.rank) + " of " +
         std::to_string(info.ranks) + ", " + std::to_string(info.localRank) +
         ", " + info.masterAddress + ":" + std::to_string(info.masterPort);
}

std::string without(Variables variables, const std::string &name) {
  variables.erase(name);
  return found({variables});
}

} // namespace

TEST(RankDiscovery, EachLauncher) {
  EXPECT_EQ(found({torchrun}), "torchrun: 5 of 16, 1, node0:29500");
  EXPECT_EQ(found({openMpi}), "Open MPI: 3 of 4, 2, :0");
  EXPECT_EQ(found({pmix}), "PMIx: 7 of -1, -1, :0");
  EXPECT_EQ(found({pmi}), "PMI: 1 of 2, -1, :0");
  EXPECT_EQ(found({slurm}), "Slurm: 9 of 12, 4, :0");
}

TEST(RankDiscovery, FirstCompleteSetWins) {
  EXPECT_EQ(found({torchrun, openMpi, slurm}),
            "torchrun: 5 of 16, 1, node0:29500");
  EXPECT_EQ(found({openMpi, pmix, slurm}), "Open MPI: 3 of 4, 2, :0");
  EXPECT_EQ(found({pmix, slurm}), "PMIx: 7 of -1, 4, :0");
  // A stray WORLD_SIZE is no reason to ignore a launcher that says all.
  EXPECT_EQ(found({{{"WORLD_SIZE", "1"}}, slurm}), "Slurm: 9 of 12, 4, :0");
}

TEST(RankDiscovery, CallerComesFirst) {
  RankInfo given;
  given.rank = 2;
  EXPECT_EQ(found({torchrun}, given), "the caller: 2 of -1, 1, node0:29500");
  given.localRank = 0;
  given.masterAddress = "here";
  given.masterPort = 7;
  EXPECT_EQ(found({torchrun}, given), "the caller: 2 of -1, 0, here:7");
  EXPECT_EQ(found({}, given), "the caller: 2 of -1, 0, here:7");
}

TEST(RankDiscovery, AddressOfSlurmsUserIsFound) {
  EXPECT_EQ(found({slurm, {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "4000"}}}),
            "Slurm: 9 of 12, 4, n1:4000");
}

TEST(RankDiscovery, MissingVariableIsNamed) {
  EXPECT_EQ(without(torchrun, "MASTER_PORT"),
            "environment variable MASTER_PORT is missing: torchrun sets RANK, "
            "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, found RANK, "
            "WORLD_SIZE, LOCAL_RANK and MASTER_ADDR");
  EXPECT_EQ(without(openMpi, "OMPI_COMM_WORLD_SIZE"),
            "environment variable OMPI_COMM_WORLD_SIZE is missing: Open MPI "
            "sets OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE and "
            "OMPI_COMM_WORLD_LOCAL_RANK, found OMPI_COMM_WORLD_RANK and "
            "OMPI_COMM_WORLD_LOCAL_RANK");
  EXPECT_EQ(found({{{"SLURM_PROCID", "1"}}}),
            "environment variables SLURM_NTASKS and SLURM_LOCALID are missing: "
            "Slurm sets SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID, found "
            "SLURM_PROCID");
}

TEST(RankDiscovery, NothingAtAll) {
  EXPECT_EQ(found({}),
            "this process has no rank: expected one from the caller or from "
            "the environment of torchrun (RANK), Open MPI "
            "(OMPI_COMM_WORLD_RANK), PMIx (PMIX_RANK), PMI (PMI_RANK), Slurm "
            "(SLURM_PROCID), found none");
}

TEST(RankDiscovery, ValuesThatAreNoRanks) {
  Variables variables = torchrun;
  variables["RANK"] = "first";
  EXPECT_EQ(found({variables}), "environment variable RANK='first': expected a "
                                "number from 0 to 65535");
  variables["RANK"] = "16";
  EXPECT_EQ(found({variables}),
            "rank 16 of torchrun: expected less than the number of ranks, 16");
  variables = torchrun;
  variables["MASTER_PORT"] = "65535"; // the next one is needed
  EXPECT_EQ(found({variables}), "environment variable MASTER_PORT='65535': "
                                "expected a number from 1 to 65534");
  variables = openMpi;
  variables["OMPI_COMM_WORLD_SIZE"] = "";
  EXPECT_EQ(found({variables}), "environment variable OMPI_COMM_WORLD_SIZE='': "
                                "expected a number from 1 to 65536");
}
