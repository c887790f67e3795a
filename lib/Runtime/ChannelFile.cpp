//===- ChannelFile.cpp - small messages as files --------------------------===//
//
// Part of fsdp-opt, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For hosts that share a folder and no port. Message number n from rank f to
// rank t is the file PATH.t.f.n; it appears under that name when it is
// complete, and its receiver removes it. Rank 0 holds PATH.run as long as the
// run lasts, which finds a path that another run uses or has left files at.
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>
#include <vector>

using namespace fsdprt;

namespace {

class FileChannel final : public Channel {
public:
  FileChannel(std::string path, int64_t rank, int64_t ranks)
      : path(std::move(path)), myRank(rank), worldRanks(ranks), sent(ranks),
        received(ranks) {}
  ~FileChannel() override {
    // After a failure some messages have nobody to read them.
    int64_t from;
    std::string message;
    while (receive(from, message))
      ;
    if (holdsRun)
      ::unlink((path + ".run").c_str());
  }

  Status open() {
    if (myRank != 0)
      return {};
    std::string name = path + ".run";
    int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0)
      return {FSDPRT_INVALID_ARGUMENT,
              name + ": " + std::strerror(errno) +
                  (errno == EEXIST
                       ? ": expected a path that no run has used before"
                       : "")};
    ::close(fd);
    holdsRun = true;
    return {};
  }

  int64_t rank() const override { return myRank; }
  int64_t ranks() const override { return worldRanks; }

  Status send(int64_t to, const std::string &message) override {
    std::lock_guard<std::mutex> lock(mutex);
    std::string name = nameOf(to, myRank, sent[to]);
    std::string draft = name + ".draft";
    std::FILE *file = std::fopen(draft.c_str(), "wb");
    bool good = file && std::fwrite(message.data(), 1, message.size(), file) ==
                            message.size();
    if (file)
      good &= std::fclose(file) == 0;
    if (!good || std::rename(draft.c_str(), name.c_str()))
      return {FSDPRT_ABORTED, name + ": " + std::strerror(errno)};
    ++sent[to];
    return {};
  }

  bool receive(int64_t &from, std::string &message) override {
    for (from = 0; from < worldRanks; ++from) {
      std::string name = nameOf(myRank, from, received[from]);
      std::FILE *file = std::fopen(name.c_str(), "rb");
      if (!file)
        continue;
      char buffer[1 << 16];
      message.clear();
      for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file));)
        message.append(buffer, got);
      std::fclose(file);
      ::unlink(name.c_str());
      ++received[from];
      return true;
    }
    return false;
  }

  void close() override {}

private:
  std::string nameOf(int64_t to, int64_t from, int64_t number) const {
    return path + "." + std::to_string(to) + "." + std::to_string(from) + "." +
           std::to_string(number);
  }

  const std::string path;
  const int64_t myRank, worldRanks;
  bool holdsRun = false;
  std::mutex mutex;
  std::vector<int64_t> sent, received; ///< by rank
};

class SelfChannel final : public Channel {
public:
  int64_t rank() const override { return 0; }
  int64_t ranks() const override { return 1; }
  Status send(int64_t, const std::string &) override { return {}; }
  bool receive(int64_t &, std::string &) override { return false; }
  void close() override {}
};

} // namespace

Status fsdprt::createFileChannel(const std::string &path, int64_t rank,
                                 int64_t ranks,
                                 std::unique_ptr<Channel> &channel) {
  auto result = std::make_unique<FileChannel>(path, rank, ranks);
  if (Status status = result->open(); status.failed())
    return status;
  channel = std::move(result);
  return {};
}

std::unique_ptr<Channel> fsdprt::createSelfChannel() {
  return std::make_unique<SelfChannel>();
}
